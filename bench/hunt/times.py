"""Drawing times: column types that go together, where the events lie, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from bench.hunt.chance import Chance
from bench.hunt.columns import NANOSECONDS, TIME_TYPES, TimeType
from bench.hunt.intervals import LIMIT, Scale

EPOCH_SECONDS = 1_700_000_000


@dataclass(frozen=True)
class Profile:
    """What a set of ways can take."""

    dataframes: bool = False  # only types that a Spark DataFrame has
    most: int = 16  # rows a side, mostly
    many: int = 120  # rows a side, now and then
    odd_names: bool = True  # whether columns may have names with blanks, dots and quotes
    worlds: int = 1  # sets of rows in one join, which one more key tells apart


@dataclass(frozen=True)
class Clock:
    """The types of the four time columns (left min, left max, right min, right max), and the unit."""

    types: tuple[TimeType, ...]
    unit: str | None


def draw_clock(chance: Chance, profile: Profile) -> Clock:
    """Types of the time columns, mostly one, and a unit that goes with them."""
    family = chance.weighted(
        {"integer": 38, "timestamp": 20, "timestamp_ntz": 15, "float": 20, "duration": 7}
    )
    kinds = [kind for kind in TIME_TYPES[family] if not profile.dataframes or _on_spark(kind)]
    if chance.happens(50) or family == "float":
        first = kinds[0] if chance.happens(60) else chance.choice(kinds)
        types = [first] * 4
    else:
        types = [chance.choice(kinds)] * 2 + [chance.choice(kinds)] * 2
    if chance.happens(15):
        types = [chance.choice(kinds) for _ in range(4)]
    if family == "float" and chance.happens(25):
        # Whole numbers among fractions.
        types[chance.integer(0, 3)] = TIME_TYPES["integer"][0]
    if family.startswith("timestamp"):
        fine = any(kind.step == "ns" for kind in types)
        # Without the unit, whole microseconds alone can be counted.
        wanted = not chance.happens(10) if fine else chance.happens(15)
        return Clock(tuple(types), "ns" if wanted else None)
    if family == "float":
        return Clock(tuple(types), chance.choice(("s", "s", "us", "ms", "ns", "min")))
    if family == "duration":
        return Clock(tuple(types), None)
    return Clock(tuple(types), chance.choice((None, None, None, *NANOSECONDS)))


def _on_spark(kind: TimeType) -> bool:
    return not kind.name.startswith("uint") and kind.step in (None, "us", "d")


def draw_scale(chance: Chance, clock: Clock, factors: list[Fraction]) -> Scale:
    """Where the events of both sides lie, within what all columns hold."""
    # A tick that every column of whole numbers can say.
    whole = [f for kind, f in zip(clock.types, factors, strict=True) if kind.family != "float"]
    grain = math.lcm(1, *(math.ceil(factor) for factor in whole))
    low, high = _range(clock, factors)
    step = chance.choice((10, 1, 2, 1000, 10**6, 999_983, 10**9)) * grain
    while step > grain and step * 60 > high - low:
        step = max(grain, step // 10 // grain * grain)
    steps = chance.choice((20, 20, 6, 0, 1, 12, 60))
    span = step * (steps + 10)
    origins = [0, -5 * step, *_times_of_our_days(clock), low, high - span, 2**31 - 3 * step]
    if clock.types[0].family == "float":
        # Beyond 2^53 ticks floats and ticks no longer agree one by one.
        origins += [2**53 + 1, 2**57, 2**57 + 12345]
    inside = [o for o in origins if low <= o <= high - span] or [low]
    origin = chance.choice(inside) // grain * grain
    return Scale(origin, step, steps)


def _times_of_our_days(clock: Clock) -> list[int]:
    """Near now, in ticks, and as long before 1970."""
    stamps = clock.types[0].family.startswith("timestamp")
    unit = clock.unit or ("us" if stamps or clock.types[0].family == "duration" else "ns")
    tick = 1 if clock.types[0].family == "float" else NANOSECONDS[unit]
    tick = min(tick, NANOSECONDS[unit])
    now = EPOCH_SECONDS * 10**9 // tick
    return [now, -now, now + 123_456_789, now]


def _range(clock: Clock, factors: list[Fraction]) -> tuple[int, int]:
    """Ticks that all columns hold, within the limits."""
    lows, highs = [-LIMIT], [LIMIT]
    for kind, factor in zip(clock.types, factors, strict=True):
        if kind.family != "float":
            lows.append(math.ceil(kind.range[0] * factor))
            highs.append(math.floor(kind.range[1] * factor))
    return max(lows), min(highs)
