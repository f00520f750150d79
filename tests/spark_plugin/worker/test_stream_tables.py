"""Streams of tables: the rows of the join of all that was pushed, each once, however they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coincide import TimingCondition, correlate_tables, stream_tables, within
from spark_plugin.worker.streams import live
from tests.helpers.strategies import JoinCase, random_cases
from tests.helpers.stream_tables import (
    in_order,
    late_ids,
    pushed,
    stream_sides,
    table_of,
)

SHAPES: list[dict[str, Any]] = [
    {"probability": True},
    {"how": "left", "probability": True},
    {"how": "anti", "right_columns": ()},
    {"how": "semi"},
    {"emit": "counts", "how": "left"},
    {"emit": "counts"},
    {"emit": "best", "how": "left", "probability": True},
]


def check(case: JoinCase, seed: Any, asked: dict[str, Any]) -> int:
    rng = np.random.default_rng(seed)
    sides, delays = stream_sides(case, rng)
    condition = TimingCondition(within(case.lo, case.hi), case.confidence)
    asked = {"by": case.by, "backend": "cpu", **asked}
    late = [late_ids(rows, delay) for rows, delay in zip(sides, delays, strict=True)]
    stream = stream_tables(condition, left_delay=delays[0], right_delay=delays[1], **asked)
    found = pushed(stream, sides, rng)
    kept = [
        table_of([row for row in rows if row["id"] not in gone])
        for rows, gone in zip(sides, late, strict=True)
    ]
    want = correlate_tables(*kept, condition, **asked)
    assert found.schema == want.schema
    assert in_order(found) == in_order(want)
    for side, gone in zip(("left", "right"), late, strict=True):
        taken = stream.take_late(side)
        assert taken.num_rows == len(gone)
        assert "id" not in taken.column_names or set(taken["id"].to_pylist()) == gone
    assert stream.summary().late == (len(late[0]), len(late[1]))
    return want.num_rows


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("asked", SHAPES, ids=lambda asked: "-".join(map(str, asked.values())))
def test_the_rows_of_the_join(asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_LEAST_DEAD", 1)
    monkeypatch.setattr(live, "_MOST_DEAD", 10**9)
    rows = 0
    for i, case in enumerate(random_cases(18, 300, max_size=20)):
        rows += check(case, [5, i], asked)
    assert rows > 50
