"""Sorted buffers: the base events in processing order, the target events per class and group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from event_model.compiled import compiled
from event_model.length_classes import LengthClasses
from event_model.timestamps import IntervalEvents


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


def base_buffer(events: IntervalEvents, order: np.ndarray, classes: LengthClasses) -> BaseBuffer:
    """Put base events in processing order.

    Parameters
    ----------
    events : IntervalEvents
    order : int64 array, shape (n,)
        Rows by midpoint.
    classes : LengthClasses
        Of these events.
    """
    offsets = np.array([0, len(events)], np.int64)
    if events.group is not None:
        order, offsets = _by_bucket(
            order, _bucket_or_last(events.group, events.groups), events.groups
        )
    lengths = events.lengths[order]
    return BaseBuffer(order, events.midpoints[order], lengths, classes.assign(lengths), offsets)


def target_buffer(
    events: IntervalEvents, order: np.ndarray, classes: LengthClasses
) -> TargetBuffer:
    """Sort target events into length classes and groups. Arguments as `base_buffer`."""
    groups = events.groups
    lengths = events.lengths
    if classes.count == 1 and events.group is None:
        offsets = np.array([[0, len(events)]], np.int64)
    else:
        buckets = classes.assign(lengths).astype(np.int64)
        if events.group is not None:
            _fold_groups(buckets, events.group, groups, classes.count)
        order, bounds = _by_bucket(order, buckets, classes.count * groups)
        # Bucket k * groups + g ends where the next begins, also across classes.
        offsets = np.empty((classes.count, groups + 1), np.int64)
        offsets[:, :-1] = bounds[:-1].reshape(classes.count, groups)
        offsets[:, -1] = bounds[groups::groups]
    return TargetBuffer(order, events.midpoints[order], lengths[order], offsets)


def by_midpoint(events: IntervalEvents) -> np.ndarray:
    """Rows ordered by midpoint: int64 array, shape (n,)."""
    midpoints = events.midpoints
    if midpoints.size == 0 or bool((midpoints[1:] >= midpoints[:-1]).all()):
        return np.arange(midpoints.size)
    return np.argsort(midpoints)


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
def _by_bucket(order, bucket, buckets):
    """Stable counting sort of `order` by bucket; rows of bucket `buckets` go last, unlisted."""
    bounds = np.zeros(buckets + 2, np.int64)
    for b in bucket:
        bounds[b + 1] += 1
    for b in range(buckets + 1):
        bounds[b + 1] += bounds[b]
    place = bounds.copy()
    sorted_order = np.empty(order.size, np.int64)
    for row in order:
        b = bucket[row]
        sorted_order[place[b]] = row
        place[b] += 1
    return sorted_order, bounds[: buckets + 1].copy()
