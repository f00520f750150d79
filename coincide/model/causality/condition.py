"""The condition of a causality join: predicates on a cause and its effect, in a space of distances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from coincide.model.causality.deciding import PairRule, pair_rule
from coincide.model.causality.limits import (
    AHEAD,
    BEHIND,
    STRICT,
    Front,
    Limits,
    all_of,
    ellipsoid,
    front,
    ticks_per,
)
from coincide.model.causality.spaces import Plane, Space, Sphere, checked_number
from coincide.model.condition import checked_confidence
from coincide.model.errors import ConditionError, argument, brief
from coincide.model.options import check_truth
from coincide.model.units import Duration, Tick, size_of, unit_name


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
    confidence : float or str
        The least probability, 0 < confidence <= 1, that delta lies in the window that the predicates
        leave at the pair's distance; or a percentage such as ``"90%"``. A pair of exact instants has
        probability 0 or 1.
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
                f"the predicates of a causality condition are {names} (found"
                f" {brief(wrong[0]) if wrong else 'no predicate'})."
            )
        if not isinstance(self.space, (Plane, Sphere)):
            raise ConditionError(
                f"{argument('space')} must be Plane(...) or Sphere(...) (found"
                f" {brief(self.space)})."
            )
        object.__setattr__(self, "predicates", given)
        object.__setattr__(self, "confidence", checked_confidence(self.confidence))

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
    """A causality condition in ticks, as a join takes it."""

    rule: PairRule  # Decides pairs
    reach: float  # No pair that is farther apart qualifies; infinity if there is no such distance
    window: tuple[int, int]
    deltas: tuple[int, int]  # The same, exactly
    is_forward: bool = False  # As in `Limits`
    is_symmetric: bool = False  # As in `Limits`


Speed = float | str | None
"""A number; or None or ``"any"``, where there is no lowest or highest speed."""

ANY = "any"
"""What has no bound."""

_NO_SPEED = ', or None or "any" for no such bound'


@dataclass(frozen=True)
class Temporal:
    """lo <= delta <= hi, or lo < delta < hi if `strict`.

    Kwon & Li (2009), section 4.1, is ``Temporal(0, delta_t, strict=True)``.

    Parameters
    ----------
    lo, hi : int, str or None
        Durations: ints in ticks, or strings with a unit. None leaves that end open.
    strict : bool
    """

    lo: Duration | None
    hi: Duration | None
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("lo", "hi"):
            _check_duration(name, getattr(self, name), optional=True)
        if self.lo is None and self.hi is None:
            raise ConditionError(
                "Temporal needs at least one bound (found no bound). Give one, or remove Temporal."
            )
        check_truth("strict", self.strict)

    def limits(self, tick: Tick) -> Limits:
        """What it asks of a pair, in ticks.

        Raises
        ------
        ConditionError
            If the window is empty, or an end is no whole number of ticks.
        """
        strict = int(self.strict)
        whole = Limits()
        lo = whole.lo if self.lo is None else tick.count(self.lo) + strict
        hi = whole.hi if self.hi is None else tick.count(self.hi) - strict
        if lo > hi:
            wider = f"Widen it, or use {argument('strict', False)}."
            hint = "Swap the two bounds." if lo > hi + 2 * strict else wider
            raise ConditionError(f"the window of {self} contains no tick. {hint}")
        return Limits(lo, hi)


@dataclass(frozen=True)
class Spatial:
    """distance <= radius, or distance < radius if `strict`: Kwon & Li (2009), section 4.2.

    Parameters
    ----------
    radius : float
        In the unit of the distances of the space; 0 or more.
    strict : bool
    """

    radius: float
    strict: bool = False

    def __post_init__(self) -> None:
        radius = checked_number("radius", self.radius, zero=True)
        object.__setattr__(self, "radius", radius)
        check_truth("strict", self.strict)

    def limits(self, tick: Tick) -> Limits:
        """What it asks of a pair, in ticks."""
        return Limits(radius=self.radius, strict=self.strict)


@dataclass(frozen=True)
class Propagation:
    """t_p <= delta <= t_p + tolerance, strictly if `strict`: Kwon & Li (2009), section 4.3.

    t_p is a constant, or distance / speed: give one of `time` and `speed`.

    Parameters
    ----------
    tolerance : int or str
        The paper's delta_P: a duration, at least 0.
    time : int or str, optional
        A constant propagation time t_p, a duration, at least 0.
    speed : float, optional
        Distance per `per`.
    per : str or None
        The unit of time of `speed`; None: a tick.
    strict : bool
    """

    tolerance: Duration
    time: Duration | None = None
    speed: float | None = None
    per: str | None = "s"
    strict: bool = False

    def __post_init__(self) -> None:
        if (self.time is None) == (self.speed is None):
            raise ConditionError(
                "Propagation takes a propagation time or a speed (found"
                f" {'both' if self.speed is not None else 'neither'}). Give one of them."
            )
        _check_duration("tolerance", self.tolerance, least=0)
        _check_duration("time", self.time, optional=True, least=0)
        if self.speed is not None:
            object.__setattr__(self, "speed", checked_number("speed", self.speed))
        _check_per(self)
        check_truth("strict", self.strict)

    def limits(self, tick: Tick) -> Limits:
        """What it asks of a pair, in ticks.

        Raises
        ------
        ConditionError
            If a duration is no whole number of ticks, or a speed is in a unit of time and ticks are bare.
        """
        tolerance = tick.count(self.tolerance)
        if self.speed is None:
            assert self.time is not None
            start = tick.count(self.time)
            return Temporal(start, start + tolerance, self.strict).limits(tick)
        per, _ = ticks_per(self.per, tick)
        strict = STRICT if self.strict else 0
        fronts = (
            front(self.speed, per, 0, BEHIND + strict),
            front(self.speed, per, -tolerance, AHEAD + strict),
        )
        return Limits(fronts=fronts)


@dataclass(frozen=True)
class SpeedRange:
    """distance / v_max - slack <= delta <= distance / v_min + slack, strictly if `strict`.

    At distance 0 whatever travels arrives at once: -slack <= delta <= slack. Without a lowest speed an
    effect may come however late, at distance 0 as elsewhere; without a highest one it may come at once, at
    any distance.

    Parameters
    ----------
    v_min : float, None or "any"
        Distance per `per`. None, ``"any"`` and 0: no lowest speed, which leaves -slack <= delta at distance
        0.
    v_max : float, None or "any"
        At least `v_min`. None, ``"any"`` and infinity: no highest speed, which leaves -slack <= delta at
        any distance. One of the two must be a speed.
    slack : int or str
        How far times may be off, a duration, at least 0.
    per : str or None
        The unit of time of the speeds; None: a tick.
    strict : bool
    """

    v_min: Speed
    v_max: Speed
    slack: Duration = 0
    per: str | None = "s"
    strict: bool = False

    def __post_init__(self) -> None:
        for name, unlimited in (("v_min", 0.0), ("v_max", math.inf)):
            value = getattr(self, name)
            is_open = value in (None, ANY) or (value == unlimited and not isinstance(value, bool))
            number = unlimited if is_open else checked_number(name, value, hint=_NO_SPEED)
            object.__setattr__(self, name, number)
        v_min, v_max = self._speeds
        if v_min == 0 and v_max == math.inf:
            raise ConditionError(
                "SpeedRange needs a lowest or a highest speed (found neither). Give one. If an"
                " effect must only not be before its cause, use Temporal(0, None) instead."
            )
        if v_min > v_max:
            raise ConditionError(
                f"{argument('v_min')} ({v_min:g}) is above {argument('v_max')} ({v_max:g}). Swap"
                " the two."
            )
        _check_duration("slack", self.slack, least=0)
        _check_per(self)
        check_truth("strict", self.strict)

    def limits(self, tick: Tick) -> Limits:
        """As `Propagation.limits`."""
        slack, (per, _) = tick.count(self.slack), ticks_per(self.per, tick)
        strict, (v_min, v_max) = STRICT if self.strict else 0, self._speeds
        fronts: list[Front] = []
        if v_max < math.inf:
            fronts.append(front(v_max, per, slack, BEHIND + strict))
        if v_min > 0:
            fronts.append(front(v_min, per, -slack, AHEAD + strict))
        return Limits(lo=strict - slack, fronts=tuple(fronts))

    @property
    def _speeds(self) -> tuple[float, float]:
        """Both, 0 and infinity where it has no bound."""
        return self.v_min, self.v_max  # type: ignore[return-value]  # made floats above


@dataclass(frozen=True)
class Ellipsoidal:
    """(distance / radius)² + (delta / duration)² <= 1, or below 1 if `strict`.

    The neighbourhood by which lightning sources are joined to flashes.

    Parameters
    ----------
    radius : float
        In the unit of the distances of the space, above 0.
    duration : int or str
        Above 0.
    strict : bool
    """

    radius: float
    duration: Duration
    strict: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checked_number("radius", self.radius))
        _check_duration("duration", self.duration, least=1)
        check_truth("strict", self.strict)

    def limits(self, tick: Tick) -> Limits:
        """As `Temporal.limits`."""
        own = ellipsoid(self.radius, tick.count(self.duration), self.strict)
        return Limits(ellipsoids=(own,))


Predicate = Temporal | Spatial | Propagation | SpeedRange | Ellipsoidal
PREDICATES = (Temporal, Spatial, Propagation, SpeedRange, Ellipsoidal)


def _check_duration(
    name: str, value: Duration | None, *, optional: bool = False, least: int | None = None
) -> None:
    if value is None and optional:
        return
    size = size_of(value)  # type: ignore[arg-type]  # refuses what is no duration
    if least is not None and (size < least if least == 0 else size <= 0):
        raise ConditionError(
            f"{argument(name)} must {'not be negative' if least == 0 else 'be above 0'} (found"
            f" {brief(value)})."
        )


def _check_per(predicate: Propagation | SpeedRange) -> None:
    if predicate.per is not None:
        if not isinstance(predicate.per, str):
            raise ConditionError(
                f"{argument('per')} must be a unit of time, or None (found {brief(predicate.per)})."
            )
        object.__setattr__(predicate, "per", unit_name(predicate.per))
