"""Sorted buffers of both sides, and the places of base events among the targets."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coincide.model.bands import INNER_HI, INNER_LO, OUTER_LO
from coincide.model.classes import ShapeClasses
from coincide.model.compiled import compiled
from coincide.model.ordering import stable_order
from coincide.model.threads import blocks_of, kept_busy, run_tasks
from coincide.model.timestamps.protocol import Events


class BaseBuffer(NamedTuple):
    """Base events sorted by (group, key); events of no group last.

    Arrays of shape (n,), but for the first event of each group, shape (groups + 1,).
    """

    order: np.ndarray
    keys: np.ndarray
    shapes: np.ndarray
    classes: np.ndarray
    offsets: np.ndarray


class TargetBuffer(NamedTuple):
    """Target events sorted by (class, group, key). Fields as `BaseBuffer`.

    ``offsets`` has shape (K2, groups + 1): the first event of each group within each class.
    """

    order: np.ndarray
    keys: np.ndarray
    shapes: np.ndarray
    offsets: np.ndarray


class Sides(NamedTuple):
    """Both sides of a join, as the kernels take them."""

    base: BaseBuffer
    targets: TargetBuffer
    bands: np.ndarray
    rule: Any


class OrderedEvents(NamedTuple):
    """Events of one side by key. Fields as `BaseBuffer`."""

    order: np.ndarray
    keys: np.ndarray
    shapes: np.ndarray


def ordered(events: Events, threads: int = 1) -> OrderedEvents:
    """Sort events by key, equal ones by row: one order on every machine and backend."""
    times, n = events.times, len(events)
    threads = kept_busy(n, threads)
    order = np.arange(n) if _is_ordered(times, n) else stable_order(times.keys(), threads=threads)
    keys, shapes = np.empty(n, np.int64), np.empty(n, np.int64)
    given = times, order, keys, shapes
    run_tasks([partial(_gather, *block, *given) for block in blocks_of(n, threads)], threads)
    return OrderedEvents(order, keys, shapes)


def base_buffer(events: Events, by_key: OrderedEvents, classes: ShapeClasses) -> BaseBuffer:
    """Put base events in processing order."""
    offsets = np.array([0, len(events)], np.int64)
    if events.group is not None:
        group = _bucket_or_last(events.group, events.groups)
        by_key, offsets = _by_bucket(by_key, group[by_key.order], events.groups)
    order, keys, shapes = by_key
    return BaseBuffer(order, keys, shapes, classes.assign(shapes), offsets)


def target_buffer(events: Events, by_key: OrderedEvents, classes: ShapeClasses) -> TargetBuffer:
    """Sort target events into classes and groups. Arguments as `base_buffer`."""
    groups = events.groups
    if classes.count == 1 and events.group is None:
        return TargetBuffer(*by_key, np.array([[0, len(events)]], np.int64))
    buckets = classes.assign(by_key.shapes).astype(np.int64)
    if events.group is not None:
        _fold_groups(buckets, events.group[by_key.order], groups, classes.count)
    by_key, bounds = _by_bucket(by_key, buckets, classes.count * groups)
    # Bucket k * groups + g ends where the next begins, also across classes.
    offsets = np.empty((classes.count, groups + 1), np.int64)
    offsets[:, :-1] = bounds[:-1].reshape(classes.count, groups)
    offsets[:, -1] = bounds[groups::groups]
    return TargetBuffer(*by_key, offsets)


@compiled
def _is_ordered(times, n):
    for i in range(1, n):  # noqa: SIM110 - a generator is not compiled
        if times.key_at(i) < times.key_at(i - 1):
            return False
    return True


@compiled
def _gather(start, stop, times, order, keys, shapes):
    """Keys and shapes in an order, places start ... stop: in one pass, since fresh memory is dear."""
    for i in range(start, stop):
        keys[i] = times.key_at(order[i])
        shapes[i] = times.shape_at(order[i])


@compiled(allocates=True)
def _bucket_or_last(group, groups):
    buckets = np.empty(group.size, np.int64)
    for i in range(group.size):
        buckets[i] = group[i] if group[i] >= 0 else groups
    return buckets


@compiled
def _fold_groups(buckets, group, groups, classes):
    for i in range(buckets.size):
        buckets[i] = buckets[i] * groups + group[i] if group[i] >= 0 else classes * groups


@compiled(allocates=True)
def _by_bucket(events, bucket, buckets):
    """Stable counting sort by bucket; events of bucket `buckets` go last, unlisted."""
    bounds = np.zeros(buckets + 2, np.int64)
    for b in bucket:
        bounds[b + 1] += 1
    for b in range(buckets + 1):
        bounds[b + 1] += bounds[b]
    place = bounds.copy()
    n = bucket.size
    order, keys, shapes = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        at = place[bucket[i]]
        place[bucket[i]] = at + 1
        order[at] = events.order[i]
        keys[at] = events.keys[i]
        shapes[at] = events.shapes[i]
    return OrderedEvents(order, keys, shapes), bounds[: buckets + 1].copy()


_RUN = 512
"""Base events placed together: enough to spread what a run costs, few enough to stay in the L1 cache."""

_RUN_OF_MANY, _MANY = 32, 16
"""More classes of targets than this are put together: what is noted of a run grows with both."""

_STEPS_BEFORE_GALLOP = 8


class Scratch(NamedTuple):
    """Working memory of one kernel call; `spans`, shape (run, K2, 4), is where events of a run are."""

    cursors: np.ndarray
    opened: np.ndarray
    starts: np.ndarray
    members: np.ndarray
    keys: np.ndarray
    reached: np.ndarray
    spans: np.ndarray


@compiled(allocates=True)
def new_scratch(bands):
    """Scratch for a band table."""
    run = _RUN if bands.shape[1] <= _MANY else max(_RUN_OF_MANY, _RUN * _MANY // bands.shape[1])
    opened = np.empty(bands.shape[0], np.int64)
    opened[:] = -1
    return Scratch(
        np.empty(bands.shape, np.int64),
        opened,
        np.empty(bands.shape[0] + 1, np.int64),
        np.empty(run, np.int64),
        np.empty(run, np.int64),
        np.empty(run, np.int64),
        np.empty((run, bands.shape[1], 4), np.int64),
    )


@compiled
def group_of(base, i):
    """The group of base event i, or the one before it."""
    # np.searchsorted takes four times as long to compile.
    low, high = 0, base.offsets.size
    while low < high:
        middle = (low + high) >> 1
        if base.offsets[middle] <= i:
            low = middle + 1
        else:
            high = middle
    return max(low - 1, 0)


@compiled(forceinline=True)
def next_group(base, group, i):
    """The group of base event i, at or after `group`; the number of groups for events of none."""
    while group < base.offsets.size - 1 and base.offsets[group + 1] <= i:
        group += 1
    return group


@compiled
def place_run(sides, scratch, group, start, stop):
    """Place the next run of base events of a group: fills `scratch.spans`; the end of the run."""
    base, targets, bands = sides.base, sides.targets, sides.bands
    end = min(stop, start + scratch.members.size, base.offsets[group + 1])
    _by_class(base, scratch, start, end)
    for k1 in range(bands.shape[0]):
        first, last = scratch.starts[k1], scratch.starts[k1 + 1]
        if first == last:
            continue
        if scratch.opened[k1] != group:
            scratch.opened[k1] = group
            for k2 in range(bands.shape[1]):
                scratch.cursors[k1, k2, :] = targets.offsets[k2, group]
        for k2 in range(bands.shape[1]):
            _place(targets, bands, scratch, group, k1, k2, first, last)
    return end


@compiled
def _by_class(base, scratch, start, end):
    """Take base events into the scratch, by class: `starts`, `members` and `keys`."""
    starts = scratch.starts
    classes = starts.size - 1
    starts[:] = 0
    if classes > 1:
        # Counted two entries on, so that placing the members turns the ends into the starts.
        for i in range(start, end):
            k = base.classes[i]
            if k + 2 <= classes:
                starts[k + 2] += 1
        for k in range(2, classes + 1):
            starts[k] += starts[k - 1]
        for i in range(start, end):
            k = base.classes[i]
            m = starts[k + 1]
            scratch.members[m] = i - start
            scratch.keys[m] = base.keys[i]
            starts[k + 1] += 1
    else:
        starts[1] = end - start
        for i in range(start, end):
            scratch.members[i - start] = i - start
            scratch.keys[i - start] = base.keys[i]


@compiled
def _place(targets, bands, scratch, group, k1, k2, first, last):
    """Place the members first ... last, of one class, among the targets of a class."""
    cursor, band = scratch.cursors[k1, k2], bands[k1, k2]
    keys, end = targets.keys, targets.offsets[k2, group + 1]
    origins, reached = scratch.keys[first:last], scratch.reached[: last - first]
    for c in range(4):
        low = c in (OUTER_LO, INNER_LO)
        # Where a shell is empty its two ends are one: `reached` stays.
        if c in (OUTER_LO, INNER_HI) or band[c] != band[c - 1]:
            bound = band[c] if low else band[c] + 1
            cursor[c] = reach(keys, cursor[c], end, origins, bound, reached)
        for m in range(last - first):
            scratch.spans[scratch.members[first + m], k2, c] = reached[m]


@compiled
def reach(keys, position, end, origins, bound, reached):
    """For sorted keys of base events, the first target whose key less theirs reaches `bound`."""
    # Targets are looked for from `position` to `end`. The difference is compared, not a sum:
    # differences of times below 2**61 cannot overflow.
    n = origins.size
    final = _advance(keys, position, end, origins[n - 1], bound)
    m = np.int64(0)
    if final - position > _STEPS_BEFORE_GALLOP * n:
        for i in range(n):
            position = _advance(keys, position, final, origins[i], bound)
            reached[i] = position
        return final
    # A merge without a branch to mispredict: each step passes a target or places an event.
    while position < final:
        passed = np.int64(keys[position] - origins[m] < bound)
        reached[m] = position
        position += passed
        m += 1 - passed
    reached[m:] = final
    return final


@compiled
def _advance(keys, position, end, origin, bound):
    """First position from `position` to `end` whose key - `origin` reaches `bound`: gallop."""
    step = np.int64(1)
    while position + step <= end and keys[position + step - 1] - origin < bound:
        position += step
        step *= 2
    low, high = position, min(end, position + step)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] - origin < bound:
            low = middle + 1
        else:
            high = middle
    return low
