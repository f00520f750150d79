"""Timing predicates: windows on delta = T_right - T_left, both ends inclusive.

Lee & Lee (2010), section 3, speak of deadlines, delays and mutual deadlines; each is such a window.
"""

from __future__ import annotations

from dataclasses import dataclass

from coincide.errors import ConditionError, brief
from coincide.units import Duration, Tick, plain, size_of


@dataclass(frozen=True)
class Within:
    """lo <= delta <= hi. None leaves that end open.

    Parameters
    ----------
    lo, hi : int, str or None
        Durations: ints in ticks, or strings with a unit.
    """

    lo: Duration | None
    hi: Duration | None

    def __post_init__(self) -> None:
        if self.lo is None and self.hi is None:
            raise ConditionError("a predicate needs at least one bound; found none")
        for name in ("lo", "hi"):
            bound = getattr(self, name)
            if bound is not None:
                size_of(bound)
                object.__setattr__(self, name, plain(bound))
        if type(self.lo) is type(self.hi) and self.lo is not None and self.hi is not None:
            _check_order(self, size_of(self.lo), size_of(self.hi))

    def window(self, tick: Tick) -> tuple[int, int]:
        """The two ends in ticks, for a join.

        Raises
        ------
        ConditionError
            If an end is open, lo > hi, or an end is no whole number of ticks.
        """
        if self.lo is None or self.hi is None:
            raise ConditionError(
                f"a join needs both ends of its window, but {self} leaves one open. Use"
                " within(lo, hi), for example within(0, '5s') instead of deadline('5s')"
            )
        lo, hi = tick.count(self.lo), tick.count(self.hi)
        _check_order(self, lo, hi)
        return lo, hi

    def mirrored(self) -> Within:
        """The predicate for swapped sides: within(-hi, -lo)."""
        return Within(_negated(self.hi), _negated(self.lo))

    def __str__(self) -> str:
        if self.hi is None:
            return f"delta >= {self.lo}"
        return f"delta <= {self.hi}" if self.lo is None else f"{self.lo} <= delta <= {self.hi}"


def within(lo: Duration, hi: Duration) -> Within:
    """lo <= T_right - T_left <= hi."""
    return Within(lo, hi)


def mutual_deadline(d: Duration) -> Within:
    """|T_right - T_left| <= d, the mutual deadline of Lee & Lee (2010), section 3."""
    Within(None, d)  # refuses what is no duration
    if size_of(d) < 0:
        raise ConditionError(
            f"a mutual deadline must not be negative; found {brief(d)}. Leave out the minus"
        )
    return Within(_negated(d), d)


def deadline(d: Duration) -> Within:
    """T_right - T_left <= d. One-sided: for single pairs, not for joins."""
    return Within(None, d)


def delay(d: Duration) -> Within:
    """T_right - T_left >= d. One-sided: for single pairs, not for joins."""
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
            f"the window is empty: lo ({predicate.lo}) is above hi ({predicate.hi}). Swap the two"
        )
