"""What a stream correlator is told about its streams, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Literal

from coincide.model.condition import TimingCondition, Window, Within, within
from coincide.model.errors import ConditionError, argument
from coincide.model.units import TIME_LIMIT, Tick

Emit = Literal["pairs", "counts"]


@dataclass(frozen=True)
class SideLimits:
    """What is promised about the events of one side, in ticks."""

    delay: int  # The papers' largest delay: an event arrives no later than this after its max_time
    shortest: int  # Least and largest shape of the timestamps: of intervals, the papers' rho and pi
    longest: int  # Least and largest shape of the timestamps: of intervals, the papers' rho and pi


def side_limits(side: str, delay: object, shortest: object, longest: object) -> SideLimits:
    """The limits of one side."""
    delay, shortest, longest = (
        _ticks(f"{side}_{name}", value)
        for name, value in (("delay", delay), ("shortest", shortest), ("longest", longest))
    )
    if shortest > longest:
        raise ConditionError(
            f"{side}_shortest ({shortest}) is above {side}_longest ({longest}). Swap the two."
        )
    return SideLimits(delay, shortest, longest)


def window_in_ticks(condition: Window | TimingCondition) -> Window:
    """The condition as a checked window."""
    if isinstance(condition, TimingCondition):
        _refuse_text(condition.predicate)
        return condition.window(Tick())
    if not isinstance(condition, Window):
        raise ConditionError(
            f"the condition must be a TimingCondition or a Window (found {condition!r}). Wrap a"
            " predicate as TimingCondition(predicate, confidence=...)."
        )
    _refuse_text(condition)
    lo, hi = Tick().count(condition.lo), Tick().count(condition.hi)
    if lo > hi:
        raise ConditionError(f"the window is empty: lo ({lo}) is above hi ({hi}). Swap the two.")
    return Window(lo, hi, TimingCondition(within(0, 0), condition.confidence).confidence)


def _refuse_text(ends: Window | Within) -> None:
    for end in (ends.lo, ends.hi):
        if isinstance(end, str):
            raise ConditionError(
                f"the duration {end!r} has a unit, but a stream's times are bare ticks. Give it"
                " as an int in ticks."
            )


def count_of(name: str, value: object) -> int:
    """A whole number of at least 1."""
    number = _whole(name, value)
    if number < 1:
        raise ConditionError(f"{argument(name)} must be at least 1 (found {number}).")
    return number


def _ticks(name: str, value: object) -> int:
    number = _whole(name, value)
    # Times lie within 2^61 of zero, so they can be twice as far apart.
    if not 0 <= number < 2 * TIME_LIMIT:
        raise ConditionError(
            f"{argument(name)} must be 0 or more and below 2^62 ticks (found {number})."
        )
    return number


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        hint = (
            ". The times of a stream are bare ticks. Give an int" if isinstance(value, str) else ""
        )
        raise ConditionError(f"{argument(name)} must be an int (found {value!r}){hint}.") from None


FARTHEST = 2**63 - 1


def clamped(bound: int) -> int:
    """A bound as an int64: differences of keys are smaller than any that it is cut to."""
    return max(-FARTHEST, min(FARTHEST - 1, bound))
