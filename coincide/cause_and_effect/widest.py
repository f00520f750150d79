"""The widest window on delta that a condition leaves any pair, whatever its distance."""

from __future__ import annotations

import math

import numpy as np

from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.limits import UNBOUNDED, Ellipsoid, Front
from coincide.cause_and_effect.rule import PairRule

_SAMPLES = 17
_ROUNDS = 400
"""Each leaves an eighth of the distances or less, so that the largest floats shrink to the smallest."""
_FAR = 1e150
"""Its square is a float still; where no distance is too far, what is wider farther out is wide there."""
_ERROR = 1e-14
"""More than floats err, relatively."""


def widest_window(model: CausalityModel) -> int:
    """No pair's window is wider: hi - lo in ticks; `UNBOUNDED` if there is no such width, -1 for no window.

    The end of the window is concave in the distance, its start convex, so that the width rises to one
    peak, or plateau, and falls: the peak is beside the widest of some samples. Ends are taken as they are
    before they are rounded to ticks; a window of whole ticks, or a strict one, is no wider.
    """
    rule = model.rule
    first, last, best = 0.0, min(model.reach, _FAR), -1.0
    for _ in range(_ROUNDS):
        distances = np.linspace(first, last, _SAMPLES)
        lo, hi = ends_at(rule, distances)
        widths = hi - lo
        if np.isinf(widths).any():
            return UNBOUNDED
        sizes = np.maximum(np.abs(lo), np.abs(hi))
        best = max(best, float((widths + _ERROR * sizes).max()))
        peak = int(widths.argmax())
        stretch = float(distances[max(peak - 1, 0)]), float(distances[min(peak + 1, _SAMPLES - 1)])
        if stretch == (first, last):
            break
        first, last = stretch
    return UNBOUNDED if best >= UNBOUNDED else math.floor(best)


def ends_at(rule: PairRule, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and most delta at each distance, not rounded to ticks; infinite where there is none."""
    lo = np.full(distance.size, -math.inf if rule.lo <= -UNBOUNDED else float(rule.lo))
    hi = np.full(distance.size, math.inf if rule.hi >= UNBOUNDED else float(rule.hi))
    for front in (rule.behind, rule.also_behind):
        if front.kind:
            lo = np.maximum(lo, _passes(front, distance))
    for front in (rule.ahead, rule.also_ahead):
        if front.kind:
            hi = np.minimum(hi, _passes(front, distance))
    for ellipsoid in (rule.ellipsoid, rule.also_ellipsoid):
        if ellipsoid.duration2 >= 0:
            half = _half_axis(ellipsoid, distance)
            lo, hi = np.maximum(lo, -half), np.minimum(hi, half)
    return lo, hi


def _passes(front: Front, distance: np.ndarray) -> np.ndarray:
    """The delta at which a front is at each distance."""
    return distance * (math.sqrt(front.per2) / front.speed) - front.shift


def _half_axis(ellipsoid: Ellipsoid, distance: np.ndarray) -> np.ndarray:
    """The last delta inside an ellipsoid; 0 at distances beyond it."""
    inside = np.maximum(1 - distance**2 / ellipsoid.radius2, 0.0)
    return math.sqrt(ellipsoid.duration2) * np.sqrt(inside)
