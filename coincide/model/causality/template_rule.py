"""The decision on a pair within a window that is the pair's own, and the widest window of any pair."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.deciding import (
    PairRule,
    comparable,
    distance_between,
    squared_distance,
    window_between,
    window_of,
)
from coincide.model.causality.limits import Ellipsoid, Front
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.compiled import Float64s, compiled, product
from coincide.model.probability import window_probability
from coincide.model.templates.tails import relative_error, window_tails
from coincide.model.templates.template import Buckets, TemplateTable
from coincide.model.units import UNBOUNDED


class TemplateRule(NamedTuple):
    """Decides pairs of histograms: methods as in `PairRule`, shapes being numbers of templates."""

    pair: PairRule  # For exact instants, and the window of a distance
    left: Buckets  # The templates of causes
    right: Buckets  # The templates of effects
    left_masses: Float64s  # float64: as `TemplateTable.exact_masses`
    right_masses: Float64s  # float64: as `TemplateTable.exact_masses`

    def meets(self, gap, dh, s, left, right):  # noqa: D102
        return qualifies_within(self, gap, dh, s, left, right)

    def chance(self, gap, dh, s, left, right):  # noqa: D102
        return comparable(probability_within(self, gap, dh, s, left, right))

    def apart(self, s, left, right):  # noqa: D102
        return 2 * s + length_of(self.left, left) - length_of(self.right, right)

    def window_at(self, distance2):  # noqa: D102
        return window_between(self.pair, distance2, distance2)

    def distance2_of(self, gap, dh):  # noqa: D102
        return squared_distance(self.pair.curvature, gap, dh)

    def distance_of(self, gap, dh):  # noqa: D102
        return distance_between(self.pair.curvature, gap, dh)


def deciding_rule(
    model: CausalityModel, causes: PlacedEvents, effects: PlacedEvents | None
) -> PairRule | TemplateRule:
    """What decides pairs of these events, which both have templates, or neither has."""
    effects = causes if effects is None else effects
    if causes.templates is None or effects.templates is None:
        return model.rule
    own, others = causes.templates, effects.templates
    return TemplateRule(
        model.rule, own.buckets, others.buckets, own.exact_masses, others.exact_masses
    )


def with_templates(events: PlacedEvents) -> PlacedEvents:
    """The same events as histograms: of intervals each length that occurs is a template of one bucket."""
    if events.templates is not None:
        return events
    lengths = np.zeros(len(events), np.int64) if events.lengths is None else events.lengths
    known, numbers = np.unique(lengths, return_inverse=True)
    table = TemplateTable.of_lengths(known if known.size else np.zeros(1, np.int64))
    return replace(events, lengths=numbers.astype(np.int64), templates=table)


@compiled(forceinline=True)
def length_of(buckets, template):
    """Length of a template's support, ticks."""
    return -buckets.edges[buckets.starts[template]]


@compiled
def qualifies_within(rule, gap, dh, s, left, right):
    """Whether a pair qualifies; parameters as in `PairRule.meets`."""
    lo, hi = window_of(rule.pair, gap, dh)
    # Most candidates are out of reach, or within the window wherever in their supports they lie.
    first, last = s - length_of(rule.right, right), s + length_of(rule.left, left)
    if lo > hi or last < lo or first > hi:
        return False
    if lo <= first and last <= hi:
        return True
    outside = window_tails(rule.left, left, rule.right, right, lo - s, hi - s)
    error = relative_error(rule.left, left, rule.right, right)
    error += relative_error(rule.right, right, rule.left, left) + 2.0**-50
    if outside + error < 1.0 - rule.pair.threshold:
        return True
    if outside - error > 1.0 - rule.pair.threshold:
        return False
    return _sum_over_buckets(rule, s, left, right, lo, hi) >= rule.pair.threshold


@compiled
def probability_within(rule, gap, dh, s, left, right):
    """The probability that a pair qualifies, good to 1e-13; parameters as in `PairRule.meets`."""
    lo, hi = window_of(rule.pair, gap, dh)
    if lo > hi:
        return 0.0
    return max(0.0, 1.0 - window_tails(rule.left, left, rule.right, right, lo - s, hi - s))


@compiled
def _sum_over_buckets(rule, s, left, right, lo, hi):
    """The probability of a window by Lemma 1, added up with a carry: it errs by less than 2**-50."""
    # Each term errs by a few units of 2**-53 of itself, and so does their sum.
    own, others = rule.left, rule.right
    total = carry = 0.0
    for u in range(own.starts[left], own.starts[left + 1] - 1):
        for v in range(others.starts[right], others.starts[right + 1] - 1):
            mass = product(rule.left_masses[u], rule.right_masses[v])
            if mass == 0.0:
                continue
            shifted = s + others.edges[v + 1] - own.edges[u + 1]
            l1, l2 = own.edges[u + 1] - own.edges[u], others.edges[v + 1] - others.edges[v]
            term = product(mass, window_probability(shifted, l1, l2, lo, hi))
            # Two sums without loss (Knuth): what the sum cannot hold goes to the carry.
            added = total + term
            back = added - total
            carry += (total - (added - back)) + (term - back)
            total = added
    return total + carry


_SAMPLES = 17
_ROUNDS = 400
"""Each leaves an eighth of the distances or less, so that the largest floats shrink to the smallest."""
_FAR = 1e150
"""Its square is a float still; where no distance is too far, what is wider farther out is wide there."""
_ERROR = 1e-14
"""More than floats err, relatively."""


def widest_window(model: CausalityModel) -> int:
    """No pair's window is wider: hi - lo in ticks; `UNBOUNDED` of no such width, -1 of no window."""
    # The end of the window is concave in the distance, its start convex, so that the width rises to
    # one peak, or plateau, and falls: the peak is next to the widest of some samples. Ends are taken
    # as they are before they are rounded to ticks; a window of whole ticks, or a strict one, is no
    # wider.
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
    """Least and most delta at each distance, not rounded to ticks; infinite where there is no bound."""
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
