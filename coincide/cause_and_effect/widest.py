"""The widest window on delta that a condition leaves any pair, whatever its distance."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.deciding import window_between
from coincide.cause_and_effect.limits import UNBOUNDED
from coincide.cause_and_effect.rule import PairRule

_PARTS = 16
_ROUNDS = 40
_FAR = 1e150
"""Its square is a float still; where no distance is too far, what is wider farther out is wide there."""


def widest_window(model: CausalityModel) -> int:
    """No pair's window is wider: hi - lo in ticks; `UNBOUNDED` if there is no such width.

    The end of the window is concave in the distance, its start convex, so that the width has one peak.
    Stretches of distances are cut until none can hold more than is found.
    """
    rule = model.rule
    if rule.is_temporal or not rule.measured:
        return _bounded(rule.hi - rule.lo)
    reach = min(model.reach, _FAR)
    best, stretches = max(_width(rule, 0.0, 0.0), _width(rule, reach, reach)), [(0.0, reach)]
    if best >= UNBOUNDED:
        return UNBOUNDED
    most = best
    for _ in range(_ROUNDS):
        parts = [
            (a, b)
            for first, last in stretches
            for a, b in _cut(first, last)
            if _width(rule, a, b) > best
        ]
        best = max([best, *(_width(rule, a, a) for a, _ in parts)])
        stretches = [(a, b) for a, b in parts if _width(rule, a, b) > best]
        most = max([best, *(_width(rule, a, b) for a, b in stretches)])
        if most <= best + 1:  # a tick is rounding
            break
    return _bounded(most)


def _cut(first: float, last: float) -> list[tuple[float, float]]:
    edges = np.linspace(first, last, _PARTS + 1).tolist()
    return list(pairwise(edges))


def _width(rule: PairRule, nearest: float, farthest: float) -> int:
    """Of a stretch of distances no less than the width at any of them; -1 where no delta is in it."""
    lo, hi = window_between(rule, nearest * nearest, farthest * farthest)
    return max(int(hi) - int(lo), -1)


def _bounded(width: float) -> int:
    return UNBOUNDED if not math.isfinite(width) or width >= UNBOUNDED else int(width)
