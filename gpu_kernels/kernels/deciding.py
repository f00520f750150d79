"""What kernels ask of a candidate. Nothing here uses `numba.cuda`, so any file may call it."""

from __future__ import annotations

from coincide.sides import LEFT
from coincide.timestamps.dispatch import difference
from gpu_kernels.kernels.compilation import device_function


@device_function
def _in_places(sides, event, target):
    """The s and the shapes of a pair, as a rule takes them.

    With left and right in their places, so that the bits do not depend on who is the base.
    """
    k1, l1 = sides.base.keys[event], sides.base.shapes[event]
    k2, l2 = sides.targets.keys[target], sides.targets.shapes[target]
    if sides.side != LEFT:
        k1, l1, k2, l2 = k2, l2, k1, l1
    return difference(sides.rule, k1, l1, k2, l2), l1, l2


@device_function
def meets(sides, event, target):
    """Whether a candidate qualifies: `Rule.qualifies`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.qualifies(s, left, right)


@device_function
def merit_of(sides, event, target):
    """Its probability if it does: `Rule.merit`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.merit(s, left, right)


@device_function
def distance_of(sides, event, target):
    """Its distance from the middle of the window: `Rule.distance`."""
    s, left, right = _in_places(sides, event, target)
    return sides.rule.distance(s, left, right)
