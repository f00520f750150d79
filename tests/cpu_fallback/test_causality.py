"""The causality join against the reference, in the plane: pairs, counts, ways, batches, identities."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    ConditionError,
    Ellipsoidal,
    Plane,
    Spatial,
    SpeedRange,
    Temporal,
)
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.units import Tick
from cpu_fallback.causality import CausalityJoin
from cpu_fallback.reference import causality as reference
from tests.helpers.causality_cases import Case, Pairs, exact_pairs, plane_cases, sides_of

CONFIDENCES = (1.0, 0.5, 0.25, 0.9, 0.01)
WAYS: Any = (None, "place", "grid", "time")


def model_of(case: Case) -> CausalityModel:
    """The condition in ticks; one that nothing meets, or nearly everything, makes no case."""
    try:
        return CausalityCondition(case.predicates, case.space).model(Tick())
    except ConditionError as error:
        if "no time difference meets" in str(error):
            assert exact_pairs(case) == []
        assume(False)
        raise


def pairs_of(join: CausalityJoin, batch_pairs: int = 10**6) -> Pairs:
    found: Pairs = []
    for start, stop in join.chunks(batch_pairs):
        left, right = join.pairs(start, stop, join.left_order, join.right_order)
        assert left.size <= batch_pairs or stop - start == 1
        matches = join.matches(start, stop, join.right_order)
        assert matches.tolist() == right.tolist()
        found += zip(left.tolist(), right.tolist(), strict=True)
    return sorted(found)


def check_join(join: CausalityJoin, expected: Pairs, batch_pairs: int = 10**6) -> None:
    assert pairs_of(join, batch_pairs) == expected
    per_row = np.zeros(join.left_order.size, np.int64)
    per_row[join.left_order] = join.counts
    assert (
        per_row.tolist() == np.bincount([i for i, _ in expected], minlength=per_row.size).tolist()
    )
    counters = join.counters
    assert counters.pairs == len(expected) <= counters.candidates
    assert counters.probed <= counters.candidates


@settings(max_examples=150)
@given(plane_cases(), st.integers(1, 9))
def test_every_way_finds_what_the_reference_finds(case: Case, batch_pairs: int) -> None:
    model, sides, expected = model_of(case), sides_of(case), exact_pairs(case)
    for way in WAYS:
        join = CausalityJoin(*sides, model, way=way)
        check_join(join, expected, batch_pairs)
        if join.way == "place":
            assert join.counters.probed == 0


@pytest.mark.slow
@settings(max_examples=500)
@given(plane_cases(most=14))
def test_every_way_finds_what_the_reference_finds_at_length(case: Case) -> None:
    model, sides, expected = model_of(case), sides_of(case), exact_pairs(case)
    for way in WAYS:
        check_join(CausalityJoin(*sides, model, way=way), expected)


@settings(max_examples=60)
@given(plane_cases())
def test_a_stream_with_itself(case: Case) -> None:
    model, events = model_of(case), sides_of(case)[0]
    expected = in_order_of_time(case)
    for way in WAYS:
        check_join(CausalityJoin(events, None, model, way=way), expected, 3)


def in_order_of_time(case: Case) -> Pairs:
    """Pairs of a case's causes of which the earlier is the cause, or of equals the lower row."""
    times = [event[0] for event in case.causes]
    pairs = reference.causality_in_one(case.causes, case.exact, reference.plane_distance2)
    return [(i, j) for i, j in pairs if (times[i], i) < (times[j], j)]


@settings(max_examples=30)
@given(plane_cases())
def test_a_condition_that_is_forward_leaves_no_pair_to_the_other_order(case: Case) -> None:
    pairs = reference.causality_in_one(case.causes, case.exact, reference.plane_distance2)
    in_order, model = set(in_order_of_time(case)), model_of(case)
    if model.is_forward:
        assert all(pair in in_order or pair[::-1] in in_order for pair in pairs)
    if model.is_symmetric:
        assert {(j, i) for i, j in pairs} == set(pairs)


@settings(max_examples=40)
@given(plane_cases(), st.lists(st.integers(0, 2), min_size=22, max_size=22))
def test_parts_of_a_stream(case: Case, parts: list[int]) -> None:
    """Each cause in one part, each effect in all: the pairs of the whole, by the events' ranks."""
    model, events = model_of(case), sides_of(case)[0]
    expected = in_order_of_time(case)
    effects = replace(events, ranks=np.arange(len(events)))
    for way in WAYS:
        found: Pairs = []
        for part in range(3):
            rows = np.flatnonzero(np.array(parts[: len(events)], np.int64) == part)
            join = CausalityJoin(_rows(events, rows), effects, model, way=way)
            found += [(int(rows[i]), j) for i, j in pairs_of(join)]
        assert sorted(found) == expected


def _rows(events: PlacedEvents, rows: np.ndarray) -> PlacedEvents:
    assert events.points is not None
    assert events.group is not None
    points, group = events.points[:, rows], events.group[rows]
    return PlacedEvents(events.times[rows], points, None, group, events.groups, rows)


