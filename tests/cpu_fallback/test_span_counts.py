"""Counts of spans by their ends are those of the band kernel, and so is what a join tells of itself."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.condition import Closed
from coincide.model.counters import JoinCounters
from coincide.model.timestamps import IntervalEvents
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import Tick
from cpu_fallback import EventJoin
from cpu_fallback.join.kernels import count_block
from tests.engine.test_spans import CLOSED, RELATIONS

ALWAYS = {"overlapping", "touching", "3 in common", "no gap", "a gap of 2"}
OF_INSTANTS = {"containing", "inside", "contains", "during"}


def drawn(
    random: np.random.Generator, n: int, lengths: list[int], groups: int, scale: int
) -> IntervalEvents:
    length = scale * random.choice(lengths, n)
    start = scale * random.integers(-6, 40, n) + random.integers(0, scale, n)
    group = random.integers(-1, groups, n) if groups > 1 else None
    return IntervalEvents(start, start + length, group, groups)


def check(name: str, closed: tuple[Closed, Closed], seed: int) -> bool:
    """Whether matches were counted by ends."""
    random = np.random.default_rng([seed, *name.encode()])
    groups, scale = [1, 1, 3][seed % 3], [1, 1, 2**52][seed % 3]
    kinds = [[0, 0, 1, 2, 5, 30], [0]] if seed % 2 else [[0, 1, 3, 9], [1, 2, 20]]
    sizes = random.choice([0, 1, 40, 300], 2)
    left, right = (
        drawn(random, n, kinds[(seed // 4 + side) % 2], groups, scale)
        for side, n in enumerate(sizes.tolist())
    )
    model = SpanPairs.of(RELATIONS[name][0].window(Tick()).bounds(closed), None)
    join = EventJoin(left, right, model, classes=[None, 1, 3][seed % 3], threads=1 + seed % 2)
    counts = np.empty(sizes[0], np.int64)
    tally = count_block(0, counts.size, join._sides, counts)
    assert np.array_equal(join.counts, counts)
    assert join.counters.pairs == counts.sum()
    for _ in range(2):
        for start, stop in join.chunks(50):
            join.pairs(start, stop, join.left_order, join.right_order)
    assert join.counters == JoinCounters.of_tally(*tally.tolist())
    return join._end_bounds is not None


@pytest.mark.parametrize("name", RELATIONS)
def test_counts_by_ends_are_those_of_bands(name: str) -> None:
    by_ends = [check(name, (CLOSED[seed % 4], CLOSED[seed // 4 % 4]), seed) for seed in range(48)]
    assert all(by_ends) == (name in ALWAYS)
    assert any(by_ends) == (name in ALWAYS | OF_INSTANTS)
