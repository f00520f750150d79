"""The condition of a join, given whole or in two words: `within` and `confidence`."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, brief
from coincide.predicates import Within, mutual_deadline, within
from coincide.sides import SIDES
from coincide.units import Duration
from spark_plugin.worker.timestamps.intervals import IntervalNames
from spark_plugin.worker.timestamps.names import GivenTimes, timestamp_names

GivenWindow = Duration | tuple[Duration, Duration] | Within
"""What users may say of a window: its two ends, one duration for both, or a predicate."""
_EXAMPLE = "within=('0s', '30s'), confidence=0.9"


def condition_of(
    condition: TimingCondition | None,
    window: GivenWindow | None,
    confidence: float | None,
    times: Sequence[GivenTimes],
) -> TimingCondition:
    """The condition that is meant: as it was given, or of a window and a confidence.

    Of exact times, which meet or do not, no confidence is needed.

    Raises
    ------
    ConditionError
        If it is given both ways, or not whole.
    """
    can_be_alone = are_exact(times)
    if (
        isinstance(condition, Within)
        and window is None
        and (confidence is not None or can_be_alone)
    ):
        condition, window = None, condition
    if condition is not None:
        if window is None and confidence is None:
            return condition
        given = "within" if window is not None else "confidence"
        raise ConditionError(
            f"condition says what pairs must meet, and {given} does, too: leave out one of them"
        )
    if window is None and confidence is None:
        raise ConditionError(
            f"say what pairs must meet, as by {_EXAMPLE}, or by condition=TimingCondition(...)"
        )
    if window is not None and confidence is None and can_be_alone:
        confidence = 1.0
    if window is None or confidence is None:
        lacking = "within" if window is None else "confidence"
        raise ConditionError(f"{lacking} is missing: give both, as in {_EXAMPLE}")
    return TimingCondition(window_of(window), confidence)


def are_exact(times: Sequence[GivenTimes]) -> bool:
    """Whether the times of all sides are instants: each of one column."""
    names = [timestamp_names(*each) for each in zip(SIDES, times, strict=False)]
    return all(isinstance(each, IntervalNames) and each.lower == each.upper for each in names)


def window_of(window: GivenWindow) -> Within:
    """The window on delta: a predicate as it is, two ends, or one duration for both.

    Raises
    ------
    ConditionError
        If it is none of these.
    """
    if isinstance(window, Within):
        return window
    if isinstance(window, (tuple, list)):
        if len(window) != 2:
            raise ConditionError(
                f"within takes (lo, hi), such as ('0s', '30s'), or one duration for both; found"
                f" {brief(window)}"
            )
        return within(*window)
    return mutual_deadline(window)


def check_second(right: object) -> None:
    """Refuse a condition where the second side belongs.

    Raises
    ------
    ConditionError
    """
    if isinstance(right, (TimingCondition, Within)):
        raise ConditionError(
            "right is a condition: to join one stream with itself say condition=..., as in"
            " correlate(events, condition=...)"
        )
