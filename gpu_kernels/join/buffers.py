"""Sorted buffers in device memory: the same as `cpu_fallback.join.buffers` makes, in the same order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.model.classes import ShapeClasses, length_sample
from coincide.model.timestamps.protocol import Events
from gpu_kernels.device.arrays import array_module, on_device, on_host
from gpu_kernels.device.transfers import current
from gpu_kernels.kernels.join import Base, Targets


class OrderedEvents(NamedTuple):
    """Events of one side by key, equal keys by row. All arrays are in device memory."""

    order: Any
    keys: Any
    shapes: Any
    group: Any

    # What follows makes it a population (coincide.model.class_choice.Population).

    @property
    def size(self) -> int:
        """Number of events."""
        return self.shapes.size

    def keys_apart(self, stride: int) -> np.ndarray:
        """Every so many of the keys, in host memory."""
        return on_host(self.keys[::stride].copy())

    def shape_sample(self) -> np.ndarray:
        """As `coincide.model.classes.length_sample`, in host memory."""
        return on_host(length_sample(self.shapes, array_module()))

    def classes_between(self, highest: np.ndarray) -> ShapeClasses:
        """As `ShapeClasses.between`."""
        ascending = array_module().sort(self.shapes)
        ends = on_host(array_module().searchsorted(ascending, on_device(highest), side="right"))
        starts = np.concatenate([[0], ends[:-1]])
        # Classes without events point anywhere.
        edges = on_host(ascending[on_device(np.minimum([starts, ends - 1], self.size - 1))])
        return ShapeClasses.of_extents(edges[0], edges[1], ends - starts)

    def group_shares(self, groups: int) -> np.ndarray | None:
        """Fraction of the events in each group, in host memory; None: one group."""
        if self.group is None:
            return None
        # Those of no group are counted, too, and left out: CuPy's earlier versions count none of none.
        codes = array_module().maximum(self.group, -1) + 1
        return on_host(array_module().bincount(codes, minlength=groups + 1))[1:] / self.size


def ordered(*sides: Events) -> list[OrderedEvents]:
    """Copy sides to the device and sort each by key, while the next is copied."""
    columns = [[*side.times, *([] if side.group is None else [side.group])] for side in sides]
    return [
        by_key(type(side.times)(*arrived[: len(side.times)]), *arrived[len(side.times) :])
        for side, arrived in zip(sides, current().send(*columns), strict=True)
    ]


def by_key(times: Any, group: Any | None = None) -> OrderedEvents:
    """Sort events, whose `Times` and group are given in device memory."""
    keys = times.keys()
    order = array_module().argsort(keys, kind="stable")
    return OrderedEvents(order, keys[order], times.shapes()[order], group)


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
