"""Why a causality join finds nothing: times, keys, places, the nearest pair, units that look wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import NamedTuple

import numpy as np

from coincide.engine.causality.pairing import CausalBounds, CausalitySpec
from coincide.engine.events.places import Coordinate
from coincide.engine.events.ticks import length_words
from coincide.engine.reports.emptiness import (
    Evidence,
    Instants,
    KeyOverlap,
    NoPairs,
    explain_emptiness,
    highest,
    nearest_delta,
    of_probability,
)
from coincide.engine.reports.warnings import warn
from coincide.model.causality.buckets import extent
from coincide.model.causality.condition import CausalityCondition, CausalityModel
from coincide.model.causality.deciding import PairRule, pair_rule
from coincide.model.causality.limits import Limits
from coincide.model.causality.spaces import (
    EARTH_KM,
    H,
    PlacedEvents,
    Plane,
    Space,
    Sphere,
    squared_arc,
)
from coincide.model.causality.template_rule import ends_at, widest_window
from coincide.model.condition import Window
from coincide.model.errors import DistanceUnitWarning, argument, call
from coincide.model.probability import highest_probability
from coincide.model.units import UNBOUNDED, Tick

_MOST_MEASURED = 1 << 22
"""Pairs that are looked at to tell which comes nearest."""


def explain_no_effects(
    causes: Evidence,
    effects: Evidence,
    spec: CausalitySpec,
    keys: KeyOverlap | None,
    events: tuple[PlacedEvents, PlacedEvents | None],
) -> NoPairs:
    """What speaks against any pair."""
    found = explain_emptiness(causes, effects, spec, keys)
    if not causes.events or not effects.events:
        return found
    reasons = list(found.reasons)
    if events[1] is not None:
        reasons += _of_places((events[0], events[1]), spec)
    told = (
        [] if reasons or found.is_asked_for else list(_of_deltas(events, spec, causes.scale.tick))
    )
    return replace(found, reasons=tuple(reasons), hints=(*told, *found.hints))


@highest.register
def _(
    pairs: CausalBounds, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, list[tuple[bool, str]]]:
    """By the widest window of any pair: exact instants have a probability of 1 or none."""
    if pairs.model is None or any(table is not None for table in pairs.tables):
        return None, []
    width = widest_window(pairs.model)
    if width < 0:
        return 0.0, [(True, "no delta meets all predicates of the condition, at any distance")]
    lengths = left.shortest, right.shortest, left.typical or 0, right.typical or 0
    if width >= UNBOUNDED or not any(lengths):
        return None, []
    best = highest_probability(left.shortest, right.shortest, width)
    of_pair = Window(0, width, window.confidence)
    words = (
        "and at no distance is the window more than"
        if pairs.model.rule.measured
        else "the window is"
    )
    return best, [of_probability(left, right, of_pair, best, words)]


def _of_places(events: tuple[PlacedEvents, PlacedEvents], spec: CausalitySpec) -> Iterator[str]:
    """Whether all effects are out of reach of all causes."""
    if any(side.points is None for side in events):
        return
    (low, high), (low2, high2) = (extent(side.points, side.codes) for side in events)
    apart = np.maximum(np.maximum(low2 - high, low - high2), 0.0)[:3]
    gap, rule = float((apart**2).sum()), spec.model.rule
    arc = rule.curvature * squared_arc(min(gap, 4.0))
    distance = math.sqrt(arc if rule.curvature else gap)
    if distance > spec.model.reach * (1 + 1e-9):
        yield (
            f"every effect is {distance:.6g} or more from every cause, and the condition reaches"
            f" {spec.model.reach:.6g}. Check the order of the coordinates and their unit"
        )


def _of_deltas(
    events: tuple[PlacedEvents, PlacedEvents | None], spec: CausalitySpec, tick: Tick
) -> Iterator[str]:
    """How many pairs the times alone would leave."""
    (lo, hi), rule = spec.model.deltas, spec.model.rule
    if max(-lo, hi) >= UNBOUNDED:
        return
    ends = " to ".join(_signed(end, tick) for end in (lo, hi))
    is_uncertain = any(side is not None and side.lengths is not None for side in events)
    if rule.is_temporal:
        yield f"no pair {'is likely enough to have' if is_uncertain else 'has'} a delta of {ends}"
        if not is_uncertain:
            yield from _of_nearest(nearest_miss_in_time(*events, lo, hi), spec, tick)
        return
    if is_uncertain:  # Counting would take the probability of every pair of such times.
        return
    of_times = pair_rule(Limits(lo, hi), Plane(), False, 1.0)
    of_times = of_times._replace(threshold=rule.threshold)
    model = replace(spec.model, rule=of_times, reach=math.inf)
    own, others = (None if side is None else replace(side, points=None) for side in events)
    joined = import_module("cpu_fallback.causality").CausalityJoin
    join = joined(own, others, model, threads=spec.threads)
    count = int(join.counts.sum())
    if not count:
        yield f"no pair has a delta of {ends}, which the condition allows at any distance"
        yield from _of_nearest(nearest_miss_in_time(*events, lo, hi), spec, tick)
    else:
        yield (
            f"{count:,} {'pairs have' if count > 1 else 'pair has'} a delta of {ends}, which the"
            " condition allows at any distance, but no pair has one that its own distance allows"
        )
        if count <= _MOST_MEASURED and spec.where is None:
            measured = joined(*events, spec.model, threads=spec.threads).measured
            runs = (
                measured(*join.pairs(*run, join.left_order, join.right_order))
                for run in join.chunks(_MOST_MEASURED >> 2)
            )
            yield from _of_nearest(nearest_in_space(runs, rule, spec.model.reach), spec, tick)


def _of_nearest(miss: NearMiss | None, spec: CausalitySpec, tick: Tick) -> Iterator[str]:
    """What the pair has that comes nearest to the condition."""
    if miss is None or spec.where is not None:
        return
    if not miss.is_in_reach:
        yield (
            f"the nearest of these are {miss.distance:.6g} apart, and the condition reaches"
            f" {spec.model.reach:.6g}"
        )
        return
    at = "" if miss.distance is None else f" at a distance of {miss.distance:.6g}"
    judged = "short" if miss.delta < miss.lo else "long"
    yield (
        f"the nearest pair has a delta of {_signed(miss.delta, tick)}{at},"
        f" {length_words(max(miss.by, 0.0), tick)} too {judged}"
    )


def _signed(ticks: int, tick: Tick) -> str:
    return f"{'-' if ticks < 0 else ''}{length_words(abs(ticks), tick)}"


class NearMiss(NamedTuple):
    """A pair: its delta, what its distance allows, ticks, and its distance where that was looked at."""

    delta: int
    lo: float
    hi: float
    distance: float | None = None
    is_in_reach: bool = True

    @property
    def by(self) -> float:
        """Ticks by which delta is too short, or too long."""
        return max(self.lo - self.delta, self.delta - self.hi)


def nearest_miss_in_time(
    causes: PlacedEvents, effects: PlacedEvents | None, lo: int, hi: int
) -> NearMiss | None:
    """The pair nearest to a delta of lo to hi, where no pair has one; None where there is no pair."""
    own, others = (
        None if side is None else Instants(side.codes[side.codes >= 0], side.times[side.codes >= 0])
        for side in (causes, effects)
    )
    assert own is not None
    delta = nearest_delta(own, others, lo, hi)
    return None if delta is None else NearMiss(delta, lo, hi)


def nearest_in_space(
    runs: Iterable[tuple[np.ndarray, np.ndarray]], rule: PairRule, reach: float
) -> NearMiss | None:
    """The nearest pair in time within reach, else in space, where no pair qualifies."""
    best: NearMiss | None = None
    for delta, distance in runs:
        lo, hi = ends_at(rule, distance)
        by = np.maximum(np.maximum(lo - delta, delta - hi), 0.0)
        order = np.lexsort((by, np.maximum(distance, reach)))  # within reach by time
        k = int(order[0])
        bounds, apart = (float(lo[k]), float(hi[k])), float(distance[k])
        miss = NearMiss(int(delta[k]), *bounds, apart, apart <= reach)
        if best is None or _rank(miss) < _rank(best):
            best = miss
    return best


def _rank(miss: NearMiss) -> tuple[bool, float]:
    return not miss.is_in_reach, miss.by if miss.is_in_reach else miss.distance or 0.0


_LATITUDE, _LONGITUDE, _LENGTH = (
    re.compile(rf"(.*[_ ])?({words})([_ ].*)?", re.IGNORECASE)
    for words in ("lat|latitude", "lon|lng|long|longitude", "x|y|easting|northing")
)
_METRES = re.compile(r".*_(m|metres?|meters?|ft|feet)", re.IGNORECASE)
"""Names of heights that say that they are in no kilometres."""
_DEPTH = re.compile(r".*depth.*", re.IGNORECASE)
_HIGHEST_KM, _DEEPEST_KM = 9.0, 800.0
"""Mountains end there, and so do earthquakes."""
_ENOUGH = 2.0
"""A radius that is this many times the distance of all places is hardly meant."""


def warn_of_names(condition: CausalityCondition, places: Sequence[tuple[Coordinate, ...]]) -> None:
    """Warn of places whose columns are called as if they were in another space."""
    if not condition.needs_places:
        return
    for text in dict.fromkeys(t for place in places for t in _of_names(condition.space, place)):
        warn(text, DistanceUnitWarning)


def _of_names(space: Space, place: tuple[Coordinate, ...]) -> Iterator[str]:
    names = [each if isinstance(each, str) else "" for each in place[:2]]
    if len(names) < 2:
        return
    called = " and ".join(map(repr, names))
    is_degrees = any(map(_LATITUDE.fullmatch, names)) and any(map(_LONGITUDE.fullmatch, names))
    if isinstance(space, Plane) and space.scale is None and is_degrees:
        yield (
            f"distances are measured in degrees (found the places {called} in a plane). Use"
            f" {call('Sphere')} for distances in km, or give a unit with {argument('scale')}."
        )
    if isinstance(space, Sphere) and _LONGITUDE.fullmatch(names[0]) and is_degrees:
        yield (
            f"a sphere takes the latitude first, then the longitude (found the places {called})."
            " Swap the two."
        )
    height = place[2] if len(place) > 2 else None
    if _counts_km(space) and isinstance(height, str) and _METRES.fullmatch(height):
        yield (
            f"heights on a sphere are in km, as its distances are (found the column {height!r})."
            f" {_IN_METRES}"
        )
    if isinstance(space, Sphere) and all(map(_LENGTH.fullmatch, names)):
        yield (
            f"a sphere takes latitudes and longitudes in degrees (found the places {called}). If"
            f" they are lengths, remove {call('Sphere')}."
        )


def _counts_km(space: Space) -> bool:
    """Whether heights are taken for kilometres above the Earth."""
    return isinstance(space, Sphere) and space.radius == EARTH_KM and space.height_scale == 1.0


_IN_METRES = f"If they are in metres, use {argument('height_scale', 0.001)}."


def warn_of_reach(
    space: Space,
    model: CausalityModel,
    events: tuple[PlacedEvents, PlacedEvents | None],
    places: Sequence[tuple[Coordinate, ...]],
) -> None:
    """Warn of a radius in km, on the Earth, that excludes no pair, and of heights that are hardly in km."""
    sides = [side for side in events if side is not None and side.points is not None]
    is_earth = isinstance(space, Sphere) and space.radius == EARTH_KM
    if not (is_earth and sides and math.isfinite(model.reach)):
        return
    ends = [extent(side.points, side.codes) for side in sides]
    low, high = (pick([each[i] for each in ends], axis=0) for i, pick in ((0, np.min), (1, np.max)))
    apart = high - low
    gap = float((apart[:3] ** 2).sum())
    if not gap < math.inf:  # infinite of no events
        return
    arc = math.sqrt(space.curvature * squared_arc(min(gap, 4.0)))
    height = float(apart[H]) if math.isfinite(apart[H]) else 0.0
    farthest = math.hypot(arc, height)
    if gap > 0.0 and model.reach >= _ENOUGH * farthest:
        warn(
            f"the condition reaches {model.reach:.6g} km, and no two events are more than"
            f" {farthest:.6g} km apart, so distances exclude no pair. Distances on a sphere are in"
            " km. If you meant metres, divide them by 1,000.",
            DistanceUnitWarning,
        )
    called = [each[2] for each in places if len(each) > 2 and isinstance(each[2], str)]
    is_deep, is_told = (any(map(e.fullmatch, called)) for e in (_DEPTH, _METRES))
    most = max(abs(float(low[H])), abs(float(high[H]))) if height else 0.0
    usual = _DEEPEST_KM if is_deep else _HIGHEST_KM
    if _counts_km(space) and not is_told and most > usual and height > max(model.reach, arc):
        warn(
            f"heights count as km, as distances on a sphere do: they differ by up to {height:.6g} km,"
            f" all places by {arc:.6g} km, and the condition reaches {model.reach:.6g} km."
            f" {_IN_METRES}",
            DistanceUnitWarning,
        )
