"""Streams of tables: the rows of the join of all that was pushed, each once, however they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coincide import TimingCondition, correlate_tables, histograms, stream_tables, within
from coincide.engine.streams import live
from tests.helpers.rows import in_order
from tests.helpers.strategies import JoinCase, Row, random_cases
from tests.helpers.stream_tables import late_ids, pushed, stream_sides, table_of

SHAPES: list[dict[str, Any]] = [
    {"probability": True},
    {"how": "left", "probability": True},
    {"how": "anti", "right_columns": ()},
    {"emit": "counts", "how": "left"},
    {"emit": "best", "how": "left", "probability": True},
]


TEMPLATES = {
    "slow": ([-40, -20, -10, 0], [0.1, 0.3, 0.6]),
    "fast": ([-15, -5, 0], [0.2, 0.8]),
    "late": ([10, 30], [1.0]),
}
HISTOGRAMS = histograms("max_time", template="station", templates=TEMPLATES)


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
@pytest.mark.parametrize("cases", [75, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", SHAPES, ids=lambda asked: "-".join(map(str, asked.values())))
def test_the_rows_of_the_join(
    asked: dict[str, Any], cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_LEAST_DEAD", 1)
    monkeypatch.setattr(live, "_MOST_DEAD", 10**9)
    rows = 0
    for i, case in enumerate(random_cases(18, cases, max_size=20)):
        rows += check(case, [5, i], asked)
    assert rows > 20


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("sides", ["left", "right", "left right"])
@pytest.mark.parametrize("asked", SHAPES[:3], ids=["inner", "left", "anti"])
def test_histograms(sides: str, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose max_times are where their templates end, not where they were seen."""
    monkeypatch.setattr(live, "_LEAST_DEAD", 1)
    monkeypatch.setattr(live, "_MOST_DEAD", 10**9)
    times = {f"{side}_time": HISTOGRAMS for side in sides.split()}
    condition = TimingCondition(within(-30, 45), 0.4)
    rows = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        streams = [_seen(rng, 60) for _ in range(2)]
        stream = stream_tables(condition, left_delay=90, right_delay=90, **times, **asked)
        found = pushed(stream, streams, rng)
        want = correlate_tables(*map(table_of, streams), condition, **times, **asked)
        assert stream.summary().late == (0, 0)
        assert in_order(found) == in_order(want)
        rows += want.num_rows
    assert rows > 20


def _seen(rng: np.random.Generator, size: int) -> list[Row]:
    """Rows in disorder by up to 50 ticks: ends of templates are up to 30 later."""
    ends = np.sort(rng.integers(0, 3000, size))
    order = np.argsort(ends + rng.integers(0, 50, size), kind="stable")
    lengths, templates = rng.choice([0, 5, 40], size), rng.choice(list(TEMPLATES), size)
    return [
        {"id": i, "min_time": int(ends[k] - lengths[k]), "max_time": int(ends[k]),
         "station": str(templates[k])}
        for i, k in enumerate(order)
    ]  # fmt: skip
