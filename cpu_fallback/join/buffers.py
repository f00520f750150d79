"""Sorted buffers: the base events in processing order, the target events per class and group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.compiled import compiled
from coincide.shape_classes import ShapeClasses
from coincide.timestamps.protocol import Events


class BaseBuffer(NamedTuple):
    """Base events sorted by (group, key); events of no group last.

    Parameters
    ----------
    order : int64 array, shape (n,)
        Row of each event in the caller's arrays.
    keys, shapes : int64 arrays, shape (n,)
        As their model gives them: `coincide.timestamps.protocol`.
    classes : uint16 array, shape (n,)
        Class of each event.
    offsets : int64 array, shape (groups + 1,)
        First event of each group.
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
    """Both sides of a join, as the kernels take them.

    Parameters
    ----------
    base : BaseBuffer
    targets : TargetBuffer
    bands : int64 array, shape (K1, K2, 4)
        Bounds on a target's key less a base event's: `coincide.timestamps.protocol.PairModel.bands`.
    rule : NamedTuple
        Decides pairs: `coincide.timestamps.protocol.Rule`.
    """

    base: BaseBuffer
    targets: TargetBuffer
    bands: np.ndarray
    rule: Any


class OrderedEvents(NamedTuple):
    """Events of one side by key. Fields as `BaseBuffer`."""

    order: np.ndarray
    keys: np.ndarray
    shapes: np.ndarray


def ordered(events: Events) -> OrderedEvents:
    """Sort events by key, equal ones by row: one order on every machine and backend."""
    times = events.times
    if _is_ordered(times, len(events)):
        order = np.arange(len(events))
    else:
        # Stable: quick where order is nearly there already, or in runs, and ties keep their order.
        order = np.argsort(times.keys(), kind="stable")
    return OrderedEvents(order, *_gathered(times, order))


def base_buffer(events: Events, by_key: OrderedEvents, classes: ShapeClasses) -> BaseBuffer:
    """Put base events in processing order.

    Parameters
    ----------
    events : Events
    by_key : OrderedEvents
        The same.
    classes : ShapeClasses
        Of these events.
    """
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


@compiled(allocates=True)
def _gathered(times, order):
    """Keys and shapes in an order: in one pass, since fresh memory is dear."""
    keys, shapes = np.empty(order.size, np.int64), np.empty(order.size, np.int64)
    for i in range(order.size):
        keys[i] = times.key_at(order[i])
        shapes[i] = times.shape_at(order[i])
    return keys, shapes


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
