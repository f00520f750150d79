"""The timing condition: a predicate and the confidence that it must reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from coincide.errors import ConditionError, brief, percent
from coincide.predicates import Within
from coincide.units import Tick, as_float

SMALLEST_CONFIDENCE = 2.0**-49
"""Below this the decision's slack would let impossible pairs through."""


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

    def mirrored(self) -> Window:
        """The window seen from the right side."""
        return Window(-self.hi, -self.lo, self.confidence)

    def moved(self, ticks: int) -> Window:
        """The window so many ticks later."""
        return Window(self.lo + ticks, self.hi + ticks, self.confidence)


@dataclass(frozen=True)
class TimingCondition:
    """A pair qualifies when its satisfaction probability reaches the confidence threshold.

    Lee & Lee (2010), section 3.

    Parameters
    ----------
    predicate : Within
        Made by `within`, `mutual_deadline`, `deadline` or `delay`.
    confidence : float
        The confidence threshold ct, 0 < ct <= 1.
    """

    predicate: Within
    confidence: float

    def __post_init__(self) -> None:
        if not isinstance(self.predicate, Within):
            raise ConditionError(
                f"the predicate must be made by within() or mutual_deadline(); found {self.predicate!r}"
            )
        if isinstance(self.confidence, bool) or not isinstance(self.confidence, Real):
            raise ConditionError(
                f"the confidence must be a number, such as 0.9; found {brief(self.confidence)}"
            )
        confidence = as_float(self.confidence)
        if math.isnan(confidence) or not 0.0 < confidence <= 1.0:
            raise ConditionError(
                f"the confidence threshold must lie in (0, 1]; found {confidence}. 0.5 asks for pairs"
                f" that are more likely than not{percent(confidence)}"
            )
        if confidence <= SMALLEST_CONFIDENCE:
            raise ConditionError(
                f"the confidence threshold {confidence} cannot be told from 0 in float64 arithmetic;"
                " use more than 2^-49"
            )
        object.__setattr__(self, "confidence", confidence)

    def window(self, tick: Tick) -> Window:
        """The condition in ticks.

        Raises
        ------
        ConditionError
            As `Within.window`.
        """
        lo, hi = self.predicate.window(tick)
        return Window(lo, hi, self.confidence)

    def mirrored(self) -> TimingCondition:
        """The same condition with the two sides swapped."""
        return TimingCondition(self.predicate.mirrored(), self.confidence)
