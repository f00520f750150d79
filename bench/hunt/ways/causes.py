"""Causes and effects of tables in this process, drawn by themselves, judged by the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.hunt.cases import RIGHT, Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.templates import Templates, draw_templates
from coincide import (
    CausalityCondition,
    CoincideError,
    Ellipsoidal,
    Propagation,
    Spatial,
    SpeedRange,
    Temporal,
    around,
    causality_tables,
    histograms,
    resolution,
)
from coincide.model.templates.template import GivenTemplate
from cpu_fallback.reference import causality as exact
from cpu_fallback.reference.decision import qualifies
from cpu_fallback.reference.join import Histogram, histogram_probability

_DELTAS = range(-120, 200)
"""More than times and their errors can be apart."""
_STEP = 4
"""The step of edges of templates, ticks."""
_PROBABILITY_ERROR = 2.0**-39
_Pair = tuple[int, int]
_Drawn = tuple[Any, exact.Predicate]


@dataclass(frozen=True)
class _Times:
    """When events of a side took place: what is said of it, the buckets of each, columns that it needs."""

    said: Any
    buckets: list[Histogram]
    columns: dict[str, pa.Array]


@dataclass(frozen=True)
class _Side:
    """Events: a table, their times, doubled stamps or midpoints, and places."""

    table: pa.Table
    times: _Times
    doubled: list[int]
    places: list[tuple[float, ...]]


def _draw_side(chance: Chance, dimensions: int, is_timestamp: bool) -> _Side:
    size, few = chance.integer(0, 12), chance.happens(50)
    stamps = [chance.integer(0, 60) for _ in range(size)]
    clock = pa.timestamp("us") if is_timestamp else pa.int64()
    draw = chance.choice((_exact, _around, _resolution, _interval, _histograms))
    times = draw(chance, stamps, clock)
    if is_timestamp and draw in (_around, _resolution):
        times = replace(times, said=_with_units(times.said))
    doubled = [2 * t for t in stamps]
    if draw is _interval:
        doubled = [low + high for ((low, high, _),) in times.buckets]
    reach = 1 if few else 8
    places = [tuple(chance.integer(-reach, reach) / 2 for _ in range(dimensions)) for _ in stamps]
    columns = {"id": pa.array(range(size), pa.int64()), "t": _clocked(stamps, clock)}
    for d in range(dimensions):
        columns[f"x{d}"] = pa.array([place[d] for place in places], pa.float64())
    return _Side(pa.table(columns | times.columns), times, doubled, places)


_DURATIONS = ("lo", "hi", "slack", "duration", "tolerance", "time", "before", "after")
"""Fields of the question; a column of times is a text already."""


def _with_units(asked: Any) -> Any:
    """With durations as texts, which timestamps need."""
    given = {each.name: getattr(asked, each.name) for each in fields(asked)}
    ticks = {n: v for n, v in given.items() if n in _DURATIONS and isinstance(v, int)}
    return replace(asked, **{name: f"{value}us" for name, value in ticks.items()})


def _clocked(ticks: list[int], clock: pa.DataType) -> pa.Array:
    return pa.array(ticks, pa.int64()).cast(clock)


def _exact(_: Chance, stamps: list[int], _clock: pa.DataType) -> _Times:
    return _Times("t", [[(t, t, 1)] for t in stamps], {})


def _around(chance: Chance, stamps: list[int], _: pa.DataType) -> _Times:
    before, after = chance.integer(0, 9), chance.integer(0, 9)
    said = around("t", before=before, after=after)
    return _Times(said, [[(t - before, t + after, 1)] for t in stamps], {})


def _resolution(chance: Chance, stamps: list[int], _: pa.DataType) -> _Times:
    length = chance.integer(0, 9)
    return _Times(resolution("t", length), [[(t, t + length, 1)] for t in stamps], {})


def _interval(chance: Chance, stamps: list[int], clock: pa.DataType) -> _Times:
    ends = [t + chance.integer(0, 9) for t in stamps]
    buckets: list[Histogram] = [[(*each, 1)] for each in zip(stamps, ends, strict=True)]
    return _Times(("t", "u"), buckets, {"u": _clocked(ends, clock)})


def _histograms(chance: Chance, stamps: list[int], _: pa.DataType) -> _Times:
    drawn = _from_zero(draw_templates(chance, _STEP))
    known = {
        name: GivenTemplate(edges, masses, drawn.delays) for name, edges, masses in drawn.given
    }
    devices = [chance.choice(drawn.ids) for _ in stamps]
    buckets: list[Histogram] = []
    for t, device in zip(stamps, devices, strict=True):
        end, shape = drawn.shape(device) or (0, ())
        buckets.append([(t + end + low, t + end + high, mass) for low, high, mass in shape])
    said = histograms("t", template="device", templates=known)
    return _Times(said, buckets, {"device": pa.array(devices, drawn.column)})


def _from_zero(templates: Templates) -> Templates:
    """The same with a smallest delay of 0. With others deltas are between the ends, not the stamps."""
    return replace(
        templates,
        given=tuple(
            (name, tuple(edge - edges[0] for edge in edges), masses)
            for name, edges, masses in templates.given
        ),
    )


def _speeds(chance: Chance, strict: bool) -> _Drawn:
    slack = chance.integer(0, 5)
    low = chance.choice([None, 0, *(k / 4 for k in range(1, 9))])
    high = chance.choice([None, *((low or 0.25) + k / 4 for k in range(9))])
    if not low and high is None:
        high = 1.0
    words = [chance.choice([None, "any"]) if each is None else each for each in (low, high)]
    return (
        SpeedRange(*words, slack, None, strict),
        exact.speed_range(low, high, slack, slack, strict),
    )


def _times(chance: Chance, strict: bool) -> _Drawn:
    lo = chance.integer(-20, 20)
    hi = lo + chance.integer(2, 50)
    return Temporal(lo, hi, strict), exact.temporal(lo, hi, strict)


def _radius(chance: Chance, strict: bool) -> _Drawn:
    radius = chance.integer(1, 14) / 2
    return Spatial(radius, strict), exact.spatial(radius, strict)


def _ellipsoid(chance: Chance, strict: bool) -> _Drawn:
    radius, duration = chance.integer(1, 14) / 2, chance.integer(1, 30)
    return Ellipsoidal(radius, duration, strict), exact.ellipsoidal(radius, duration, strict)


def _front(chance: Chance, strict: bool) -> _Drawn:
    tolerance, speed = chance.integer(0, 12), chance.integer(1, 8) / 4
    return (
        Propagation(tolerance, speed=speed, per=None, strict=strict),
        exact.speed_range(speed, speed, 0, tolerance, strict),
    )


_KINDS: tuple[Callable[[Chance, bool], _Drawn], ...] = (
    *(_speeds, _speeds, _times, _radius, _ellipsoid, _front),
)


def _judge(case: Case, folder: Path) -> Verdict:
    chance = case.chance("causes")
    drawn = [chance.choice(_KINDS)(chance, chance.happens(30)) for _ in range(chance.integer(1, 2))]
    drawn.append(chance.choice((_times, _radius))(chance, False))
    dimensions, is_timestamp = chance.integer(1, 3), chance.happens(50)
    sides = [_draw_side(chance, dimensions, is_timestamp) for _ in range(2)]
    confidence = chance.choice([0.1, 0.3, 0.5, 0.75, 0.9, 1.0])
    name, place = "delta_us" if is_timestamp else "delta", [f"x{d}" for d in range(dimensions)]
    least = chance.integer(-20, 30) if chance.happens(30) else None
    given: dict[str, Any] = {} if least is None else {"where": f"{name} >= {least}"}
    try:
        predicates = [_with_units(each[0]) if is_timestamp else each[0] for each in drawn]
        condition = CausalityCondition(predicates, confidence=confidence)
        found = causality_tables(
            sides[0].table, sides[1].table, condition, cause_time=sides[0].times.said,
            effect_time=sides[1].times.said, cause_place=place, probability=True, **given,
        )  # fmt: skip
    except CoincideError as error:
        is_due = "no time difference meets" in str(error)
        return Verdict("refused" if is_due else "error", str(error))
    wanted = _wanted(sides[0], sides[1], [each[1] for each in drawn], confidence, least)
    rows = {
        (row["cause_id"], row["effect_id"]): (row[name], row["distance"], row["probability"])
        for row in found.to_pylist()
    }
    told = f"{condition.predicates}, {confidence}, {given}, {[(s.times, s.places) for s in sides]}"
    if len(rows) != found.num_rows or rows.keys() != wanted.keys():
        apart = sorted(rows.keys() ^ wanted.keys())[:3]
        return Verdict("wrong", f"pairs {apart} of {len(wanted)}: {told}")
    for pair, (delta, distance, probability) in wanted.items():
        own = rows[pair]
        if (
            own[0] != delta
            or not math.isclose(own[1], distance, rel_tol=1e-14)
            or abs(own[2] - probability) > _PROBABILITY_ERROR
        ):
            return Verdict("wrong", f"{pair} has {own}, not {wanted[pair]}: {told}")
    return RIGHT


def _wanted(
    causes: _Side,
    effects: _Side,
    predicates: list[exact.Predicate],
    confidence: float,
    least: int | None,
) -> dict[_Pair, tuple[int, float, float]]:
    """All pairs, with delta, distance and probability."""
    found = {}
    for i, cause in enumerate(causes.times.buckets):
        for j, effect in enumerate(effects.times.buckets):
            squared = exact.plane_distance2(causes.places[i], effects.places[j])
            window = [d for d in _DELTAS if all(each(d, squared) for each in predicates)]
            doubled = effects.doubled[j] - causes.doubled[i]
            delta = abs(doubled) // 2 * (1 if doubled > 0 else -1)
            if not window or (least is not None and delta < least):
                continue
            p = histogram_probability(cause, effect, window[0], window[-1])
            if p > 0 and qualifies(p, Fraction(confidence)):
                found[i, j] = delta, math.sqrt(squared), float(p)
    return found


WAYS = (Way("causes and effects", _judge, weight=3),)
