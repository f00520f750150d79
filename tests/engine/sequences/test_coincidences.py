"""Coincidences of tables against the oracle: all sets, and volumes by counting simplices."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coincide import CorrelateOptions, coincidence_tables
from cpu_fallback.reference.sequences import coincidences
from tests.helpers.sequence_cases import drawn_case


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(120))
def test_tables_give_the_sets_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng, most_rows=4, is_apart=True)
    confidence, width = rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), rng.randint(0, 4)
    at_least = rng.randint(2, len(case.names))
    expected = coincidences(case.rows, width, confidence, at_least, case.by)
    asked: dict[str, Any] = {
        "names": case.names, "time": case.times, "by": case.by, "at_least": at_least,
        "options": CorrelateOptions(threads=1, batch_pairs=rng.choice([1, 3, None])),
    }  # fmt: skip
    given = case.tables, width, confidence
    found = coincidence_tables(*given, **asked, probability=True)
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    chances = dict(zip(zip(*columns, strict=True), found["probability"].to_pylist(), strict=True))
    assert found.num_rows == len(chances)
    wanted = {
        tuple(None if row is None else 10 * row for row in rows): chance
        for rows, chance in expected
    }
    assert set(chances) == set(wanted)
    for rows, chance in wanted.items():
        assert chances[rows] == pytest.approx(float(chance), abs=1e-13)
        if case.by:
            own = next(k for k, row in enumerate(rows) if row is not None)
            at = list(chances).index(rows)
            assert found["k"][at].as_py() == case.rows[own][rows[own] // 10]["k"]
    assert found["streams"].to_pylist() == [
        sum(row is not None for row in rows) for rows in chances
    ]
    bare = coincidence_tables(*given, **asked)
    rows = zip(*(bare[f"{name}_id"].to_pylist() for name in case.names), strict=True)
    assert set(rows) == set(chances)
    assert bare.num_rows == len(chances)
