"""Sorted buffers: the base events in processing order, the target events per class and group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.compiled import compiled
from coincide.length_classes import LengthClasses
from coincide.timestamps import IntervalEvents


class BaseBuffer(NamedTuple):
    """Base events sorted by (group, midpoint); events of no group last.

    Parameters
    ----------
    order : int64 array, shape (n,)
        Row of each event in the caller's arrays.
    midpoints, lengths : int64 arrays, shape (n,)
        Doubled midpoints (half ticks) and lengths (ticks).
    classes : uint8 array, shape (n,)
        Length class of each event.
    offsets : int64 array, shape (groups + 1,)
        First event of each group.
    """

    order: np.ndarray
    midpoints: np.ndarray
    lengths: np.ndarray
    classes: np.ndarray
    offsets: np.ndarray


class TargetBuffer(NamedTuple):
    """Target events sorted by (class, group, midpoint). Fields as `BaseBuffer`.

    ``offsets`` has shape (K2, groups + 1): the first event of each group within each class.
    """

    order: np.ndarray
    midpoints: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray


class OrderedEvents(NamedTuple):
    """Events of one side by midpoint. Fields as `BaseBuffer`."""

    order: np.ndarray
    midpoints: np.ndarray
    lengths: np.ndarray


def ordered(events: IntervalEvents) -> OrderedEvents:
    """Sort events by midpoint, equal ones by row: one order on every machine and backend."""
    if _is_ordered(events.min_time, events.max_time):
        order = np.arange(len(events))
    else:
        # Stable: quick where order is nearly there already, or in runs, and ties keep their order.
        order = np.argsort(events.midpoints, kind="stable")
    return OrderedEvents(order, *_gathered_times(events.min_time, events.max_time, order))


def base_buffer(
    events: IntervalEvents, by_midpoint: OrderedEvents, classes: LengthClasses
) -> BaseBuffer:
    """Put base events in processing order.

    Parameters
    ----------
    events : IntervalEvents
    by_midpoint : OrderedEvents
        The same.
    classes : LengthClasses
        Of these events.
    """
    offsets = np.array([0, len(events)], np.int64)
    if events.group is not None:
        group = _bucket_or_last(events.group, events.groups)
        by_midpoint, offsets = _by_bucket(by_midpoint, group[by_midpoint.order], events.groups)
    order, midpoints, lengths = by_midpoint
    return BaseBuffer(order, midpoints, lengths, classes.assign(lengths), offsets)


def target_buffer(
    events: IntervalEvents, by_midpoint: OrderedEvents, classes: LengthClasses
) -> TargetBuffer:
    """Sort target events into length classes and groups. Arguments as `base_buffer`."""
    groups = events.groups
    if classes.count == 1 and events.group is None:
        order, midpoints, lengths = by_midpoint
        return TargetBuffer(order, midpoints, lengths, np.array([[0, len(events)]], np.int64))
    buckets = classes.assign(by_midpoint.lengths).astype(np.int64)
    if events.group is not None:
        _fold_groups(buckets, events.group[by_midpoint.order], groups, classes.count)
    (order, midpoints, lengths), bounds = _by_bucket(by_midpoint, buckets, classes.count * groups)
    # Bucket k * groups + g ends where the next begins, also across classes.
    offsets = np.empty((classes.count, groups + 1), np.int64)
    offsets[:, :-1] = bounds[:-1].reshape(classes.count, groups)
    offsets[:, -1] = bounds[groups::groups]
    return TargetBuffer(order, midpoints, lengths, offsets)


@compiled
def _is_ordered(min_time, max_time):
    for i in range(1, min_time.size):
        if min_time[i] + max_time[i] < min_time[i - 1] + max_time[i - 1]:
            return False
    return True


@compiled
def _gathered_times(min_time, max_time, order):
    """Midpoints and lengths in an order: in one pass, since fresh memory is dear."""
    midpoints, lengths = np.empty(order.size, np.int64), np.empty(order.size, np.int64)
    for i in range(order.size):
        low, high = min_time[order[i]], max_time[order[i]]
        midpoints[i] = low + high
        lengths[i] = high - low
    return midpoints, lengths


@compiled
def _bucket_or_last(group, groups):
    buckets = np.empty(group.size, np.int64)
    for i in range(group.size):
        buckets[i] = group[i] if group[i] >= 0 else groups
    return buckets


@compiled
def _fold_groups(buckets, group, groups, classes):
    for i in range(buckets.size):
        buckets[i] = buckets[i] * groups + group[i] if group[i] >= 0 else classes * groups


@compiled
def _by_bucket(events, bucket, buckets):
    """Stable counting sort by bucket; events of bucket `buckets` go last, unlisted."""
    bounds = np.zeros(buckets + 2, np.int64)
    for b in bucket:
        bounds[b + 1] += 1
    for b in range(buckets + 1):
        bounds[b + 1] += bounds[b]
    place = bounds.copy()
    n = bucket.size
    order, midpoints, lengths = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    for i in range(n):
        at = place[bucket[i]]
        place[bucket[i]] = at + 1
        order[at] = events.order[i]
        midpoints[at] = events.midpoints[i]
        lengths[at] = events.lengths[i]
    return OrderedEvents(order, midpoints, lengths), bounds[: buckets + 1].copy()
