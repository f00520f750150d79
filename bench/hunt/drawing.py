"""Drawing data sets: rows, bad rows among them, and a condition that many pairs nearly meet."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from bench.hunt.chance import Chance
from bench.hunt.columns import EXTRA_TYPES, KEY_TYPES, TimeType, ValueType
from bench.hunt.data import DataSet, Names, Row, Side
from bench.hunt.intervals import (
    Scale,
    clamp,
    draw_confidence,
    draw_huge_intervals,
    draw_intervals,
    draw_window,
    huge_integer,
)
from bench.hunt.meaning import Event, meaning_of
from bench.hunt.oracle import clear_confidence, event_probability
from bench.hunt.templates import draw_templates
from bench.hunt.times import Clock, Profile, draw_clock, draw_scale

_KEY_NAMES = ("station", "channel", "phase", "world")
_WORLD = (next(kind for kind in KEY_TYPES if kind.name == "int32"),)
_ODD_NAMES = ("a b", "x.y", "clé", "wa`it", "Δ", "select", "it's", 'q"q', "a_b-c")
_SENTINELS = (
    *(2**63 - 1, -(2**63), 2**61, 2**61 - 1, -(2**61), -(2**61) + 1, 2**62),
    # 9999-12-31 and 0001-01-01, in seconds and finer.
    *(253402300799 * unit for unit in (1, 10**3, 10**6)),
    *(-62135596800 * unit for unit in (1, 10**3, 10**6)),
)
_FLOAT_SENTINELS = (math.nan, math.inf, -math.inf, 1e300, -1e300, 2.0**61, 253402300799.0)


def draw_data(chance: Chance, profile: Profile) -> DataSet:
    """A data set that the ways of a profile can take."""
    clock = draw_clock(chance, profile)
    keys = _draw_keys(chance) + _WORLD[: profile.worlds > 1]
    extra = chance.choice(EXTRA_TYPES) if chance.happens(25) else None
    names = _draw_names(chance, len(keys), profile)
    left, right = (Side((clock.types[i], clock.types[i + 1]), ()) for i in (0, 2))
    data = DataSet(left, right, keys, extra, names, clock.unit, 0, 0, 1.0)
    factors = [data.factor(kind) for kind in clock.types]
    scale = (
        None
        if _can_be_huge(clock, factors) and chance.happens(8)
        else draw_scale(chance, clock, factors)
    )
    step = None if scale is None else scale.step
    sides = [_of_one_column(chance, side, step) for side in data.sides]
    is_far_from_sure = scale is not None and chance.happens(8)
    for world in range(profile.worlds):
        pools = [_pool(chance, kind) for kind in keys]
        if profile.worlds > 1:
            pools[-1] = [world]
        sides = [
            replace(side, rows=side.rows + _rows(chance, side, intervals, data, pools))
            for side, intervals in zip(
                sides, _intervals(chance, profile, scale, is_far_from_sure), strict=True
            )
        ]
    data = replace(data, left=sides[0], right=sides[1])
    if scale is not None and is_far_from_sure:
        return _without_pairs(chance, data, scale)
    return _with_condition(chance, data, _window(chance, scale))


def _of_one_column(chance: Chance, side: Side, step: int | None) -> Side:
    """Now and then a side of exact instants, or of histograms."""
    kind = chance.weighted({"intervals": 65, "instants": 10, "histograms": 25})
    if kind == "intervals":
        return side
    templates = draw_templates(chance, step) if kind == "histograms" else None
    return Side((side.types[0],) * 2, (), True, templates)


def _intervals(
    chance: Chance, profile: Profile, scale: Scale | None, are_long: bool
) -> tuple[list[tuple[int, int]], ...]:
    """Values of both sides; without a scale they have any size."""
    sizes = _size(chance, profile), _size(chance, profile)
    if scale is None:
        return tuple(draw_huge_intervals(chance, min(size, 10)) for size in sizes)
    return tuple(draw_intervals(chance, scale, size, are_long=are_long) for size in sizes)


def _window(chance: Chance, scale: Scale | None) -> tuple[int, int]:
    if scale is not None:
        return draw_window(chance, scale.step)
    ends = sorted((huge_integer(chance), huge_integer(chance)))
    return ends[0], ends[1]


def _can_be_huge(clock: Clock, factors: list[Fraction]) -> bool:
    return all(
        kind.family != "float" and kind.bits == 64 and factor == 1
        for kind, factor in zip(clock.types, factors, strict=True)
    )


def _size(chance: Chance, profile: Profile) -> int:
    if chance.happens(3):
        return chance.integer(profile.most, profile.many)
    return chance.integer(3, profile.most) if chance.happens(85) else chance.integer(0, 2)


def _draw_keys(chance: Chance) -> tuple[ValueType, ...]:
    count = chance.weighted({0: 50, 1: 35, 2: 12, 3: 3})
    return tuple(
        KEY_TYPES[0] if chance.happens(30) else chance.choice(KEY_TYPES) for _ in range(count)
    )


def _draw_names(chance: Chance, keys: int, profile: Profile) -> Names:
    if profile.odd_names and chance.happens(10):
        odd = chance.shuffled(_ODD_NAMES)
        return Names(odd[0], odd[1], tuple(odd[2 : 2 + keys]), odd[-1])
    return Names(keys=_KEY_NAMES[:keys])


def _rows(
    chance: Chance,
    given: Side,
    intervals: list[tuple[int, int]],
    data: DataSet,
    pools: list[list[Any]],
) -> tuple[Row, ...]:
    """More rows of one side: as their columns hold them, with nulls, bad times and duplicates."""
    types, instants = given.types, given.instants
    factors = [data.factor(kind) for kind in types]
    rows = []
    for i, (low, high) in enumerate(intervals, len(given.rows)):
        first = types[0].value(low / factors[0])
        last = first if instants else types[1].value(high / factors[1])
        keys = tuple(chance.choice(pool) for pool in pools)
        extra = None if data.extra is None else chance.choice((*data.extra.values, None))
        # Ids in another order than the rows, so that a tie by id cannot pass as one by position.
        template = None if given.templates is None else chance.choice(given.templates.ids)
        rows.append(Row(first, last, i * 379 % 1009 + i // 1009 * 1009, keys, extra, template))
    if chance.happens(15):
        rows = [_spoiled(chance, row, types, instants) for row in rows]
    if given.templates is not None and chance.happens(15):
        unknown = None, "no such" if isinstance(given.templates.ids[0], str) else 99
        rows = [
            row._replace(template=chance.choice(unknown)) if chance.happens(20) else row
            for row in rows
        ]
    if chance.happens(15):
        rows = [_without_time(chance, row, instants) for row in rows]
    if len(rows) > 1 and chance.happens(20):
        rows = [rows[0] if chance.happens(25) else row for row in rows]
    return tuple(rows)


def _pool(chance: Chance, kind: ValueType) -> list[Any]:
    """Values of a key to draw from: a hot one, few or many, and nulls."""
    values: list[Any] = chance.shuffled(kind.values)[: chance.choice((1, 2, 3, 10))]
    values += values[:1] * chance.choice((0, 3, 10))
    return values + [None] * chance.choice((0, 0, 0, 1, 3))


def _spoiled(chance: Chance, row: Row, types: tuple[TimeType, TimeType], instants: bool) -> Row:
    """Sentinels in the place of times, and ends the wrong way round."""
    if not chance.happens(20):
        return row
    if not instants and chance.happens(30) and types[0].family == types[1].family != "integer":
        return row._replace(low=row.high, high=row.low) if types[0] == types[1] else row
    which = chance.choice(("low", "high", "both"))
    low, high = _sentinel(chance, types[0]), _sentinel(chance, types[1])
    if instants:
        return row._replace(low=low, high=low)
    if which == "both":
        same = _sentinel(chance, types[0]) if types[0] == types[1] else low
        return row._replace(low=same, high=same if types[0] == types[1] else high)
    return row._replace(low=low) if which == "low" else row._replace(high=high)


def _sentinel(chance: Chance, kind: TimeType) -> Any:
    if kind.family == "float":
        return kind.value(Fraction(2**61)) if chance.happens(10) else _float_sentinel(chance, kind)
    low, high = kind.range
    return chance.choice([low, high, *(s for s in _SENTINELS if low <= s <= high)])


def _float_sentinel(chance: Chance, kind: TimeType) -> float:
    value = chance.choice(_FLOAT_SENTINELS)
    if kind.name == "float32" and math.isfinite(value):
        return 3.0e38 if abs(value) > 3e38 else kind.value(Fraction(value))
    return value


def _without_time(chance: Chance, row: Row, instants: bool) -> Row:
    if not chance.happens(20):
        return row
    if instants or chance.happens(50):
        return row._replace(low=None, high=None)
    return row._replace(low=None) if chance.happens(50) else row._replace(high=None)


def _with_condition(chance: Chance, data: DataSet, window: tuple[int, int]) -> DataSet:
    """Window and threshold, often such that some pair meets them just so."""
    left, right = (
        [event for event in meaning_of(data, i).events if event.matchable] for i in (0, 1)
    )
    pairs = [(one, other) for one in left for other in right if one.row.keys == other.row.keys]
    if pairs and chance.happens(85 if data.has_histograms else 50):
        window = _window_at(chance, chance.choice(pairs), window)
    lo, hi = map(clamp, window)
    confidence = draw_confidence(chance)
    if pairs and chance.happens(60 if data.has_histograms else 25):
        one, other = chance.choice(pairs)
        exact = event_probability(one, other, lo, hi)
        confidence = float(exact) if exact > 1e-12 else confidence
    data = replace(data, lo=lo, hi=hi, confidence=confidence)
    return replace(data, confidence=clear_confidence(data))


def _without_pairs(chance: Chance, data: DataSet, scale: Scale) -> DataSet:
    """A window so much shorter than intervals that nothing can reach anything, mostly."""
    lo = clamp(chance.integer(-2 * scale.step, 2 * scale.step))
    hi = clamp(lo + chance.integer(0, 2 * scale.step))
    data = replace(data, lo=lo, hi=hi, confidence=chance.choice((0.75, 0.9, 1.0)))
    return replace(data, confidence=clear_confidence(data))


def _window_at(
    chance: Chance, pair: tuple[Event, Event], window: tuple[int, int]
) -> tuple[int, int]:
    """Move a window so that an end meets, or just misses, an end of some pair's difference."""
    one, other = pair
    ends = [event.high + chance.choice(chance.choice(event.buckets)[:2]) for event in (one, other)]
    target = ends[1] - ends[0]
    target += chance.choice((0, 0, 1, -1))
    width = window[1] - window[0]
    return chance.choice(((target, target + width), (target - width, target)))
