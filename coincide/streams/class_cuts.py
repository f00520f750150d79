"""Length classes of a stream: cut by the events seen first, but open to every declared length."""

from __future__ import annotations

import numpy as np

from coincide.length_classes import LengthClasses, length_classes
from coincide.streams.options import SideLimits

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
