"""Drawing times: column types that go together, where the events lie, and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from bench.hunt.chance import Chance
from bench.hunt.columns import NANOSECONDS, TIME_TYPES, TimeType

LIMIT = 2**61 - 1
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


@dataclass(frozen=True)
class Scale:
    """Where events lie, in ticks."""

    origin: int
    step: int  # lengths and windows are a few steps
    steps: int  # how many the starts spread over


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


def draw_intervals(
    chance: Chance, scale: Scale, size: int, *, are_long: bool = False
) -> list[tuple[int, int]]:
    """Intervals in ticks: on a grid or not, of many or few lengths, in bursts, with an outlier."""
    kind = chance.choice(("grid", "few", "continuous", "zero", "one", "skewed"))
    kind = "long" if are_long else kind
    gridded, bursty = chance.happens(60), chance.happens(30)
    few = [chance.integer(1, 5) * scale.step, chance.integer(1, 4 * scale.step), 0]
    found: list[tuple[int, int]] = []
    for _ in range(size):
        length = _length(chance, scale, kind, few)
        if gridded:
            start = scale.origin + chance.integer(0, scale.steps) * scale.step
        else:
            start = scale.origin + chance.integer(0, scale.steps * scale.step)
        if bursty and found and chance.happens(60):
            start = found[0][0]
        found.append((start, start + length))
    if found and chance.happens(20):  # one outlier decides the longest length, hence the reach
        at = chance.integer(0, len(found) - 1)
        start = found[at][0]
        found[at] = start, start + scale.step * (10 * scale.steps + 37)
    return found


def _length(chance: Chance, scale: Scale, kind: str, few: list[int]) -> int:
    if kind == "zero":
        return 0
    if kind == "long":
        return chance.integer(3, 6) * scale.step
    if kind == "one":
        return few[0]
    if kind == "few":
        return chance.choice(few)
    if kind == "grid":
        return chance.integer(0, 6) * scale.step
    if kind == "skewed":  # one tick against many
        return chance.choice((1, 4 * scale.step + 1, 0))
    return chance.integer(0, 5 * scale.step)


def draw_huge_intervals(chance: Chance, size: int) -> list[tuple[int, int]]:
    """Intervals of any length, up to the limits."""
    found = []
    for _ in range(size):
        ends = sorted((huge_integer(chance), huge_integer(chance)))
        if chance.happens(30):
            ends[1] = ends[0]
        found.append((ends[0], ends[1]))
    return found


def huge_integer(chance: Chance) -> int:
    """A number of any size below the limit."""
    size = chance.integer(0, 61)
    number = chance.choice((2**size - 1, chance.integer(0, 2**size - 1), LIMIT))
    return number * chance.choice((1, -1))


def draw_window(chance: Chance, step: int) -> tuple[int, int]:
    """A window in ticks: symmetric, narrow, of no width, lopsided, off zero, wide, or far off."""
    k = chance.integer(0, 5)
    kind = chance.weighted(
        {
            **{"symmetric": 4, "wide": 3, "lopsided": 4},
            **{"narrow": 2, "one_sign": 2, "zero": 2, "far": 1},
        }
    )
    if kind == "symmetric":
        return -k * step, k * step
    if kind == "zero":
        return k * step, k * step
    if kind == "narrow":
        low = chance.integer(-2 * step, 2 * step)
        return low, low + chance.integer(0, step)
    if kind == "lopsided":
        return -chance.integer(0, 3 * step), chance.integer(0, 8 * step)
    if kind == "one_sign":
        low = chance.choice((1, -1)) * chance.integer(1, 4 * step)
        return (low, low + k * step) if low > 0 else (low - k * step, low)
    if kind == "wide":
        return -(10 + k) * step, 11 * step
    far = min(10**6 * step, LIMIT - 5) * chance.choice((1, -1))
    return far, far + 5
