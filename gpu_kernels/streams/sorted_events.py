"""Live events and blocks in device memory: by class, ascending by key within."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.results import offsets_of
from coincide.streams.shared import LiveEvents, Waiting
from gpu_kernels.device.arrays import array_module, on_device, on_host
from gpu_kernels.device.memory import take
from gpu_kernels.kernels import merging
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.layout import Sorted


class Live(NamedTuple):
    """The live events of one side.

    Parameters
    ----------
    events : Sorted
    ends : int64 array, shape (K, 2), in host memory
        First live position of each class, and the one past the last.
    """

    events: Sorted
    ends: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Live events of each class, in host memory: int64 array, shape (K,)."""
        return self.ends[:, 1] - self.ends[:, 0]

    def on_host(self) -> LiveEvents:
        """A copy in host memory. Takes no device memory."""
        keys, shapes, numbers = (_runs(on_host(array), self.ends, np) for array in self.events)
        return LiveEvents(keys, shapes, numbers, offsets_of(self.counts))

    def compact(self) -> Live:
        """The same without what obsolete events have left between the classes."""
        xp = array_module()
        size = int(self.counts.sum())
        out = Sorted(*(take(size, np.int64) for _ in Sorted._fields))
        for old, new in zip(self.events, out, strict=True):
            _runs(old, self.ends, xp, out=new)
        return Live(out, ends_of(offsets_of(self.counts)))


def _runs(array: Any, ends: np.ndarray, xp: Any, out: Any = None) -> Any:
    return xp.concatenate([array[start:stop] for start, stop in ends.tolist()], out=out)


def ends_of(offsets: np.ndarray) -> np.ndarray:
    """First and past last position of each class, from an exclusive scan: int64 array, shape (K, 2)."""
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def live_on_device(events: LiveEvents) -> Live | None:
    """Live events copied to the device; None if there are none."""
    if not events.keys.size:
        return None
    return Live(Sorted(*(on_device(array) for array in events[:3])), ends_of(events.offsets))


def arrived(side: int, count: int, waiting: Waiting, rule: Any | None) -> Sorted:
    """The events of a side that wait, copied to the device in order of arrival.

    Parameters
    ----------
    side, count : int
    waiting : Waiting
    rule : NamedTuple or None
        Gives their keys; None: doubled max_times.
    """
    max_times, shapes, numbers = (on_device(array[side, :count]) for array in waiting)
    keys = 2 * max_times
    return Sorted(keys if rule is None else keys - rule.lean(side, shapes), shapes, numbers)


def by_class(events: Sorted, tops: Any, classes: int) -> tuple[Sorted, Any]:
    """Sort by class, and by key within, stably.

    Parameters
    ----------
    events : Sorted
    tops : int64 array, shape (at most K,), in device memory
        Largest shape of each class.
    classes : int
        K; those beyond `tops` are empty.

    Returns
    -------
    Sorted
    int64 array, shape (K + 1,), in device memory
        First event of each class.
    """
    xp = array_module()
    order = xp.argsort(events.keys, kind="stable")
    # Few bytes a key make the second sort fast.
    owner = xp.searchsorted(tops, events.shapes[order], side="left").astype(np.uint16)
    if classes > 1:
        place = xp.argsort(owner, kind="stable")
        order, owner = order[place], owner[place]
    offsets = xp.searchsorted(owner, xp.arange(classes + 1), side="left").astype(np.int64)
    return Sorted(*(array[order] for array in events)), offsets


def merged(live: Live | None, block: Sorted, offsets: Any) -> Live:
    """Live events and a block of the same side, together; out of place.

    Parameters
    ----------
    live : Live or None
    block : Sorted
    offsets : int64 array, shape (K + 1,), in device memory
        First event of each class of the block.
    """
    new = on_host(offsets)
    if live is None:
        return Live(block, ends_of(new))
    before = offsets_of(live.counts)
    size = int(before[-1]) + block.keys.size
    out = Sorted(*(take(size, np.int64) for _ in Sorted._fields))
    launch_each(
        merging.merge, size, live.events, on_device(live.ends), on_device(before), block, offsets, out
    )  # fmt: skip
    return Live(out, ends_of(before + new))


def without_obsolete(live: Live, limit: int, keep: Any) -> tuple[Live | None, int]:
    """Let go of events whose keys are below limit + keep.

    Parameters
    ----------
    live : Live
    limit : int
        Half ticks.
    keep : int64 array, shape (K,), in device memory

    Returns
    -------
    Live or None
        None if nothing is left.
    int
        Events that go.
    """
    classes = live.ends.shape[0]
    first = take(classes, np.int64)
    ends = on_device(live.ends)
    launch_each(merging.first_live, classes, live.events.keys, ends, limit, keep, first)
    left = Live(live.events, np.stack([on_host(first), live.ends[:, 1]], axis=1))
    gone = int(live.counts.sum() - left.counts.sum())
    return (left if left.counts.any() else None), gone
