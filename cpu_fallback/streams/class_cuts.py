"""Length classes of a stream: cut by the events seen first, but open to every declared length."""

from __future__ import annotations

import numpy as np

from cpu_fallback.streams.options import SideLimits
from cpu_fallback.streams.state import Buffers, new_buffers
from event_model.length_classes import LengthClasses, length_classes

ENOUGH = 256
"""Events of a side to see before its lengths are cut into classes."""

DEFAULT_CLASSES = 6


def one_class(limits: SideLimits) -> LengthClasses:
    """All declared lengths: where classes are not cut yet."""
    return LengthClasses.one(limits.shortest, limits.longest)


def covering_classes(lengths: np.ndarray, most: int, limits: SideLimits) -> LengthClasses:
    """Classes that are narrow where the given lengths are many, and hold every declared length.

    Parameters
    ----------
    lengths : int64 array, shape (n,)
        Lengths seen so far, ticks; n > 0.
    most : int
        Upper limit on classes for the lengths seen. Where they take no more values than that, each
        value has a class of its own, and the gaps between have classes too, which may stay empty.
    limits : SideLimits
    """
    tight = length_classes(lengths, most)
    tops = set(tight.highest.tolist())
    if (tight.lowest == tight.highest).all():
        tops |= {low - 1 for low in tight.lowest.tolist() if low > limits.shortest}
    else:
        # What lies beyond the longest length seen is rare: it joins the last class.
        tops.discard(int(tight.highest[-1]))
    ends = sorted(tops | {limits.longest})
    lowest = [limits.shortest, *(end + 1 for end in ends[:-1])]
    return LengthClasses(
        np.array(lowest, np.int64), np.array(ends, np.int64), np.full(len(ends), 1 / len(ends))
    )


def live_lengths(buffers: Buffers, side: int) -> np.ndarray:
    """Lengths of the events in the buffers of a side: int64 array, shape (n,)."""
    return _gathered(buffers, side)[1]


def reclassed_buffers(buffers: Buffers, classes: tuple[LengthClasses, LengthClasses]) -> Buffers:
    """The same events in other classes; keys are doubled midpoints."""
    most = max(each.count for each in classes)
    sides = [_gathered(buffers, side) for side in (0, 1)]
    fresh = new_buffers(most, max(buffers.keys.shape[2], *(side[0].size for side in sides)))
    for side, (keys, lengths, numbers) in enumerate(sides):
        owner = np.searchsorted(classes[side].highest, lengths)
        for k in range(classes[side].count):
            rows = np.flatnonzero(owner == k)
            rows = rows[np.argsort(keys[rows], kind="stable")]
            fresh.ends[side, k] = 0, rows.size
            for new, old in zip(fresh[:3], (keys, lengths, numbers), strict=True):
                new[side, k, : rows.size] = old[rows]
    return fresh


def _gathered(buffers: Buffers, side: int) -> tuple[np.ndarray, ...]:
    """Keys, lengths and numbers of all live events of a side."""
    runs = [slice(start, stop) for start, stop in buffers.ends[side].tolist()]
    return tuple(
        np.concatenate([array[side, k, run] for k, run in enumerate(runs)]) for array in buffers[:3]
    )
