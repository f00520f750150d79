"""Parts of a side put together: all of their columns, whatever the join."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide.engine.events.sides import Side, concatenated
from coincide.engine.events.timestamps import INTERVALS


def whole() -> Side:
    """Five events that have something in every field."""
    rows = np.arange(5)

    def columns(kind: pa.DataType) -> list[pa.Array]:
        return [pa.array(rows + step).cast(kind) for step in (0, 10)]

    return Side(
        100 + rows, rows // 2, INTERVALS, rows != 3, columns(pa.string()), columns(pa.int32()),
        columns(pa.float64()), columns(pa.int64()), 7 * rows, columns(pa.int16()),
    )  # fmt: skip


def plain(side: Side) -> dict[str, Any]:
    values = {field.name: getattr(side, field.name) for field in fields(side)}
    return {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in values.items()}


def test_parts_are_the_whole_again_in_every_field() -> None:
    side = whole()
    assert all(value is not None for value in plain(side).values())
    parts = [side.rows(np.array(rows, np.int64)) for rows in ([0, 1], [], [2], [3, 4])]
    assert plain(concatenated(parts)) == plain(side)
    assert concatenated(parts[:2]) is parts[0]
    assert concatenated([parts[1], parts[1]]) is parts[1]


def test_parts_that_have_not_all_of_it() -> None:
    first, last = (whole().rows(np.array(rows)) for rows in ([0, 1], [2, 3]))
    found = concatenated([replace(first, matchable=None), last])
    assert found.matchable is not None
    assert found.matchable.tolist() == [True, True, True, False]
    bare = replace(first, matchable=None, ranks=None), replace(last, matchable=None, ranks=None)
    assert (concatenated(bare).matchable, concatenated(bare).ranks) == (None, None)
    with pytest.raises(ValueError, match="some parts of a side have ranks"):
        concatenated([bare[0], last])
