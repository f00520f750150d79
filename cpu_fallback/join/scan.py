"""The join of spans that need no more than to begin and to end in time: a forward scan of starts.

Both sides are in order of starts. The targets that begin before a base event, and have not ended, are
at hand: the list of them changes little from one event to the next. Those that begin later follow one after
the other up to the last that begins in time. So each target that is looked at is a match (Bouros &
Mamoulis, 2017), and counts follow from sorted starts and ends alone. Kernels are called as those of
`cpu_fallback.join.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coincide.model.compiled import compiled, copy_into
from coincide.model.counters import offsets_of
from coincide.model.ordering import stable_order
from coincide.model.span_bounds import EndBounds
from coincide.model.threads import blocks_of, kept_busy, run_tasks
from cpu_fallback.join.buffers import group_of, next_group
from cpu_fallback.join.filtering import NOWHERE, is_better
from cpu_fallback.join.kernels import SURE


class SortedSpans(NamedTuple):
    """Spans of one side by (group, start); those that match nothing last."""

    order: np.ndarray  # int64, shape (n,): rows
    starts: np.ndarray  # int64, shape (n,): ticks
    stops: np.ndarray  # int64, shape (n,): ticks
    offsets: np.ndarray  # int64, shape (groups + 1,): the first of each group


class Ends(NamedTuple):
    """When the targets of each group end, in the order of `SortedSpans`."""

    latest: np.ndarray  # int64, ticks: of a target and those before it
    ascending: np.ndarray  # int64, ticks
    tops: np.ndarray  # int64, ticks: `_tops`; empty where all targets end in order


class ScannedSides(NamedTuple):
    """Both sides of a join, as the kernels take them."""

    base: SortedSpans
    targets: SortedSpans
    ends: Ends
    bounds: EndBounds
    rule: Any


def scanned_sides(
    left: Any, right: Any, bounds: EndBounds, rule: Any, threads: int
) -> ScannedSides:
    """Sort both sides; a stream that is joined with itself once."""
    given = [(left, bounds.left_shortest), (right, bounds.right_shortest)]
    alike = left is right and bounds.left_shortest == bounds.right_shortest
    tasks: list[Callable[[], Any]] = [partial(_sorted, *each, threads) for each in given[alike:]]
    sides = run_tasks(tasks, threads)
    return ScannedSides(sides[0], sides[-1], _ends_of(sides[-1], threads), bounds, rule)


def _sorted(events: Any, shortest: int, threads: int) -> SortedSpans:
    """Spans in order, equal ones by row; those that last less match nothing."""
    starts, stops, group = events.min_time, events.max_time, events.group
    threads = kept_busy(starts.size, threads)
    lasts = stops - starts >= shortest if shortest else None
    if group is not None or not (lasts is None or lasts.all()):
        code = np.zeros(starts.size, np.int64) if group is None else group
        matches = code >= 0 if lasts is None else (code >= 0) & lasts
        group = np.where(matches, code, events.groups)
    order = stable_order(starts, group, threads)
    counts = [starts.size] if group is None else np.bincount(group, minlength=events.groups)
    offsets = offsets_of(np.asarray(counts[: events.groups], np.int64))
    firsts = np.empty(order.size, np.int64)
    if _are_alike(starts, stops):
        given, lasts = (starts, starts), firsts
    else:
        given, lasts = (starts, stops), np.empty(order.size, np.int64)
    blocks = blocks_of(order.size, threads)
    run_tasks([partial(_gather, *b, *given, order, firsts, lasts) for b in blocks], threads)
    return SortedSpans(order, firsts, lasts, offsets)


def _ends_of(targets: SortedSpans, threads: int) -> Ends:
    offsets, stops = targets.offsets, targets.stops[: targets.offsets[-1]]
    none = np.empty(0, np.int64)
    if targets.stops is targets.starts:
        return Ends(stops, stops, none)
    latest = _latest(stops, offsets)
    if np.array_equal(latest, stops):
        return Ends(stops, stops, none)
    groups = offsets.size - 1
    group = np.repeat(np.arange(groups), np.diff(offsets)) if groups > 1 else None
    return Ends(latest, stops[stable_order(stops, group, threads)], _tops(stops))


@compiled
def _are_alike(starts, stops):
    """Whether no span lasts."""
    for i in range(starts.size):  # noqa: SIM110 - a generator is not compiled
        if starts[i] != stops[i]:
            return False
    return True


@compiled
def _gather(start, stop, starts, stops, order, firsts, lasts):
    """Starts and ends in an order, places start ... stop: in one pass, since fresh memory is dear."""
    for i in range(start, stop):
        firsts[i] = starts[order[i]]
        lasts[i] = stops[order[i]]


@compiled(allocates=True)
def _latest(stops, offsets):
    latest = stops.copy()
    for group in range(offsets.size - 1):
        for t in range(offsets[group] + 1, offsets[group + 1]):
            latest[t] = max(latest[t], latest[t - 1])
    return latest


_RUN = 64


def _tops(stops: np.ndarray) -> np.ndarray:
    """The latest end of each run of targets, of each two runs, each four, ...: a tree, its root at 1."""
    latest = np.maximum.reduceat(stops, np.arange(0, stops.size, _RUN))
    nodes = 1 << (latest.size - 1).bit_length()
    tops = np.full(2 * nodes, np.iinfo(np.int64).min)
    tops[nodes : nodes + latest.size] = latest
    while nodes > 1:
        below = tops[nodes : 2 * nodes]
        nodes //= 2
        tops[nodes : 2 * nodes] = np.maximum(below[::2], below[1::2])
    return tops


@compiled
def _next_run(tops, run, bound):
    """The first run, from a given one, with a target that does not end before a bound; or past all."""
    if tops.size == 0:
        return run
    runs = tops.size // 2
    node = run + runs
    while tops[node] < bound:
        while node & 1:  # the right one of two
            node >>= 1
        if node == 0:
            return runs
        node += 1
    while node < runs:
        node *= 2
        node += np.int64(tops[node] < bound)
    return node - runs


@compiled(allocates=True)
def count_block(start, stop, sides, counts):
    """Count the matches of the base events start ... stop: what begins in time, less what ends too soon."""
    tally = np.zeros(3, np.int64)
    base, targets, ends, bounds = sides.base, sides.targets, sides.ends, sides.bounds
    group = group_of(base, start)
    known = begun = gone = np.int64(-1)
    for i in range(start, stop):
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        low, high = targets.offsets[group], targets.offsets[group + 1]
        if group != known:
            known, begun, gone = group, low, low
        begun = _moved(targets.starts, begun, low, high, base.stops[i] + bounds.after_hi + 1)
        gone = _moved(ends.ascending, gone, low, high, base.starts[i] + bounds.before_lo)
        counts[i] = begun - gone
        tally[SURE] += counts[i]
    return tally


@compiled(allocates=True)
def fill_block(
    start, stop, sides, offsets, origin, base_values, target_values, base_out, target_out
):
    """Write the matches of the base events start ... stop, in order; the tally is that of `walk_block`."""
    tally = np.zeros(3, np.int64)
    base, targets, bounds = sides.base, sides.targets, sides.bounds
    # Or else the last ones of those at hand may begin too late for a short event.
    is_all = bounds.before_lo - bounds.after_hi <= bounds.left_shortest + 1
    hand, size = np.empty(0, np.int64), np.int64(0)
    group = group_of(base, start)
    known = later = reached = np.int64(-1)
    for i in range(start, stop):
        at, full = offsets[i] - origin, offsets[i + 1] - origin
        if at == full:
            continue
        group = next_group(base, group, i)
        low, high = targets.offsets[group], targets.offsets[group + 1]
        bound = base.starts[i] + bounds.before_lo
        if group != known:
            known, reached = group, low
            hand, size, later = _first_at_hand(sides, low, high, bound)
        if base_out.size:
            base_out[at:full] = base_values[i]
        hand, size, later = _at_hand(sides, hand, size, later, high, bound)
        begin = at + size
        if not is_all:
            last = base.stops[i] + bounds.after_hi + 1
            reached = _moved(targets.starts, reached, low, high, last)
            begin = full - max(reached - later, 0)
        for j in range(begin - at):
            target_out[at + j] = target_values[hand[j]]
        copy_into(target_out[begin:full], target_values[later : later + full - begin])
        tally[SURE] += full - at
    return tally


@compiled(allocates=True)
def best_block(start, stop, sides, ranks, best, merits):
    """Find the best match of the base events start ... stop."""
    # Ties go to the smaller distance, then to the smaller rank.
    tally = np.zeros(3, np.int64)
    best[:] = -1
    merits[:] = np.nan
    base, targets, bounds = sides.base, sides.targets, sides.bounds
    hand, size = np.empty(0, np.int64), np.int64(0)
    group = group_of(base, start)
    known = later = reached = np.int64(-1)
    for i in range(start, stop):
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            break
        low, high = targets.offsets[group], targets.offsets[group + 1]
        bound = base.starts[i] + bounds.before_lo
        if group != known:
            known, reached = group, low
            hand, size, later = _first_at_hand(sides, low, high, bound)
        hand, size, later = _at_hand(sides, hand, size, later, high, bound)
        reached = _moved(targets.starts, reached, low, high, base.stops[i] + bounds.after_hi + 1)
        top, least, found = 0.0, NOWHERE, np.int64(-1)
        for j in range(size + max(reached - later, 0)):
            t = hand[j] if j < size else later + j - size
            if t >= reached:
                continue
            tally[SURE] += 1
            merit, apart = _compared(sides, i, t)
            place = apart, ranks[t]
            if is_better(merit, place, top, least):
                top, least, found = merit, place, t
        best[i - start] = found
        if found >= 0:
            merits[i - start] = top
    return tally


_AT_HAND = 64


@compiled(allocates=True)
def _first_at_hand(sides, low, high, bound):
    """As `_at_hand`, of all targets of a group: very many may have ended, though not the first ones."""
    stops = sides.targets.stops
    hand, kept = np.empty(_AT_HAND, np.int64), np.int64(0)
    later = _moved(sides.targets.starts, low, low, high, bound)
    t = _moved(sides.ends.latest, low, low, later, bound)
    while t < later:
        run = _next_run(sides.ends.tops, t // _RUN, bound)
        t, end = max(t, run * _RUN), min(later, (run + 1) * _RUN)
        if kept + end - t > hand.size:
            more = np.empty(2 * (kept + end - t), np.int64)
            copy_into(more[:kept], hand[:kept])
            hand = more
        for begun in range(t, end):
            hand[kept] = begun
            kept += np.int64(stops[begun] >= bound)
        t = end
    return hand, kept, later


@compiled(allocates=True)
def _at_hand(sides, hand, size, later, high, bound):
    """Targets that begin before a bound and do not end before it, in order; the first that begins later."""
    stops, starts = sides.targets.stops, sides.targets.starts
    kept = np.int64(0)
    # Each is written, and only those that go on are kept: a branch would be mispredicted.
    for j in range(size):
        t = hand[j]
        hand[kept] = t
        kept += np.int64(stops[t] >= bound)
    # What comes before has all ended.
    first = _moved(sides.ends.latest, later, later, high, bound)
    later = _moved(starts, first, first, high, bound)
    if kept + later - first > hand.size:
        more = np.empty(2 * (kept + later - first), np.int64)
        copy_into(more[:kept], hand[:kept])
        hand = more
    for t in range(first, later):
        hand[kept] = t
        kept += np.int64(stops[t] >= bound)
    return hand, kept, later


@compiled(forceinline=True)
def _compared(sides, i, t):
    """Merit and distance of a pair."""
    base, targets = sides.base, sides.targets
    s = targets.stops[t] - base.stops[i]
    left, right = base.stops[i] - base.starts[i], targets.stops[t] - targets.starts[t]
    return sides.rule.merit(s, left, right), sides.rule.distance(s, left, right)


@compiled
def _moved(values, position, low, high, bound):
    """The first position from `low` to `high` whose value reaches `bound`: a gallop either way."""
    step = np.int64(1)
    if position < high and values[position] < bound:
        low = position + 1
        while low + step <= high and values[low + step - 1] < bound:
            low += step
            step *= 2
        high = min(high, low + step)
    else:
        high = position
        while high - step >= low and values[high - step] >= bound:
            high -= step
            step *= 2
        low = max(low, high - step)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
