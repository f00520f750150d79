"""The way in which causes meet effects, chosen from the data: by place, by grid, or by time only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from coincide.model.causality.buckets import (
    Buckets,
    cell_numbers,
    extent,
    gallop,
    gap_between,
    height_between,
    in_buckets,
)
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.deciding import PairRule, squared_distance, window_between
from coincide.model.causality.grid import Grid, make_grid, one_cell
from coincide.model.causality.spaces import PlacedEvents, no_points
from coincide.model.causality.template_rule import TemplateRule, deciding_rule
from coincide.model.compiled import Int64s, compiled
from coincide.model.units import UNBOUNDED

_SAMPLE = 2048


class Links(NamedTuple):
    """The places of effects that each place of a cause can have, and at what deltas."""

    starts: Int64s  # int64, shape (places of causes + 1,): first link of each place
    targets: np.ndarray  # int64, shape (links,): places of effects
    windows: np.ndarray  # int64, shape (links, 2): least and most delta, ticks


class Places(NamedTuple):
    """The distinct places of a side's events."""

    numbers: np.ndarray  # int64, shape (n,)
    rows: np.ndarray  # int64, shape (count,): an event at each place


def repeats(points: np.ndarray, group: np.ndarray) -> bool:
    """Whether places repeat, by a sample: half of it or more has been seen before."""
    step = max(1, group.size // _SAMPLE)
    some, codes = (np.ascontiguousarray(each[..., ::step]) for each in (points, group))
    return bool(2 * _numbered(some.view(np.uint64), codes)[1].size <= codes.size)


def numbered_places(points: np.ndarray, group: np.ndarray) -> Places:
    """Number the places of events."""
    numbers, rows = _numbered(points.view(np.uint64), group)
    order = np.argsort(group[rows], kind="stable")
    renumbered = np.empty(rows.size + 1, np.int64)
    renumbered[order] = np.arange(rows.size)
    renumbered[rows.size] = rows.size
    return Places(renumbered[numbers], rows[order])


@compiled(allocates=True)
def _numbered(points, group):
    """Numbers of places in the order in which they come, and the first row of each: a hash table."""
    n = group.size
    slots = 64
    while slots < 2 * n:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    numbers, rows = np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for i in range(n):
        if group[i] < 0:
            numbers[i] = -1
            continue
        key = np.uint64(group[i])
        for d in range(points.shape[0]):
            key = (key ^ points[d, i]) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        slot = np.int64(key & np.uint64(slots - 1))
        while table[slot] >= 0 and not _same(points, group, rows[table[slot]], i):
            slot = (slot + 1) & (slots - 1)
        if table[slot] < 0:
            table[slot] = count
            rows[count] = i
            count += 1
        numbers[i] = table[slot]
    for i in range(n):
        if numbers[i] < 0:
            numbers[i] = count
    return numbers, rows[:count].copy()


@compiled(forceinline=True)
def _same(points, group, i, j):
    same = group[i] == group[j]
    for d in range(points.shape[0]):
        same &= points[d, i] == points[d, j]
    return same


def pairs_of_places(own: np.ndarray, others: np.ndarray, groups: int) -> int:
    """How many pairs of places have one group, of the groups of both sides' places."""
    counts = [np.bincount(each, minlength=groups).astype(np.float64) for each in (own, others)]
    return int(np.dot(*counts))


@compiled(allocates=True)
def link_places(rule, own, own_group, others, others_group, margins, least):
    """The links of all pairs of places."""
    starts, first = np.zeros(own_group.size + 1, np.int64), np.int64(0)
    for p in range(own_group.size):
        first = gallop(others_group, first, others_group.size, own_group[p])
        last = gallop(others_group, first, others_group.size, own_group[p] + 1)
        near = 0
        for q in range(first, last):
            near += gap_between(own, p, others, q) <= rule.near
        starts[p + 1] = starts[p] + near
    targets, windows = np.empty(starts[-1], np.int64), np.empty((starts[-1], 2), np.int64)
    count, first = 0, np.int64(0)
    for p in range(own_group.size):
        first = gallop(others_group, first, others_group.size, own_group[p])
        last = gallop(others_group, first, others_group.size, own_group[p] + 1)
        starts[p] = count
        for q in range(first, last):
            gap = gap_between(own, p, others, q)
            if not gap <= rule.near:
                continue
            distance2 = squared_distance(rule.curvature, gap, height_between(own, p, others, q))
            if not distance2 <= rule.bound:
                continue
            lo, hi = window_between(rule, distance2, distance2)
            if lo > hi:
                continue
            lo, hi = max(lo - margins[0], least), min(hi + margins[1], UNBOUNDED)
            if lo <= hi:
                targets[count], windows[count, 0], windows[count, 1] = q, lo, hi
                count += 1
    starts[own_group.size] = count
    return Links(starts, targets[:count].copy(), windows[:count].copy())


LayoutKind = Literal["place", "grid", "time"]

_LINKS_PER_EVENT = 4
"""By place, when pairs of places are at most this times the events: each costs a window, two searches."""

_FINE, _COARSE = 2, 1
"""This many cells make a reach."""
_FEW = 1.0
"""Effects in a fine cell and a window below which visiting cells takes longer than testing them."""

_TESTS_PER_VISIT = 12
"""Distances that are computed one after the other in the time of visiting one cell."""

_EMPTY, _EMPTY_PAIRS = np.empty(0, np.int64), np.empty((0, 2), np.int64)
Run = Callable[[list[Callable[[], Any]]], list[Any]]


def choose_layout(
    causes: PlacedEvents,
    effects: PlacedEvents | None,
    model: CausalityModel,
    *,
    way: LayoutKind | None,
    run: Run,
) -> tuple[LayoutKind, Sides]:
    """Put both sides in buckets, by the way that suits them."""
    sides = (causes,) if effects is None or effects is causes else (causes, effects)
    self_join = effects is None or causes.ranks is not None
    placed = all(side.points is not None for side in sides)
    if placed and not model.rule.is_temporal and way in (None, "place"):
        found = _by_place(sides, model, self_join, way is None, run)
        if found is not None:
            return "place", found
    grid = None
    if placed and model.reach < np.inf and way in (None, "grid"):
        grid = _grid(sides, model, chosen=way is not None)
    cells = grid or one_cell(model.window, causes.groups)
    return ("time" if grid is None else "grid"), _by_cell(sides, model, self_join, cells, run)


def _by_place(
    sides: Sequence[PlacedEvents],
    model: CausalityModel,
    self_join: bool,
    only_if_it_pays: bool,
    run: Run,
) -> Sides | None:
    groups = [side.codes for side in sides]
    points: list[np.ndarray] = [side.points for side in sides]  # type: ignore[misc]
    if only_if_it_pays and not any(map(repeats, points, groups)):
        return None
    found = run([partial(numbered_places, *each) for each in zip(points, groups, strict=True)])
    own, others = found[0], found[-1]
    own_group, others_group = groups[0][own.rows], groups[-1][others.rows]
    pairs = pairs_of_places(own_group, others_group, sides[0].groups)
    if only_if_it_pays and pairs > _LINKS_PER_EVENT * (len(sides[0]) + len(sides[-1])):
        return None
    margins, sure = _margins(sides[0], sides[-1])
    places = [
        np.ascontiguousarray(where[:, each.rows])
        for where, each in ((points[0], own), (points[-1], others))
    ]
    links = link_places(
        model.rule, places[0], own_group, places[1], others_group,
        margins, 0 if self_join else -UNBOUNDED,
    )  # fmt: skip
    buckets = run(
        [
            partial(in_buckets, side, places.numbers, places.rows.size)
            for side, places in zip(sides, found, strict=True)
        ]
    )
    most = int(np.diff(links.starts).max(initial=0))
    layout = Layout(
        True,
        sure,
        self_join,
        most,
        model.rule.near,
        False,
        _EMPTY,
        _EMPTY,
        _EMPTY_PAIRS.reshape(0, 0, 2),
        *links,
    )
    return Sides(buckets[0], buckets[-1], layout, deciding_rule(model, sides[0], sides[-1]))


def _by_cell(
    sides: Sequence[PlacedEvents],
    model: CausalityModel,
    self_join: bool,
    grid: Grid,
    run: Run,
) -> Sides:
    margins, exact = _margins(sides[0], sides[-1])
    sure = exact and model.rule.is_temporal
    buckets = run([partial(_cells, side, grid) for side in sides])
    plain = exact and not model.rule.measured
    gap = model.rule.near if plain else min(model.rule.near, grid.gap)
    near = grid.neighbours
    slabs = near.slabs.copy()
    possible = slabs[..., 0] <= slabs[..., 1]
    least = 0 if self_join else -UNBOUNDED
    slabs[possible, 0] = np.maximum(slabs[possible, 0] - margins[0], least)
    slabs[possible, 1] = np.minimum(slabs[possible, 1] + margins[1], UNBOUNDED)
    layout = Layout(
        False, sure, self_join, int(near.widths.sum()), gap, plain, near.offsets, near.widths,
        slabs, _EMPTY, _EMPTY, _EMPTY_PAIRS,
    )  # fmt: skip
    return Sides(buckets[0], buckets[-1], layout, deciding_rule(model, sides[0], sides[-1]))


def _cells(events: PlacedEvents, grid: Grid) -> Buckets:
    is_split = events.points is not None and bool(grid.numbers.per_unit.any())
    points: Any = events.points if is_split else no_points()
    if is_split or events.group is not None:
        numbers = cell_numbers(grid.numbers, points, events.codes, grid.most)
    else:
        numbers = np.zeros(len(events), np.int64)
    return in_buckets(events, numbers, grid.most)


def _grid(sides: Sequence[PlacedEvents], model: CausalityModel, chosen: bool) -> Grid | None:
    """The grid that serves best; None where all lie in one cell, or times alone leave few candidates."""
    extents = [extent(side.points, side.codes) for side in sides]
    low = np.minimum(extents[0][0], extents[-1][0])
    high = np.maximum(extents[0][1], extents[-1][1])
    groups = sides[0].groups
    fine = make_grid(model.rule, model.reach, low, high, groups, _FINE)
    candidates = _effects_in_a_window(sides[-1], model)
    found = fine
    if fine is not None and candidates / fine.cells < _FEW:
        found = make_grid(model.rule, model.reach, low, high, groups, _COARSE)
    if found is None or chosen or candidates > _TESTS_PER_VISIT * found.neighbours.widths.sum():
        return found
    return None


def _effects_in_a_window(effects: PlacedEvents, model: CausalityModel) -> float:
    """How many effects of a group are in the window of a cause, if they are spread evenly."""
    lo, hi = model.window
    # Those that match nothing have whatever time.
    times = effects.times if effects.group is None else effects.times[effects.group >= 0]
    duration = float(np.ptp(times)) + 1.0 if times.size else 1.0
    share = min(1.0, (float(hi) - float(lo) + 1.0) / duration)
    return times.size * share / effects.groups


def _margins(causes: PlacedEvents, effects: PlacedEvents) -> tuple[tuple[int, int], bool]:
    """By how much interval timestamps widen every window, and whether any is an interval."""
    exact = causes.lengths is None and effects.lengths is None
    return (causes.longest, effects.longest), exact


class Layout(NamedTuple):
    """How the buckets of causes and of effects lie to each other."""

    by_place: bool
    sure: bool  # Whether every pair within a window qualifies: nothing is tested
    self_join: bool
    most: int  # Most links of a bucket
    gap: float  # The largest |x - y|² of a pair that can qualify
    plain: bool  # Whether within a window this is all that is asked
    offsets: Int64s
    widths: Int64s
    slabs: np.ndarray
    starts: Int64s
    targets: Int64s
    windows: np.ndarray


class Sides(NamedTuple):
    """Both sides of a join, as `choose_layout` lays them out."""

    base: Buckets
    targets: Buckets
    layout: Layout
    rule: PairRule | TemplateRule  # Decides pairs: `coincide.model.timestamps.protocol.Rule`
