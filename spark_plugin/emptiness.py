"""Why a join finds nothing: what is known of both sides, and what follows from it. No Spark.

Asked when nothing was found, or before, of what is known by then; never while rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from event_model.condition import Window
from event_model.probability import DECISION_SLACK, highest_probability
from spark_plugin.key_overlap import KeyOverlap
from spark_plugin.sides import Side
from spark_plugin.time_columns import TimeScale
from spark_plugin.time_words import length_words, time_words

_NEAR = Fraction(1, 10)
"""Two numbers are about the same if they differ by no more than this share."""
_FACTORS = (10**3, 10**6, 10**9)


@dataclass(frozen=True)
class Evidence:
    """What is known of the events of one side.

    Parameters
    ----------
    scale : TimeScale
        Of its min column.
    events : int
        Rows that can match; of the other three nothing is known if there are none.
    shortest : int
        Shortest length of a timestamp, ticks.
    first, last : int
        No min_time is earlier, no max_time later, ticks.
    is_all : bool
        Whether these are of all rows; else of those that were looked at.
    """

    scale: TimeScale
    events: int
    shortest: int = 0
    first: int = 0
    last: int = 0
    is_all: bool = True

    @property
    def words(self) -> str:
        """Its side and times, for a reader."""
        first, last = self.words_of_times
        return f"{self.scale.column.side} {first} to {last}"

    @property
    def words_of_times(self) -> tuple[str, str]:
        """When it begins and ends."""
        return time_words(self.first, self.scale), time_words(self.last, self.scale)


def evidence_of(side: Side, scale: TimeScale) -> Evidence:
    """What the events of a side in memory tell."""
    low, high = side.min_time, side.max_time
    if side.matchable is not None:
        low, high = low[side.matchable], high[side.matchable]
    if not low.size:
        return Evidence(scale, 0)
    return Evidence(
        scale, low.size, int((high - low).min()), int(low.min()), int(high.max())
    )  # fmt: skip


@dataclass(frozen=True)
class NoPairs:
    """Why a join finds nothing.

    Parameters
    ----------
    reasons : tuple of str
        Each of which alone leaves no pair.
    hints : tuple of str
        What else is known, and what looks wrong about it.
    highest_probability : float or None
        No pair of such lengths can reach a higher one; None without events.
    left_times, right_times : (str, str) or None
        When the events of each side begin and end.
    keys : KeyOverlap or None
    """

    reasons: tuple[str, ...]
    hints: tuple[str, ...]
    highest_probability: float | None = None
    left_times: tuple[str, str] | None = None
    right_times: tuple[str, str] | None = None
    keys: KeyOverlap | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """All that there is to say, the most telling first."""
        return (*self.reasons, *self.hints)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def explain_emptiness(
    left: Evidence, right: Evidence, window: Window, keys: KeyOverlap | None
) -> NoPairs:
    """What speaks against any pair.

    Parameters
    ----------
    left, right : Evidence
    window : Window
    keys : KeyOverlap or None
        None without keys, or if nobody has looked.
    """
    without = [side.scale.column.side for side in (left, right) if not side.events]
    if without:
        return NoPairs(tuple(f"{side} has no row that can match" for side in without), ())
    best = highest_probability(left.shortest, right.shortest, window.width)
    found = [
        _of_probability(left, right, window, best),
        _of_times(left, right, window),
        *([(keys.is_all and not keys.shared, keys.describe())] if keys else []),
    ]
    reasons = tuple(text for is_reason, text in found if is_reason)
    hints = tuple(text for is_reason, text in found if not is_reason)
    hints += tuple(_suspicions(left, right, window))
    return NoPairs(reasons, hints, best, left.words_of_times, right.words_of_times, keys)


def _of_probability(
    left: Evidence, right: Evidence, window: Window, best: float
) -> tuple[bool, str]:
    confidence, tick = window.confidence, left.scale.tick
    allows = "the highest probability that these lengths and this window allow is"
    if best >= confidence - DECISION_SLACK:
        return False, f"{allows} {best:.6g}, enough for the confidence {confidence:g}"
    is_all = left.is_all and right.is_all
    return is_all, (
        f"{allows} {best:.6g}, below the confidence {confidence:g}: the shortest timestamps"
        f"{'' if is_all else ' of the rows that were looked at'} are"
        f" {length_words(left.shortest, tick)} (left) and {length_words(right.shortest, tick)} (right)"
        f" long, the window is {length_words(window.width, tick)} wide; widen it, or lower the"
        " confidence"
    )


def _of_times(left: Evidence, right: Evidence, window: Window) -> tuple[bool, str]:
    times = f"{left.words}; {right.words}"
    late, early = right.first - left.last - window.hi, left.first - right.last + window.lo
    missed = max(late, early)
    if missed <= 0:
        return False, f"times: {times}"
    by = length_words(missed, left.scale.tick)
    where = "late" if late > 0 else "early"
    is_all = left.is_all and right.is_all
    return is_all, f"all right times are {by} or more too {where} for the window: {times}"


def _suspicions(left: Evidence, right: Evidence, window: Window) -> Iterator[str]:
    """Mistakes that such times look like."""
    middles = [abs(Fraction(side.first + side.last, 2)) for side in (left, right)]
    small, large = sorted(middles)
    for factor in _FACTORS:
        if small and abs(large / small / factor - 1) <= _NEAR:
            yield _of_factor(left, middles[0] > middles[1], factor)
            return
    shifts = right.first - left.first, right.last - left.last
    shift = Fraction(sum(shifts), 2)
    is_even = abs(shifts[1] - shifts[0]) <= _NEAR * abs(shift)
    if is_even and not window.lo <= shift <= window.hi:
        about = length_words(abs(shift), left.scale.tick, digits=3)
        later, earlier = ("right", "left") if shift > 0 else ("left", "right")
        yield (
            f"{later} begins and ends about {about} later than {earlier}: is a clock or a time zone"
            " off?"
        )


def _of_factor(left: Evidence, left_is_larger: bool, factor: int) -> str:
    larger, smaller = ("left", "right") if left_is_larger else ("right", "left")
    looks = f"{larger}'s times are about {factor:,} times {smaller}'s"
    if left.scale.column.family.startswith("timestamp"):
        return f"{looks}, counted from 1970: was one side read in the wrong unit?"
    return (
        f"{looks}: if the sides count different units, say which with left_unit and right_unit"
        " (--left-unit, --right-unit)"
    )
