"""Why a join finds nothing: what is known of both sides, and what follows from it. No Spark.

Asked when nothing was found, or before, of what is known by then; never while rows are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np

from coincide.condition import Window
from coincide.probability import DECISION_SLACK, highest_probability
from coincide.sides import SIDES
from coincide.timestamps import HistogramPairs, IntervalPairs
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.arrow.time_words import length_words, time_words
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.reports.key_overlap import KeyOverlap
from spark_plugin.worker.reports.nearest import NearestMiss
from spark_plugin.worker.reports.reachable import highest_of_templates
from spark_plugin.worker.timestamps.models import Bounds

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
    typical : int or None
        Half of the timestamps are at least so long, ticks; None if nobody has counted.
    """

    scale: TimeScale
    events: int
    shortest: int = 0
    first: int = 0
    last: int = 0
    is_all: bool = True
    typical: int | None = None

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
    high, lengths = side.max_time, side.lengths
    if side.matchable is not None:
        high, lengths = high[side.matchable], lengths[side.matchable]
    if not high.size:
        return Evidence(scale, 0)
    low = high - lengths
    middle = lengths.size // 2
    return Evidence(
        scale, low.size, int(lengths.min()), int(low.min()), int(high.max()),
        typical=int(np.partition(lengths, middle)[middle]),
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
    is_asked_for : bool
        Whether the join asks for events without a partner, as ``how="anti"``: no cause for a warning.
    nearest_delta : int or None
        Of exact times: T_right - T_left of the pair of equal keys that is nearest to the window, ticks.
    """

    reasons: tuple[str, ...]
    hints: tuple[str, ...]
    highest_probability: float | None = None
    left_times: tuple[str, str] | None = None
    right_times: tuple[str, str] | None = None
    keys: KeyOverlap | None = None
    is_asked_for: bool = False
    nearest_delta: int | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """All that there is to say, the most telling first."""
        return (*self.reasons, *self.hints)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {**asdict(self), "is_asked_for": self.is_asked_for or None}
        return {name: value for name, value in values.items() if value is not None}


def explain_emptiness(
    left: Evidence,
    right: Evidence,
    spec: AnySpec,
    keys: KeyOverlap | None,
    nearest: NearestMiss | None = None,
) -> NoPairs:
    """What speaks against any pair.

    Parameters
    ----------
    left, right : Evidence
        Equal of one stream.
    spec : AnySpec
    keys : KeyOverlap or None
        None without keys, or if nobody has looked.
    nearest : NearestMiss or None
        Of exact times, where it is known.
    """
    window, how = spec.widest, spec.how
    without = [side.scale.column.side for side in (left, right) if not side.events]
    if without:
        reasons = tuple(f"{side} has no row that can match" for side in dict.fromkeys(without))
        return NoPairs(reasons, (), is_asked_for=how == "anti")
    best, told_of_lengths = highest(spec.pairs, left, right, window)
    lengths = left.shortest, right.shortest, left.typical or 0, right.typical or 0
    if not (spec.has_histograms or any(lengths)):
        # Each pair of exact times has a probability of 1 or 0, which says nothing.
        told_of_lengths = [each for each in told_of_lengths if each[0]]
    found = [
        *told_of_lengths,
        _of_times(left, right, window),
        *([(keys.is_all and not keys.shared, keys.describe())] if keys else []),
    ]
    reasons = tuple(text for is_reason, text in found if is_reason)
    hints = tuple(text for is_reason, text in found if not is_reason)
    if nearest is not None and not reasons:
        hints = (nearest.words(window, left.scale.tick, _called(left, right)), *hints)
    if getattr(spec, "where", None) is not None:
        hints += ("a pair must meet where= besides, which may leave out all that meet the window",)
    hints += tuple(_suspicions(left, right, window))
    times = left.words_of_times, right.words_of_times
    delta = None if nearest is None else nearest.delta
    return NoPairs(reasons, hints, best, *times, keys, how == "anti", delta)


_Words = list[tuple[bool, str]]


@singledispatch
def highest(
    pairs: Bounds, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    """The highest probability that a pair can reach, if it is known, and what to say of it."""
    return None, []


@highest.register
def _(
    pairs: IntervalPairs, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    best = highest_probability(left.shortest, right.shortest, window.width)
    return best, [of_probability(left, right, window, best)]


@highest.register
def _(
    pairs: HistogramPairs, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    best = highest_of_templates(pairs)
    if best is None:
        return None, []
    is_enough = _reaches(best, window.confidence)
    words = "enough for" if is_enough else "below"
    advice = "" if is_enough else "; widen the window, or lower the confidence"
    return best, [
        (
            not is_enough,
            f"the highest probability that these templates and this window allow is {best:.6g}, {words} the"
            f" confidence {window.confidence:g}: the window is"
            f" {length_words(window.width, left.scale.tick)} wide{advice}",
        )
    ]


def of_probability(
    left: Evidence, right: Evidence, window: Window, best: float, how_wide: str = "the window is"
) -> tuple[bool, str]:
    """Whether the highest probability of lengths and a window is too low for any pair, and the words."""
    confidence, tick = window.confidence, left.scale.tick
    is_all, is_enough = left.is_all and right.is_all, _reaches(best, confidence)
    judged = "enough for" if is_enough else "below"
    text = (
        f"the highest probability that these lengths and this window allow is {best:.6g}, {judged} the"
        f" confidence {confidence:g}: the shortest timestamps"
        f"{'' if is_all else ' of the rows that were looked at'} are"
        f" {_both(left, right, left.shortest, right.shortest)} long, {how_wide}"
        f" {length_words(window.width, tick)} wide"
    )
    typical = _of_typical_lengths(left, right, window)
    advice = "" if is_enough and not typical else "; widen it, or lower the confidence"
    return is_all and not is_enough, f"{text}{typical}{advice}"


def _of_typical_lengths(left: Evidence, right: Evidence, window: Window) -> str:
    """What most pairs can reach where that is too little, if the shortest do not tell it."""
    if left.typical is None or right.typical is None:
        return ""
    if (left.typical, right.typical) == (left.shortest, right.shortest):
        return ""
    reached = highest_probability(left.typical, right.typical, window.width)
    if _reaches(reached, window.confidence):
        return ""
    lengths = _both(left, right, left.typical, right.typical)
    return f", but half of the timestamps are {lengths} long or more, which allows {reached:.6g} at most"


def _reaches(probability: float, confidence: float) -> bool:
    return probability >= confidence - DECISION_SLACK


def _both(left: Evidence, right: Evidence, own: int, other: int) -> str:
    tick = left.scale.tick
    if left == right:
        return length_words(own, tick)
    names = _called(left, right)
    return f"{length_words(own, tick)} ({names[0]}) and {length_words(other, tick)} ({names[1]})"


def _of_times(left: Evidence, right: Evidence, window: Window) -> tuple[bool, str]:
    times = left.words if left == right else f"{left.words}; {right.words}"
    late, early = right.first - left.last - window.hi, left.first - right.last + window.lo
    missed = max(late, early)
    if missed <= 0:
        return False, f"times: {times}"
    by = length_words(missed, left.scale.tick)
    where = "late" if late > 0 else "early"
    is_all, called = left.is_all and right.is_all, right.scale.column.side
    return is_all, f"all {called} times are {by} or more too {where} for the window: {times}"


def _suspicions(left: Evidence, right: Evidence, window: Window) -> Iterator[str]:
    """Mistakes that such times look like."""
    if left == right:
        return
    middles = [abs(Fraction(side.first + side.last, 2)) for side in (left, right)]
    small, large = sorted(middles)
    for factor in _FACTORS:
        if small and abs(large / small / factor - 1) <= _NEAR:
            yield _of_factor(left, right, middles[0] > middles[1], factor)
            return
    shifts = right.first - left.first, right.last - left.last
    shift = Fraction(sum(shifts), 2)
    is_even = abs(shifts[1] - shifts[0]) <= _NEAR * abs(shift)
    if shift and is_even and not window.lo <= shift <= window.hi:
        about = length_words(abs(shift), left.scale.tick, digits=3)
        earlier, later = _called(left, right)[:: 1 if shift > 0 else -1]
        yield (
            f"{later} begins and ends about {about} later than {earlier}: is a clock or a time zone"
            " off?"
        )


def _called(left: Evidence, right: Evidence) -> tuple[str, str]:
    return left.scale.column.side, right.scale.column.side


def _of_factor(left: Evidence, right: Evidence, left_is_larger: bool, factor: int) -> str:
    called = _called(left, right)
    larger, smaller = called if left_is_larger else called[::-1]
    looks = f"{larger}'s times are about {factor:,} times {smaller}'s"
    if left.scale.column.family.startswith("timestamp"):
        return f"{looks}, counted from 1970: was one side read in the wrong unit?"
    given = (
        "with left_unit and right_unit (--left-unit, --right-unit)"
        if called == SIDES
        else f"in options: left_unit for {called[0]} times, right_unit for {called[1]} times"
    )
    return f"{looks}: if the sides count different units, say which {given}"
