"""The condition of a causality join: a conjunction of predicates, and the space that distances are of."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real

from coincide.cause_and_effect.limits import Limits, all_of
from coincide.cause_and_effect.predicates import PREDICATES, Predicate, Propagation, Temporal
from coincide.cause_and_effect.rule import PairRule, pair_rule
from coincide.cause_and_effect.spaces import Plane, Space, Sphere
from coincide.condition import SMALLEST_CONFIDENCE
from coincide.errors import ConditionError, brief, percent
from coincide.units import Tick, as_float


@dataclass(frozen=True)
class CausalityCondition:
    """A pair qualifies when it meets every predicate: Kwon & Li (2009), Equation 2.

    Parameters
    ----------
    predicates : predicate or sequence of predicates
        `Temporal`, `Spatial`, `Propagation`, `SpeedRange`, `Ellipsoidal`, in any number and order. Together
        they must bound the time or the distance.
    space : Plane or Sphere
        What coordinates are, and what the distance of two places is.
    confidence : float
        Of interval timestamps: the least probability, 0 < confidence <= 1, that delta lies in the
        window that the predicates leave at the pair's distance. Of exact instants every pair has 0 or 1.
    """

    predicates: tuple[Predicate, ...]
    space: Space = Plane()  # noqa: RUF009 - frozen
    confidence: float = 1.0

    def __post_init__(self) -> None:
        given = self.predicates
        given = tuple(given) if isinstance(given, Iterable) else (given,)
        wrong = [each for each in given if not isinstance(each, PREDICATES)]
        if wrong or not given:
            names = ", ".join(kind.__name__ for kind in PREDICATES)
            raise ConditionError(
                f"the predicates of a causality condition are {names}; found"
                f" {brief(wrong[0]) if wrong else 'none'}"
            )
        if not isinstance(self.space, (Plane, Sphere)):
            raise ConditionError(
                f"space must be Plane(...) or Sphere(...); found {brief(self.space)}"
            )
        object.__setattr__(self, "predicates", given)
        object.__setattr__(self, "confidence", _checked_confidence(self.confidence))

    @property
    def needs_places(self) -> bool:
        """Whether it depends on the distance."""
        return not all(
            isinstance(each, Temporal) or (isinstance(each, Propagation) and each.speed is None)
            for each in self.predicates
        )

    def limits(self, tick: Tick) -> Limits:
        """What it asks of a pair, in ticks.

        Raises
        ------
        ConditionError
            If a predicate does not go with the tick, nothing meets all of them, or they bound neither the
            time nor the distance.
        """
        words = " and ".join(map(str, self.predicates))
        return all_of(each.limits(tick) for each in self.predicates).checked(words)

    def model(self, tick: Tick, heights: bool = False) -> CausalityModel:
        """The condition in ticks, for a join.

        Parameters
        ----------
        tick : Tick
        heights : bool
            Whether places on a sphere have heights.

        Raises
        ------
        ConditionError
            As `limits`.
        """
        limits = self.limits(tick)
        rule = pair_rule(limits, self.space, heights, self.confidence)
        shape = limits.is_forward, limits.is_symmetric
        return CausalityModel(rule, limits.reach, limits.window, limits.deltas, *shape)


@dataclass(frozen=True, eq=False)
class CausalityModel:
    """A causality condition in ticks, as a join takes it.

    Parameters
    ----------
    rule : PairRule
        Decides pairs.
    reach : float
        No pair that is farther apart qualifies; infinity if there is no such distance.
    window : (int, int)
        Least and most delta of a pair of exact instants that qualifies, or a little more, ticks: where to
        look for pairs.
    deltas : (int, int)
        The same, exactly.
    is_forward, is_symmetric : bool
        As of `Limits`.
    """

    rule: PairRule
    reach: float
    window: tuple[int, int]
    deltas: tuple[int, int]
    is_forward: bool = False
    is_symmetric: bool = False


def _checked_confidence(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise ConditionError(f"the confidence must be a number, such as 0.9; found {brief(given)}")
    confidence = as_float(given)
    if math.isnan(confidence) or not SMALLEST_CONFIDENCE < confidence <= 1.0:
        raise ConditionError(
            f"the confidence must lie in (0, 1], above 2^-49; found {confidence}. 0.5 asks for pairs that"
            f" are more likely than not{percent(confidence)}"
        )
    return confidence