@settings(max_examples=60)
@given(plane_cases(most=6), st.lists(st.integers(0, 12), min_size=1), st.sampled_from(CONFIDENCES))
def test_intervals_go_through_the_interval_decision(
    case: Case, lengths: list[int], confidence: float
) -> None:
    condition = CausalityCondition([*case.predicates, Temporal(-50, 150)], confidence=confidence)
    try:
        model = condition.model(Tick())
    except ConditionError:
        return
    sides = [
        replace(side, lengths=np.resize(np.array(lengths, np.int64), len(side)), group=None)
        for side in sides_of(case)
    ]
    assume(all(None not in event for event in (*case.causes, *case.effects)))
    rows = [
        [(t - length, t, where) for (t, where, _), length in zip(events, side.lengths, strict=True)]
        for events, side in zip((case.causes, case.effects), sides, strict=True)
    ]
    expected = reference.uncertain_causality(
        *rows, [*case.exact, reference.temporal(-50, 150)], confidence, range(-50, 151)
    )
    for way in WAYS:
        assert pairs_of(CausalityJoin(*sides, model, way=way)) == expected


def moved(events: PlacedEvents, ticks: int, by: float) -> PlacedEvents:
    assert events.points is not None
    return replace(
        events,
        times=events.times + ticks,
        points=events.points + by * np.eye(len(events.points))[:, :1],
    )


@settings(max_examples=40)
@given(plane_cases(), st.sampled_from([1, -(10**17), 2**60]))
def test_shifting_all_events_changes_nothing(case: Case, ticks: int) -> None:
    model, sides = model_of(case), sides_of(case)
    expected = pairs_of(CausalityJoin(*sides, model))
    shifted = [moved(side, ticks, 4096.0) for side in sides]
    for way in WAYS:
        assert pairs_of(CausalityJoin(*shifted, model, way=way)) == expected


@settings(max_examples=40)
@given(plane_cases(), st.integers(-9, 0), st.integers(0, 9))
def test_swapping_the_sides_mirrors_the_window(case: Case, lo: int, hi: int) -> None:
    sides = sides_of(case)
    there = CausalityCondition([Temporal(lo, hi), Spatial(4)]).model(Tick())
    back = CausalityCondition([Temporal(-hi, -lo), Spatial(4)]).model(Tick())
    swapped = pairs_of(CausalityJoin(*sides[::-1], back))
    assert pairs_of(CausalityJoin(*sides, there)) == sorted((i, j) for j, i in swapped)


@settings(max_examples=40)
@given(plane_cases())
def test_axes_may_change_places(case: Case) -> None:
    model, sides = model_of(case), sides_of(case)
    turned = [replace(side, points=side.points[::-1].copy()) for side in sides]
    for way in WAYS:
        found = pairs_of(CausalityJoin(*turned, model, way=way))
        assert found == pairs_of(CausalityJoin(*sides, model, way=way))


def some_events(seed: int, n: int, extent: float = 10.0) -> PlacedEvents:
    rng = np.random.default_rng(seed)
    return PlacedEvents(rng.integers(0, 20 * n, n), rng.random((3, n)) * [[extent], [extent], [0]])


