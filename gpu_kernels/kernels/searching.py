"""Binary searches that kernels call. They use nothing of `numba.cuda`, so any file may call them."""

from __future__ import annotations

import numpy as np

from gpu_kernels.kernels.compilation import device_function

at = np.uint64
"""Makes an index that cannot be negative: of others kernels test the sign, by four instructions."""

_NEAR = 4
"""From this many owners on, a search is no slower than going from one to the next."""


@device_function
def reach(keys, low, high, origin, bound):
    """First position from `low` to `high` whose key less `origin` reaches `bound`.

    The difference is compared, not a sum: differences of times below 2**61 cannot overflow.
    """
    while low < high:
        middle = (low + high) >> 1
        if keys[at(middle)] - origin < bound:
            low = middle + 1
        else:
            high = middle
    return low


@device_function
def owner_of(offsets, low, high, item):
    """The last owner, from `low` to before `high`, whose items begin at or before `item`.

    Owners without items are passed over, since the next one begins where they do.
    """
    return owner_apart(offsets, 1, low, high, item)


@device_function
def owner_apart(offsets, stride, low, high, item):
    """As `owner_of`, where every `stride`-th of the offsets is an owner's."""
    count = high - low
    while count > 1:
        half = count >> 1
        if offsets[at(stride * (low + half))] <= item:
            low += half
        count -= half
    return low


@device_function
def owner_after(offsets, stride, low, high, item):
    """As `owner_apart`, of an item past all those of `low`: most often the next owner's, or near.

    There is such an owner: `high` is not looked at before that.
    """
    for _ in range(_NEAR):
        low += 1
        if offsets[at(stride * (low + 1))] > item:
            return low
    return owner_apart(offsets, stride, low, high, item)
