"""The timing condition: a predicate on delta = T_right - T_left, and the confidence that it must reach."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, get_args

from coincide.model.errors import ConditionError, argument, brief, percent
from coincide.model.options import check_choice
from coincide.model.units import UNBOUNDED, Duration, Tick, as_float, plain, size_of

SMALLEST_CONFIDENCE = 2.0**-49
"""Below this the decision's slack would let impossible pairs through."""
ANY_CHANCE = 2 * SMALLEST_CONFIDENCE
"""The confidence that all pairs reach which may be. What is not yet that may be a rounding error."""
Confidence = float | str
"""What users may say of a confidence: a number, or a percentage such as ``"90%"``."""
_PERCENT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+))\s*%\s*")


@dataclass(frozen=True)
class Window:
    """A timing condition in ticks, as the kernels take it.

    Parameters
    ----------
    lo, hi : int
        Ends of the window on delta, in ticks, inclusive.
    confidence : float
        ct, in (0, 1].
    """

    lo: int
    hi: int
    confidence: float

    @property
    def width(self) -> int:
        """hi - lo, in ticks."""
        return self.hi - self.lo

    @property
    def is_even(self) -> bool:
        """Whether each pair qualifies in both orders or in none."""
        return self.lo + self.hi == 0

    def mirrored(self) -> Window:
        """The window seen from the right side."""
        return Window(-self.hi, -self.lo, self.confidence)

    def moved(self, ticks: int) -> Window:
        """The window moved by some ticks."""
        return Window(self.lo + ticks, self.hi + ticks, self.confidence)


@dataclass(frozen=True)
class OpenWindow(Window):
    """A window without one of its ends: no two times are so far apart, `UNBOUNDED` ticks."""

    @property
    def is_backward(self) -> bool:
        """Whether it is the first end that is open, so that it has all that came before."""
        return self.lo == -UNBOUNDED

    @property
    def beyond(self) -> int:
        """More ticks than these lie between two events of a pair, in the direction of the open end."""
        return (-self.hi if self.is_backward else self.lo) - 1

    def mirrored(self) -> OpenWindow:
        """The window seen from the right side."""
        return OpenWindow(-self.hi, -self.lo, self.confidence)

    def moved(self, ticks: int) -> OpenWindow:
        """The window moved by some ticks; no end is no end."""
        lo, hi = (each if abs(each) == UNBOUNDED else each + ticks for each in (self.lo, self.hi))
        return OpenWindow(lo, hi, self.confidence)


@dataclass(frozen=True)
class TimingCondition:
    """A pair qualifies when its satisfaction probability reaches the confidence threshold.

    Lee & Lee (2010), section 3.

    Parameters
    ----------
    predicate : Within
        Made by `within`, `mutual_deadline`, `deadline` or `delay`.
    confidence : float or str
        The confidence threshold ct, 0 < ct <= 1, or a percentage such as ``"90%"``.
    """

    predicate: Within
    confidence: float

    def __post_init__(self) -> None:
        if not isinstance(self.predicate, Within):
            raise ConditionError(
                "the predicate must be made by within() or mutual_deadline() (found"
                f" {self.predicate!r})."
            )
        object.__setattr__(self, "confidence", checked_confidence(self.confidence))

    def window(self, tick: Tick) -> Window:
        """The condition in ticks.

        Raises
        ------
        ConditionError
            As `Within.window`.
        """
        lo, hi = self.predicate.window(tick)
        return Window(lo, hi, self.confidence)

    def open_window(self, tick: Tick) -> Window:
        """The condition in ticks, which may be without an end: for joins that need not bound it."""
        if not self.predicate.is_open:
            return self.window(tick)
        lo, hi = self.predicate.ends(tick)
        return OpenWindow(
            -UNBOUNDED if lo is None else lo, UNBOUNDED if hi is None else hi, self.confidence
        )

    def mirrored(self) -> TimingCondition:
        """The same condition with the two sides swapped."""
        return TimingCondition(self.predicate.mirrored(), self.confidence)


def of_percent(given: Any) -> Any:
    """The number that a percentage such as ``"90%"`` is; all else as it is."""
    found = _PERCENT.fullmatch(given) if isinstance(given, str) else None
    return given if found is None else float(Decimal(found[1]).scaleb(-2))


def checked_confidence(given: Any) -> float:
    """A confidence threshold as a float, if it is one."""
    given = of_percent(given)
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ConditionError(
            f"the confidence must be a number, such as 0.9, or '90%' (found {brief(given)})."
        )
    confidence = as_float(given)
    if math.isnan(confidence) or not 0.0 < confidence <= 1.0:
        raise ConditionError(
            "the confidence threshold must lie in (0, 1] (found"
            f" {confidence}{percent(confidence)}). Use 0.5 for pairs that are more likely than"
            " not."
        )
    if confidence <= SMALLEST_CONFIDENCE:
        raise ConditionError(
            "the confidence threshold is too near 0 for float64 arithmetic (found"
            f" {confidence}). Use more than 2^-49."
        )
    return confidence


Closed = Literal["both", "left", "right", "neither"]
"""Which ends of a window belong to it, as pandas says it: the left end is lo, the right one hi."""
_SWAPPED: dict[Closed, Closed] = {
    "both": "both", "left": "right", "right": "left", "neither": "neither",
}  # fmt: skip