def brute(causes: PlacedEvents, effects: PlacedEvents, model: CausalityModel) -> Pairs:
    """All pairs of a window and a radius, by NumPy."""
    assert causes.points is not None
    assert effects.points is not None
    delta = effects.times[None, :] - causes.times[:, None]
    gap = ((effects.points[:, None, :] - causes.points[:, :, None]) ** 2).sum(axis=0)
    met = (delta >= model.rule.lo) & (delta <= model.rule.hi) & (gap <= model.rule.near)
    return list(zip(*map(np.ndarray.tolist, np.nonzero(met)), strict=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_cells_runs_and_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 16)
    causes, effects = some_events(1, 1500), some_events(2, 1800)
    model = CausalityCondition([Temporal(0, 4000), Spatial(0.7)]).model(Tick())
    expected = brute(causes, effects, model)
    assert len(expected) > 1000
    for way in WAYS:
        join = CausalityJoin(causes, effects, model, way=way, threads=threads)
        check_join(join, expected, 500)
    assert CausalityJoin(causes, effects, model).way == "grid"


def test_a_grid_tests_few_candidates() -> None:
    causes, effects = some_events(1, 3000), some_events(2, 3000)
    model = CausalityCondition([Temporal(0, 20_000), Spatial(0.7)]).model(Tick())
    counters = CausalityJoin(causes, effects, model).counters
    assert counters.probed <= 2.5 * counters.pairs


def test_places_are_seen_to_repeat() -> None:
    causes, effects = some_events(1, 300), some_events(2, 3000)
    assert causes.points is not None
    assert effects.points is not None
    effects = replace(effects, points=effects.points[:, np.arange(3000) % 20])
    model = CausalityCondition([Spatial(3), SpeedRange(0.001, 0.01, 5, per=None)]).model(Tick())
    join = CausalityJoin(causes, effects, model)
    assert (join.way, join.counters.probed) == ("place", 0)
    assert pairs_of(join) == pairs_of(CausalityJoin(causes, effects, model, way="grid"))


def test_times_alone_need_no_test() -> None:
    causes, effects = some_events(1, 300), some_events(2, 300)
    model = CausalityCondition(Temporal(0, 500)).model(Tick())
    bare = [replace(side, points=None) for side in (causes, effects)]
    for sides in ((causes, effects), bare):
        join = CausalityJoin(*sides, model)
        assert (join.way, join.counters.probed) == ("time", 0)
        assert pairs_of(join) == brute(causes, effects, model)


def test_by_time_the_window_bounds_what_is_tested() -> None:
    """Speeds give a window only with the radius, which ends it on both sides."""
    causes, effects = some_events(1, 300), some_events(2, 300)
    speeds = SpeedRange(0.001, 0.1, 5, per=None)
    model = CausalityCondition([speeds, Spatial(1)]).model(Tick())
    lo, hi = model.window
    delta = effects.times[None, :] - causes.times[:, None]
    in_window = int(((delta >= lo) & (delta <= hi)).sum())
    join = CausalityJoin(causes, effects, model, way="time")
    assert join.counters.pairs <= join.counters.candidates <= in_window < delta.size / 2


def test_events_that_match_nothing_do_not_stretch_time() -> None:
    causes, effects = some_events(1, 3000), some_events(2, 3000)
    model = CausalityCondition([Temporal(0, 20_000), Spatial(0.7)]).model(Tick())
    group = np.zeros(3000, np.int64)
    lost = np.where(np.arange(3000) == 5, -1, group)
    times = np.where(lost < 0, 0, effects.times + 10**15)
    late = replace(causes, times=causes.times + 10**15, group=group)
    join = CausalityJoin(late, replace(effects, times=times, group=lost), model)
    assert join.way == "grid"
    assert join.counters.probed <= 2.5 * join.counters.pairs


def test_simultaneous_events_of_one_place() -> None:
    n = 5000
    events = PlacedEvents(np.zeros(n, np.int64), np.zeros((3, n)))
    model = CausalityCondition([Temporal(0, 0), Spatial(0)]).model(Tick())
    for way in WAYS:
        join = CausalityJoin(events, None, model, way=way)
        assert int(join.counts.sum()) == n * (n - 1) // 2


@pytest.mark.parametrize("way", WAYS)
def test_the_ends_of_time_and_space(way: Any) -> None:
    times, far = [2**61 - 1, -(2**61) + 1, 0], [1e100, -1e100, 0.0]
    events = [(time, (x,), "a") for time, x in zip(times, far, strict=True)]
    conditions = [
        (Spatial(1e100), reference.spatial(1e100)),
        (SpeedRange(1e-90, 1e90, 3, per=None), reference.speed_range(1e-90, 1e90, 3, 3)),
        (Temporal(None, 2**61 - 1), reference.temporal(None, 2**61 - 1)),
        (Ellipsoidal(1e100, 2**61 - 1), reference.ellipsoidal(1e100, 2**61 - 1)),
    ]
    for chosen in ([0, 1], [0, 2], [0, 3], [1, 2], [0, 1, 2, 3]):
        predicates, exact = ([conditions[k][n] for k in chosen] for n in range(2))
        case = Case(events, events, predicates, exact, Plane())
        found = CausalityJoin(*sides_of(case), model_of(case), way=way)
        assert pairs_of(found) == exact_pairs(case)


def test_measures() -> None:
    causes = PlacedEvents(np.array([10, 20]), Plane((2.0, 1.0)).points([np.array([0.0, 1.0])] * 2))
    effects = PlacedEvents(np.array([13]), Plane((2.0, 1.0)).points([np.array([1.5])] * 2))
    model = CausalityCondition(Spatial(9)).model(Tick())
    join = CausalityJoin(causes, effects, model)
    delta, distance = join.measured(np.array([0, 1]), np.array([0, 0]))
    assert delta.tolist() == [3, -7]
    assert distance.tolist() == [math.sqrt(9 + 2.25), math.sqrt(1 + 0.25)]
    bare = [PlacedEvents(side.times) for side in (causes, effects)]
    delta, distance = CausalityJoin(
        *bare, CausalityCondition(Temporal(0, 9)).model(Tick())
    ).measured(np.array([0]), np.array([0]))
    assert (delta.tolist(), distance.tolist()) == ([3], [])


@pytest.mark.parametrize("empty", [(0, 5), (5, 0), (0, 0)])
def test_empty_sides(empty: tuple[int, int]) -> None:
    sides = [some_events(k, n) for k, n in enumerate(empty)]
    model = CausalityCondition([Spatial(2), Temporal(0, 10)]).model(Tick())
    for way in WAYS:
        check_join(CausalityJoin(*sides, model, way=way), [])
