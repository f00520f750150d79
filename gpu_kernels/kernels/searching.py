"""Binary searches that kernels call. They use nothing of `numba.cuda`, so any file may call them."""

from __future__ import annotations

from gpu_kernels.kernels.compilation import device_function


@device_function
def reach(keys, low, high, origin, bound):
    """First position from `low` to `high` whose key less `origin` reaches `bound`.

    The difference is compared, not a sum: differences of times below 2**61 cannot overflow.
    """
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] - origin < bound:
            low = middle + 1
        else:
            high = middle
    return low


@device_function
def owner_of(offsets, low, high, item):
    """The last owner, from `low` to before `high`, whose items begin at or before `item`.

    Owners without items are passed over, since the next one begins where they do.
    """
    while high - low > 1:
        middle = (low + high) >> 1
        if offsets[middle] <= item:
            low = middle
        else:
            high = middle
    return low
