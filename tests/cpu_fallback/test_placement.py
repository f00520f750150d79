"""Runs of base events among sorted targets, against NumPy's binary search."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.bands import band_table
from coincide.model.classes import length_classes
from coincide.model.condition import Window
from coincide.model.timestamps import IntervalEvents, IntervalRule
from cpu_fallback.join import buffers as placement
from cpu_fallback.join.buffers import Sides, base_buffer, ordered, target_buffer


@pytest.mark.parametrize("members", [1, 3, 40])
@pytest.mark.parametrize("values", [1, 5, 20, 1000])
@pytest.mark.parametrize("origin", [-(2**60), 0, 2**60])
def test_a_run_reaches_what_a_binary_search_finds(values: int, origin: int, members: int) -> None:
    """Few values make runs of equal midpoints; few members make the search gallop, many merge."""
    random = np.random.default_rng(values)
    for _ in range(200):
        targets = np.sort(random.integers(0, values, 200)) + origin
        base = np.sort(random.integers(0, values, members)) + origin
        start, end = np.sort(random.integers(0, 201, 2))
        bound = int(random.integers(-values, values + 1))
        found = np.empty(members, np.int64)
        final = placement.reach(targets, start, end, base, bound, found)
        expected = start + np.searchsorted(targets[start:end], base + bound)
        assert found.tolist() == expected.tolist()
        assert final == expected[-1]


def events(random: np.random.Generator, n: int, span: int, groups: int) -> IntervalEvents:
    begin = random.integers(-span, span, n)
    group = random.integers(-1, groups, n) if groups > 1 else None
    return IntervalEvents(begin, begin + random.integers(0, 9, n) ** 2, group, groups)


@pytest.mark.parametrize("groups", [1, 7])
@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize(("left", "right"), [(1500, 900), (1500, 3), (5, 4000), (0, 10)])
def test_every_event_is_placed(left: int, right: int, classes: int, groups: int) -> None:
    """Several runs a group, groups that end inside a run, and a start in the middle of a group."""
    random = np.random.default_rng(classes)
    base_events, target_events = (events(random, n, 3_000, groups) for n in (left, right))
    k1 = length_classes(base_events.lengths, classes)
    k2 = length_classes(target_events.lengths, classes)
    window = Window(-60, 100, 0.7)
    bands = band_table(k1, k2, window)
    base = base_buffer(base_events, ordered(base_events), k1)
    targets = target_buffer(target_events, ordered(target_events), k2)
    sides = Sides(base, targets, bands, IntervalRule.of(window))
    placed = 0
    for start in (0, left // 3):
        for i, spans in every_span(sides, start, left):
            group = int(np.searchsorted(base.offsets, i, side="right")) - 1
            for k in range(k2.count):
                first, last = targets.offsets[k, group : group + 2]
                apart = targets.keys[first:last] - base.keys[i]
                bounds = bands[base.classes[i], k] + [0, 0, 1, 1]
                assert spans[k].tolist() == (first + np.searchsorted(apart, bounds)).tolist()
            placed += 1
    assert placed == 2 * base.offsets[-1] - min(left // 3, base.offsets[-1])


def every_span(sides, start, stop):  # type: ignore[no-untyped-def]
    """(base event, its spans), as the kernels walk."""
    base = sides.base
    scratch = placement.new_scratch(sides.bands)
    group = placement.group_of(base, start)
    while start < stop:
        group = placement.next_group(base, group, start)
        if group == base.offsets.size - 1:
            return
        end = placement.place_run(sides, scratch, group, start, stop)
        yield from ((i, scratch.spans[i - start].copy()) for i in range(start, end))
        start = end
