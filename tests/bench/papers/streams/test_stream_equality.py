"""The six stream correlators find the pairs of the batch join, whatever the order of arrival."""

from __future__ import annotations

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS
from coincide import Window
from coincide.model.timestamps import IntervalPairs
from cpu_fallback import EventJoin
from cpu_fallback.reference import decision as reference
from tests.helpers.strategies import random_cases
from tests.helpers.stream_cases import (
    Pairs,
    Stream,
    StreamCase,
    feed,
    middling_case,
    paper_streams,
    random_options,
    small_cases,
)

SMALL = 100
MIDDLING = 67
"""Streams for each algorithm: (100 + 67) * 6 are a thousand."""


def pairs_by_reference(case: StreamCase) -> Pairs:
    window = case.window
    found = [
        (i, j)
        for i in range(len(case.left))
        for j in range(len(case.right))
        if reference.qualifies(
            reference.satisfaction_probability(
                case.left.low[i], case.left.high[i], case.right.low[j], case.right.high[j],
                window.lo, window.hi,
            ),
            window.confidence,
        )
    ]  # fmt: skip
    return np.array(found, np.int64).reshape(-1, 2)


def pairs_by_join(case: StreamCase) -> Pairs:
    join = EventJoin(case.left.events, case.right.events, IntervalPairs(case.window))
    left, right = join.pairs(0, join.counts.size, join.left_order, join.right_order)
    order = np.lexsort((right, left))
    return np.stack([left[order], right[order]], axis=1)


def check(case: StreamCase, algorithm: str, expected: Pairs, rng: np.random.Generator) -> None:
    correlator = case.correlator(algorithm)
    found = feed(correlator, case, rng)
    np.testing.assert_array_equal(found, expected)
    stats = correlator.stats
    assert stats.pairs == len(expected)
    assert stats.late == (0, 0)
    assert stats.arrived == (len(case.left), len(case.right))
    assert stats.sure + stats.probed >= stats.pairs >= stats.sure


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_small_streams_against_the_reference(algorithm: str) -> None:
    for i, case in small_cases(ALGORITHMS.index(algorithm), SMALL):
        check(case, algorithm, pairs_by_reference(case), np.random.default_rng(i))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_larger_streams_against_the_join(algorithm: str) -> None:
    offset = ALGORITHMS.index(algorithm) * MIDDLING
    for i in range(offset, offset + MIDDLING):
        case = middling_case(i)
        check(case, algorithm, pairs_by_join(case), np.random.default_rng(i))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_times_and_windows_up_to_the_limit(algorithm: str) -> None:
    for i, case in enumerate(random_cases(5, 40, max_size=8, nulls=False, keys=False, huge=True)):
        rng = np.random.default_rng(i)
        sides = []
        for rows in (case.left, case.right):
            order = rng.permutation(len(rows))
            low, high = (
                np.array([row[name] for row in rows], np.int64)[order]
                for name in ("min_time", "max_time")
            )
            # In any order at all: the largest delay there is.
            sides.append(Stream(low, high, np.maximum.accumulate(high), 2**62 - 1))
        window = Window(case.lo, case.hi, case.confidence)
        streams = StreamCase(sides[0], sides[1], window, random_options(rng, 8))
        check(streams, algorithm, pairs_by_reference(streams), rng)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("confidence", [0.8, 0.1])
def test_a_dense_stream(algorithm: str, confidence: float) -> None:
    left, right = paper_streams(3.0, rate=800)
    window = Window(-300_000, 400_000, confidence)
    case = StreamCase(left, right, window, {"block": 300})
    check(case, algorithm, pairs_by_join(case), np.random.default_rng(0))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_counts_without_pairs(algorithm: str) -> None:
    for seed in range(500, 520):
        case = middling_case(seed)
        correlator = case.correlator(algorithm, emit="counts")
        total = 0
        for side, stream in (("left", case.left), ("right", case.right)):
            result = correlator.push(side, stream.events)
            assert result.left.size == result.right.size == 0
            total += result.count
        total += correlator.flush().count
        assert total == correlator.stats.pairs == len(pairs_by_join(case))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_mirrored_streams_find_the_mirrored_pairs(algorithm: str) -> None:
    for seed in range(600, 610):
        case = middling_case(seed)
        window = Window(-case.window.hi, -case.window.lo, case.window.confidence)
        mirror = StreamCase(case.right, case.left, window, case.options)
        one = feed(case.correlator(algorithm), case, np.random.default_rng(1))
        other = feed(mirror.correlator(algorithm), mirror, np.random.default_rng(2))
        other = other[:, ::-1]
        np.testing.assert_array_equal(one, other[np.lexsort((other[:, 1], other[:, 0]))])


@pytest.mark.parametrize("classes", [1, 2, 5, 16])
def test_the_number_of_classes_changes_no_pair(classes: int) -> None:
    left, right = paper_streams(1.5, rate=1000, seed=3)
    window = Window(-150_000, 100_000, 0.7)
    case = StreamCase(left, right, window, {"block": 137, "classes": classes})
    found = feed(case.correlator("classes"), case, np.random.default_rng(0))
    np.testing.assert_array_equal(found, pairs_by_join(case))