@dataclass(frozen=True)
class Within:
    """lo <= delta <= hi. None leaves that end open.

    Parameters
    ----------
    lo, hi : int, str or None
        Durations: strings with a unit, or ints in ticks next to numbers.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the window. Time is whole ticks: an end that does not is left out by moving
        it in by one tick.
    """

    lo: Duration | None
    hi: Duration | None
    closed: Closed = field(default="both", kw_only=True)

    def __post_init__(self) -> None:
        check_choice("closed", self.closed, get_args(Closed))
        if self.lo is None and self.hi is None:
            raise ConditionError(
                "a predicate needs at least one bound (found no bound). Give lo, hi, or both."
            )
        for name in ("lo", "hi"):
            bound = getattr(self, name)
            if bound is not None:
                size_of(bound)
                object.__setattr__(self, name, plain(bound))
        if type(self.lo) is type(self.hi) and self.lo is not None and self.hi is not None:
            _check_order(self, size_of(self.lo), size_of(self.hi))

    def __repr__(self) -> str:
        said = "" if self.closed == "both" else f", closed={self.closed!r}"
        return f"Within(lo={self.lo!r}, hi={self.hi!r}{said})"

    def window(self, tick: Tick) -> tuple[int, int]:
        """The two ends in ticks, for a join; both belong to it, whatever `closed` says.

        Raises
        ------
        ConditionError
            If an end is open, no tick lies between them, or an end is no whole number of ticks.
        """
        lo, hi = self.ends(tick)
        if lo is None or hi is None:
            raise ConditionError(
                f"a join needs both ends of its window, but {self} has one. Use within(lo, hi),"
                " for example within(0, '5s') instead of deadline('5s')."
            )
        if lo > hi:
            _check_order(self, tick.count(self.lo), tick.count(self.hi))  # type: ignore[arg-type]
            raise ConditionError(
                f"the window is empty: {argument('closed', self.closed)} leaves no whole tick"
                f" between {self.lo} and {self.hi}. Use {argument('closed', 'both')}, or count"
                " time in a finer tick."
            )
        return lo, hi

    @property
    def holds_lo(self) -> bool:
        """Whether `lo` belongs to the window."""
        return self.closed in ("both", "left")

    @property
    def is_open(self) -> bool:
        """Whether an end is missing."""
        return self.lo is None or self.hi is None

    def ends(self, tick: Tick) -> tuple[int | None, int | None]:
        """The ends in ticks, None for one that is open; both belong to it."""
        # Last comes first: an error shows hi of a mutual deadline.
        hi = None if self.hi is None else tick.count(self.hi) - (self.closed in ("left", "neither"))
        lo = None if self.lo is None else tick.count(self.lo) + (not self.holds_lo)
        return lo, hi

    def mirrored(self) -> Within:
        """The predicate for swapped sides: within(-hi, -lo)."""
        return Within(_negated(self.hi), _negated(self.lo), closed=_SWAPPED[self.closed])

    def __str__(self) -> str:
        above = "<=" if self.holds_lo else "<"
        below = "<=" if self.closed in ("both", "right") else "<"
        if self.hi is None:
            return f"delta {above.replace('<', '>')} {self.lo}"
        if self.lo is None:
            return f"delta {below} {self.hi}"
        return f"{self.lo} {above} delta {below} {self.hi}"


def within(lo: Duration | None, hi: Duration | None, *, closed: Closed = "both") -> Within:
    """lo <= T_right - T_left <= hi.

    Parameters
    ----------
    lo, hi : int, str, timedelta or None
        Durations: strings with a unit, or ints in ticks next to numbers. One may be None for no such
        end, where a join asks for the last or the first match alone.
    closed : {"both", "left", "right", "neither"}
        Which ends belong to the window, as pandas says it. Time is whole ticks, so an end that does not
        belong to it is moved in by one tick.

    Examples
    --------
    >>> str(within(0, "30s", closed="right"))
    '0 < delta <= 30s'
    """
    return Within(lo, hi, closed=closed)


def mutual_deadline(d: Duration, *, closed: Closed = "both") -> Within:
    """|T_right - T_left| <= d, the mutual deadline of Lee & Lee (2010), section 3.

    `closed` means what it means for `within`.
    """
    Within(None, d)  # refuses what is no duration
    if size_of(d) < 0:
        raise ConditionError(
            f"a mutual deadline must not be negative (found {brief(d)}). Remove the minus sign."
        )
    return Within(_negated(d), d, closed=closed)


def deadline(d: Duration) -> Within:
    """T_right - T_left <= d. One-sided: for single pairs, or for the last or first match."""
    return Within(None, d)


def delay(d: Duration) -> Within:
    """T_right - T_left >= d. One-sided: for single pairs, or for the last or first match."""
    return Within(d, None)


def _negated(bound: Duration | None) -> Duration | None:
    if bound is None:
        return None
    bound = plain(bound)
    if isinstance(bound, int):
        return -bound
    text = bound.strip()
    if text.startswith("-"):
        return text[1:].strip()
    return "-" + text.removeprefix("+").strip()


def _check_order(predicate: Within, lo: object, hi: object) -> None:
    if lo > hi:  # type: ignore[operator]
        raise ConditionError(
            f"the window is empty: lo ({predicate.lo}) is above hi ({predicate.hi}). Swap the two."
        )
