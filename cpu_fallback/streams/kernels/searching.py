"""Finding positions, and the decision on one pair: what every stream kernel calls."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT


@compiled(forceinline=True)
def first_reaching(keys, start, stop, origin, bound):
    """First of the ascending positions start ... stop whose key - origin reaches `bound`.

    The difference is compared, not a sum: differences of times below 2**61 cannot overflow.
    """
    size = stop - start
    if size <= 0:
        return start
    # Without a branch to mispredict: the answer lies in start ... start + size throughout.
    while size > 1:
        half = size >> 1
        start += half * (keys[start + half - 1] - origin < bound)
        size -= half
    return start + (keys[start] - origin < bound)


@compiled(forceinline=True)
def advance(keys, position, stop, origin, bound):
    """As `first_reaching`, from a cursor that has but few events to go."""
    # Unsigned: an index that cannot be negative needs no check for it.
    one, at, end = np.uint64(1), np.uint64(position), np.uint64(stop)
    # Mostly it moves by no more than a few: two steps without a branch to mispredict.
    if at + one < end:
        step = np.uint64(keys[at] - origin < bound)
        at += step
        at += step & np.uint64(keys[at] - origin < bound)
    while at < end and keys[at] - origin < bound:
        at += one
    return np.int64(at)


@compiled(forceinline=True)
def pair_qualifies(pair_rule, side, base_max, base_shape, target_max, target_shape):
    """Whether a base event on `side` and a target on the other qualify."""
    s, left, right = in_places(side, base_max, base_shape, target_max, target_shape)
    return pair_rule.qualifies(s, left, right)


@compiled(forceinline=True)
def in_places(side, base_max, base_shape, target_max, target_shape):
    """The s and the shapes of a pair, as a rule takes them.

    Always with left and right in their places, so that the bits do not depend on who is the base.
    """
    if side == LEFT:
        return target_max - base_max, base_shape, target_shape
    return base_max - target_max, target_shape, base_shape
