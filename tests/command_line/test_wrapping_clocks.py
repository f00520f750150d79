"""Clocks that wrap on the command line: one counter of both inputs, in the order of their lines."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import csv

from tests.helpers.workplace import Workplace

AT = ("--left-time", "t", "--right-time", "t", "--within", "0", "3")
MODULUS = ("--modulus", "4294967296")
LAST = 2**32 - 1


@pytest.fixture(params=["parquet", "csv"])
def place(work: Workplace, request: pytest.FixtureRequest) -> Workplace:
    sides = ([LAST - 10, LAST, 4], [LAST - 8, 1, 7])
    left, right = (pa.table({"id": [0, 1, 2], "t": times}) for times in sides)
    if request.param == "parquet":
        work.left, work.right = work.write("l.parquet", left), work.write("r.parquet", right)
        return work
    work.left, work.right = work.folder / "l.csv", work.folder / "r.csv"
    csv.write_csv(left, work.left)
    csv.write_csv(right, work.right)
    return work


def test_pairs_across_the_turn(place: Workplace) -> None:
    assert place.join(*AT, *MODULUS)[0] == 0
    found = place.result()
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [(0, 0), (1, 1), (2, 2)]
    assert place.join(*AT, *MODULUS, "--in-order", "--left-around", "0", "--overwrite")[0] == 0
    assert place.result().equals(found)


def test_what_is_refused(place: Workplace) -> None:
    assert "needs the order of rows" in place.refused(*AT, *MODULUS, "--engine", "spark")
    assert "needs the order of rows" in place.refused(*AT, *MODULUS, "--way", "files")
    assert "--modulus must be a whole number" in place.refused(*AT, "--modulus", "3")
    assert "belongs to --modulus" in place.refused(*AT, "--in-order")
    assert "must lie from 0 to below 1,000" in place.refused(*AT, "--modulus", "1000")
