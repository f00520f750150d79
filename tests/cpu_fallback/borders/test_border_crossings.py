"""Border crossings on the CPU against the oracle, and what must not change them."""

from __future__ import annotations

from itertools import chain
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.model.borders import index as live_index
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.monitor import Monitor
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import DataError
from cpu_fallback.borders import BorderSearch
from tests.helpers.border_cases import Case, answered, cases, expected, pushed


@settings(max_examples=250)
@given(cases())
def test_crossings_are_the_oracles(case: Case) -> None:
    assert answered(case) == expected(case)


@pytest.mark.slow
@settings(max_examples=400)
@given(cases(most_dimensions=5, most_readings=60))
def test_crossings_of_many_cases_are_the_oracles(case: Case) -> None:
    assert answered(case) == expected(case)


@settings(max_examples=50)
@given(cases(), st.integers(1, 5))
def test_any_batching_gives_the_same_crossings(case: Case, size: int) -> None:
    steps = []
    for what, content in case.steps:
        if what == "push":
            steps += [("push", content[k : k + size]) for k in range(0, len(content), size)]
        else:
            steps.append((what, content))
    *batched, inside = answered(Case(case.dimensions, case.options, steps))
    *whole, inside_at_last = answered(case)
    assert sorted(chain.from_iterable(batched)) == sorted(chain.from_iterable(whole))
    assert inside == inside_at_last


@settings(max_examples=60)
@given(cases(most_readings=10))
def test_many_small_levels_give_the_same_crossings(case: Case) -> None:
    """Queries that are added make levels of one or two, which are merged all the time."""
    added = [(what, [each]) for what, content in case.steps if what == "add" for each in content]
    others = [step for step in case.steps if step[0] != "add"]
    case = Case(case.dimensions, case.options, added + others)
    with patch.multiple(live_index, _FEWEST_TO_MERGE=0, _SHARE_TO_MERGE=2):
        assert answered(case) == expected(case)


def test_the_papers_figure_3() -> None:
    """Queries that begin and end where others do; a stream that walks up and down through them."""
    monitor = Monitor(1, BorderOptions(interpolate=True, threads=1), BorderSearch)
    monitor.streams.resize(1)
    ranges = np.array([(10, 40), (20, 60), (30, 40), (40, 80), (60, 70)], np.float64)
    monitor.add(ranges[:, :1], ranges[:, 1:])
    walk = [(0, 0, (35.0,)), (0, 10, (45.0,)), (0, 20, (60.0,)), (0, 30, (5.0,))]
    told = [(c.query, c.event, c.min_time, c.max_time, c.instant) for c in pushed(monitor, walk)]
    assert sorted(told) == sorted(
        [
            (0, "O", 0, 10, 5),
            (2, "O", 0, 10, 5),
            (3, "I", 0, 10, 5),
            (1, "O", 10, 20, 20),
            (4, "I", 10, 20, 20),
            (3, "O", 20, 30, 23),
            (4, "O", 20, 30, 20),
        ]
    )


def test_the_first_queries_are_sorted_and_not_merged_as_well() -> None:
    lower = np.arange(5.0)[:, None]
    first, second = (BorderIndex.of(lower, lower + 9, np.arange(k, k + 5)) for k in (0, 5))
    levels = live_index.LiveIndex(1)
    levels.levels = levels.levels_with(first)
    assert levels.levels == [first]
    levels.levels = levels.levels_with(second)
    assert [each.numbers.tolist() for each in levels.levels] == [[*range(10)]]


def test_more_queries_than_pairs_can_name() -> None:
    lower = np.zeros((2, 1))
    monitor = Monitor(1, BorderOptions(hysteresis=1.0, threads=1), BorderSearch)
    monitor.queries = 2**31 - 2
    assert monitor.add(lower, lower + 1)[-1] == 2**31 - 1
    with pytest.raises(DataError, match="takes 2,147,483,648 in all"):
        monitor.add(lower[1:], lower[1:] + 1)


def test_what_is_open_of_removed_queries_is_freed() -> None:
    """Twenty streams are inside everything: a pair for each and each live query, and no more."""
    monitor = Monitor(1, BorderOptions(hysteresis=1.0, threads=1), BorderSearch)
    monitor.streams.resize(20)
    lower, streams = np.zeros((10, 1)), np.arange(20)
    numbers = monitor.add(lower, lower + 9)
    for time in range(50):
        list(monitor.push(streams, np.full(20, time), np.full((20, 1), 5.0)))
        monitor.remove(numbers)
        numbers = monitor.add(lower, lower + 9)
        assert monitor.open_pairs is not None
        assert monitor.open_pairs.pairs.size == 20 * numbers.size
    empty = np.zeros((1, 1))
    for _ in range(5):  # no stream is in these, and they leave nothing behind either
        monitor.remove(monitor.add(empty, empty))
    assert len(monitor.open_pairs._forgotten) <= 1


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dimensions", [1, 3])
def test_long_moves_among_many_queries(dimensions: int, threads: int) -> None:
    """Peaks of several levels, blocks of several threads, chunks that end within a block."""
    rng = np.random.default_rng(5)
    lower = rng.integers(0, 900, (3000, dimensions)).astype(np.float64)
    upper = lower + rng.integers(1, 400, lower.shape)
    values = rng.integers(-5, 1300, (70_000, dimensions)).astype(np.float64)
    values[1000:] = np.minimum(
        np.abs(np.cumsum(rng.normal(0, 0.2, values[1000:].shape), axis=0)), 1300
    )
    by_processing = []
    for processing in ("traversal", "three-sided", "auto"):
        options = BorderOptions(processing=processing, batch_events=5000, threads=1)
        monitor = Monitor(dimensions, options, lambda *given: BorderSearch(*given, threads=threads))
        monitor.streams.resize(1)
        monitor.add(lower, upper)
        chunks = list(monitor.push(np.zeros(len(values), np.int64), np.arange(len(values)), values))
        for part in chunks:  # what the last point has may be more
            assert (part.rows != part.rows[-1]).sum() < options.batch_events
        rows, queries, events = (
            np.concatenate(column) for column in list(zip(*chunks, strict=True))[:3]
        )
        order = np.lexsort((events, queries, rows))
        by_processing.append(np.stack([rows[order], queries[order], events[order]]))
    assert (by_processing[0] == by_processing[1]).all()
    assert (by_processing[0] == by_processing[2]).all()
    rows, queries, events = by_processing[0]
    picked = np.random.default_rng(6).choice(len(values), 300)
    for row in [1, 999, 1000, *picked[picked > 0].tolist()]:
        was, now = (
            ((lower <= values[k]) & (values[k] < upper)).all(axis=1) for k in (row - 1, row)
        )
        here = rows == row
        assert set(queries[here & (events == 1)]) == set(np.flatnonzero(now & ~was))
        assert set(queries[here & (events == 0)]) == set(np.flatnonzero(was & ~now))
