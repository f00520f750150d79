"""Both sides of a join in device memory: sent, sampled, sorted, and put into classes and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from coincide.model.class_choice import strides_of_keys
from coincide.model.classes import ShapeClasses, length_sample
from coincide.model.timestamps.intervals import IntervalTimes
from coincide.model.timestamps.protocol import Events
from gpu_kernels.device.arrays import array_module, on_device, on_host
from gpu_kernels.device.columns import Lengths, Narrowed, narrow_type
from gpu_kernels.device.transfers import current
from gpu_kernels.kernels.join import Base, Targets


class OrderedEvents(NamedTuple):
    """Events of one side by key, equal keys by row. All arrays are in device memory."""

    order: Any  # int64, shape (n,): row of each event in the caller's arrays
    keys: Any  # int64, shape (n,): as their model gives them: `coincide.model.timestamps.protocol`
    shapes: Any  # int64, shape (n,)
    group: Any  # int64, shape (n,), or None: code of each event's keys, in the order of the rows
    are_instants: bool = False  # whether all events are known to begin as they end

    @property
    def size(self) -> int:
        """Number of events."""
        return self.shapes.size

    def classes_between(self, highest: np.ndarray) -> ShapeClasses:
        """As `ShapeClasses.between`."""
        xp = array_module()
        ascending = xp.sort(self.shapes)
        ends = xp.searchsorted(ascending, on_device(highest), side="right")
        starts = xp.append(xp.zeros(1, ends.dtype), ends[:-1])
        # Classes without events point anywhere.
        edges = (ascending[xp.minimum(each, self.size - 1)] for each in (starts, ends - 1))
        counts, low, high = on_host(xp.stack([ends - starts, *edges]))
        return ShapeClasses.of_extents(low, high, counts)

    def group_sizes(self, groups: int) -> Any:
        """Number of events in each group: int64 array, shape (groups,). The host waits for nothing."""
        xp = array_module()
        codes = _or_last(self.group, self.group, groups).astype(np.min_scalar_type(groups))
        bounds = xp.searchsorted(xp.sort(codes), xp.arange(groups + 1), side="left")
        return bounds[1:] - bounds[:-1]

    def sample(self, stride: int, groups: int, *, is_classified: bool) -> list[Any]:
        """The fields of `Sample`, on the device: those that are not needed are empty."""
        xp, none = array_module(), self.shapes[:0]
        if not self.size:
            return [none] * len(Sample._fields)
        shapes = length_sample(self.shapes, xp)
        up_to = above = sizes = none
        if is_classified and not self.are_instants:
            ascending = xp.sort(self.shapes)
            up_to = xp.searchsorted(ascending, shapes, side="right")
            above = ascending[xp.minimum(up_to, self.size - 1)]
        if is_classified and self.group is not None:
            sizes = self.group_sizes(groups)
        return [shapes, self.keys[::stride], up_to, above, sizes]


class Sample(NamedTuple):
    """What a choice of classes looks at, in host memory."""

    shapes: np.ndarray  # int64: `coincide.model.classes.length_sample`
    keys: np.ndarray  # int64: those of the stride of `strides_of_keys`
    up_to: np.ndarray  # int64, or empty: events whose shapes are at most each of `shapes`
    above: np.ndarray  # int64, or empty: the least shape above each of `shapes`, if there is one
    group_sizes: np.ndarray  # int64, or empty


class Sampled:
    """A side whose sample has been fetched: a `coincide.model.class_choice.Population`."""

    def __init__(self, events: OrderedEvents, sample: Sample) -> None:
        self._events, self._sample = events, sample
        self.size = events.size

    def shape_sample(self) -> np.ndarray:
        """As `Population`; so is what follows."""
        return self._sample.shapes

    def keys_apart(self, _stride: int) -> np.ndarray:
        """The keys that were fetched are those of this stride: `strides_of_keys`."""
        return self._sample.keys

    def group_shares(self, groups: int) -> np.ndarray | None:
        """None for one group; events of no group are counted, too, and left out."""
        if self._events.group is None:
            return None
        sizes = self._sample.group_sizes
        return (sizes if sizes.size else on_host(self._events.group_sizes(groups))) / self.size

    def classes_between(self, highest: np.ndarray) -> ShapeClasses:
        """The device is asked only for ends that are not in the sample."""
        shapes, _, up_to, above, _ = self._sample
        if self._events.are_instants:
            up_to, above = np.full(shapes.size, self.size), shapes
        values, at = np.unique(shapes, return_index=True)
        highest = np.minimum(highest, values[-1])
        places = np.searchsorted(values, highest)
        if not up_to.size or not np.array_equal(values[places], highest):
            return self._events.classes_between(highest)
        ends = up_to[at[places]]
        low = np.append(values[:1], above[at[places[:-1]]])
        return ShapeClasses.of_extents(low, highest, np.diff(ends, prepend=0))


Check = tuple[Any, Callable[[np.ndarray], None]]
"""A small int64 array that is fetched with samples, and what looks at it, and may raise."""


def sampled(
    left: OrderedEvents, right: OrderedEvents, groups: int, check: Check | None
) -> tuple[Sampled, Sampled]:
    """Both sides with their samples; these, and what is checked, are fetched at once."""
    sides = (left, right)
    strides = strides_of_keys(left.size, right.size)
    # Instants have one class.
    is_classified = not (left.are_instants and right.are_instants)
    parts = [
        part
        for side, stride in zip(sides, strides, strict=True)
        for part in side.sample(stride, groups, is_classified=is_classified)
    ]
    parts += [] if check is None else [check[0]]
    ends = np.cumsum([part.size for part in parts])
    found = np.split(on_host(array_module().concatenate(parts)), ends[:-1])
    if check is not None:
        check[1](found.pop())
    middle = len(Sample._fields)
    return Sampled(left, Sample(*found[:middle])), Sampled(right, Sample(*found[middle:]))


def ordered(*sides: Events) -> list[OrderedEvents]:
    """Copy sides to the device and sort each by key, while the next is copied."""
    sent = [_columns_of(side) for side in sides]
    groups = [[*times, *codes] for times, codes in sent]
    return [
        by_key(_arrived(side.times, times, arrived), *arrived[len(times) :])
        for side, (times, _), arrived in zip(sides, sent, current().send(*groups), strict=True)
    ]


def _columns_of(side: Events) -> tuple[list[Any], list[Any]]:
    """What is sent of the timestamps and the groups of a side: instants once, lengths in few bytes."""
    times, codes = list(side.times), [] if side.group is None else [side.group]
    if isinstance(side.times, IntervalTimes):
        times = times[1:] if times[0] is times[1] else [times[1], Lengths(side.times)]
    return times, [
        Narrowed(each) if narrow_type(side.groups) is np.int32 else each for each in codes
    ]


def _arrived(given: Any, sent: list[Any], arrived: list[Any]) -> Any:
    """The timestamps of a side, in device memory."""
    if not isinstance(given, IntervalTimes):
        return type(given)(*arrived[: len(sent)])
    last = arrived[0]
    if len(sent) == 1:
        return IntervalTimes(last, last)
    return IntervalTimes(
        last - arrived[1] if sent[1].fit else current().send_one(given.min_time), last
    )


def by_key(times: Any, group: Any | None = None) -> OrderedEvents:
    """Sort events, whose `Times` and group are given in device memory."""
    keys = times.keys()
    order = array_module().argsort(keys, kind="stable")
    group = group if group is None else group.astype(np.int64, copy=False)
    return OrderedEvents(order, keys[order], times.shapes()[order], group, times[0] is times[-1])


def base_buffer(events: OrderedEvents, groups: int, classes: ShapeClasses) -> tuple[Any, Base]:
    """Put base events in processing order."""
    offsets = on_device(np.array([0, events.size], np.int64))
    if events.group is not None:
        group = events.group[events.order]
        events, offsets = _by_bucket(events, _or_last(group, group, groups), groups)
    return events.order, Base(events.keys, events.shapes, _classes_of(events, classes), offsets)


def target_buffer(events: OrderedEvents, groups: int, classes: ShapeClasses) -> tuple[Any, Targets]:
    """Sort target events into classes and groups. Arguments and result as `base_buffer`."""
    if classes.count == 1 and events.group is None:
        offsets = on_device(np.array([[0, events.size]], np.int64))
        return events.order, _targets(events, offsets)
    buckets = _classes_of(events, classes).astype(np.int64)
    if events.group is not None:
        group = events.group[events.order]
        buckets = _or_last(group, buckets * groups + group, classes.count * groups)
    events, bounds = _by_bucket(events, buckets, classes.count * groups)
    offsets = array_module().empty((classes.count, groups + 1), np.int64)
    offsets[:, :-1] = bounds[:-1].reshape(classes.count, groups)
    # Bucket k * groups + g ends where the next begins, also across classes.
    offsets[:, -1] = bounds[groups::groups]
    return events.order, _targets(events, offsets)


def _targets(events: OrderedEvents, offsets: Any) -> Targets:
    return Targets(events.keys, events.keys, events.shapes, offsets)


def _classes_of(events: OrderedEvents, classes: ShapeClasses) -> Any:
    highest = on_device(classes.highest)
    return array_module().searchsorted(highest, events.shapes, side="left").astype(np.uint16)


def _or_last(group: Any, bucket: Any, last: int) -> Any:
    """The bucket of each event; the last for events of no group."""
    return array_module().where(group >= 0, bucket, last)


def _by_bucket(events: OrderedEvents, bucket: Any, buckets: int) -> tuple[OrderedEvents, Any]:
    """Sort by bucket, keeping the order within; events of bucket `buckets` go last, unlisted."""
    xp = array_module()
    # Few bytes a key make the sort fast.
    bucket = bucket.astype(np.min_scalar_type(buckets))
    place = xp.argsort(bucket, kind="stable")
    bounds = xp.searchsorted(bucket[place], xp.arange(buckets + 1), side="left")
    order, keys, shapes = events.order[place], events.keys[place], events.shapes[place]
    return OrderedEvents(order, keys, shapes, events.group), bounds.astype(np.int64)
