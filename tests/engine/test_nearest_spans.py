"""The span before or after each one, however far away: no bound is needed where only the nearest counts."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coincide
from coincide import CorrelateOptions, correlate_tables, relation, spans
from coincide.model.condition import Closed
from cpu_fallback.reference.spans import Span, allen, overlap
from tests.engine.test_spans import drawn, joined, table
from tests.helpers.rows import pair_ids

Events = list[tuple[int, int, int]]
EVENTS = st.lists(
    st.tuples(st.integers(-9, 9), st.sampled_from([0, 0, 1, 2, 5]), st.integers(0, 1)), max_size=9
)
"""Starts, lengths and keys."""


def nearest(
    left: tuple[list[Span], list[int]], right: tuple[list[Span], list[int]], name: str, k: int
) -> list[tuple[int, int]]:
    """For each left span the k nearest of a relation; of equally near ones those that end first."""
    row = -1 if name == "after" else 1  # the last row of alike ones is the last one before
    pairs = []
    for i, (own, key) in enumerate(zip(*left, strict=True)):
        found = [
            (-overlap(own, other), other.end, other.start, row * j)
            for j, (other, other_key) in enumerate(zip(*right, strict=True))
            if key == other_key and own.points and other.points and allen(own, other) == name
        ]
        pairs += [(i, row * j) for *_, j in sorted(found)[:k]]
    return sorted(pairs)


@settings(max_examples=150)
@given(
    left=EVENTS, right=EVENTS, name=st.sampled_from(["before", "after"]), k=st.integers(1, 3),
    closed=st.tuples(*[st.sampled_from(get_args(Closed))] * 2),
    moved=st.sampled_from([(1, 0), (10**9, 1_700_000_000 * 10**9), (10**16, -(2**58))]),
)  # fmt: skip
def test_the_nearest_of_all(
    left: Events, right: Events, name: Any, k: int, closed: tuple[Any, Any], moved: tuple[int, int]
) -> None:
    scale, origin = moved
    sides = [
        ([Span(s, s + n, each) for s, n, _ in events], [key for *_, key in events])
        for events, each in zip((left, right), closed, strict=True)
    ]
    tables = [table(*side, by=lambda t: t * scale + origin) for side in sides]
    options = CorrelateOptions(batch_pairs=2)
    wanted = nearest(sides[0], sides[1], name, k)
    asked: dict[str, Any] = {"emit": "best", "prefer": "nearest", "k": k, "options": options}
    assert pair_ids(joined(*tables, relation(name), closed, **asked)) == wanted
    alone = set(range(len(left))) - {i for i, _ in wanted}
    found = joined(*tables, relation(name), closed, how="left", **asked).to_pylist()
    assert {row["left_id"] for row in found if row["right_id"] is None} == alone
    for how in ("semi", "anti"):
        rows = joined(*tables, relation(name), closed, how=how)["left_id"].to_pylist()
        assert set(rows) == (alone if how == "anti" else {i for i, _ in wanted})


@pytest.mark.parametrize("name", ["before", "after"])
def test_one_stream(name: Any) -> None:
    found = 0
    for seed in range(20):
        side, keys = drawn(np.random.default_rng(seed), "both", 2)
        given = nearest((side, keys), (side, keys), name, 1)
        asked: dict[str, Any] = {"emit": "best", "prefer": "nearest"}
        assert (
            pair_ids(joined(table(side, keys), None, relation(name), ("both", "both"), **asked))
            == given
        )
        found += len(given)
    assert found > 30


def test_the_next_one_costs_no_look_at_others() -> None:
    """One span long before all others; a bound would have to reach its last."""
    start = np.concatenate([[0], np.arange(10**9, 10**9 + 40_000)])
    side = pa.table({"id": np.arange(start.size), "start": start, "end": start})
    report = coincide.JoinReport()
    found = correlate_tables(
        side, side, relation("before"), left_time=spans("start", "end"), right_time=spans("start", "end"),
        emit="best", prefer="nearest", pair_columns="overlap", report=report,
    )  # fmt: skip
    assert pair_ids(found) == [(i, i + 1) for i in range(start.size - 1)]
    assert found["overlap"].to_pylist() == [-(10**9)] + [-1] * 39_999
    counters = report.summary().counters
    assert counters is not None
    assert counters.candidates == found.num_rows


def test_nothing_comes_before_or_after() -> None:
    left = pa.table({"id": [0], "start": [10], "end": [15]})
    right = pa.table({"id": [0], "start": [0], "end": [5]})
    with pytest.warns(coincide.NoPairsWarning, match="all right times are 6 s or more too early"):
        correlate_tables(
            left, right, relation("before"), left_time=spans("start", "end"), emit="best",
            right_time=spans("start", "end"), prefer="nearest", options=CorrelateOptions(unit="s"),
        )  # fmt: skip
