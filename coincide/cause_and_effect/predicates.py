"""Predicates on a cause and its effect: on delta = T_effect - T_cause, and on the distance of the two.

Kwon & Li (2009), sections 3.1 and 4: temporal, spatial and spatiotemporal predicates. The paper's
bounds are strict; here they are inclusive unless ``strict=True`` is given, as windows are everywhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from coincide.cause_and_effect.limits import (
    AHEAD,
    BEHIND,
    STRICT,
    Front,
    Limits,
    ellipsoid,
    front,
    ticks_per,
)
from coincide.cause_and_effect.numbers import checked_number
from coincide.errors import ConditionError, brief
from coincide.units import Duration, Tick, size_of, unit_name

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
            raise ConditionError("Temporal needs at least one bound; found none. Leave it out")
        _check_strict(self.strict)

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
            hint = "Swap the two" if lo > hi + 2 * strict else "Widen it, or use strict=False"
            raise ConditionError(f"the window of {self} holds no tick. {hint}")
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
        _check_strict(self.strict)

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
                "Propagation takes either time, a constant propagation time, or speed; found"
                f" {'both' if self.speed is not None else 'neither'}"
            )
        _check_duration("tolerance", self.tolerance, least=0)
        _check_duration("time", self.time, optional=True, least=0)
        if self.speed is not None:
            object.__setattr__(self, "speed", checked_number("speed", self.speed))
        _check_per(self)
        _check_strict(self.strict)

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
                "SpeedRange needs a lowest or a highest speed; found neither. Leave it out, or say"
                " Temporal(lo, None) for effects that are not before their cause"
            )
        if v_min > v_max:
            raise ConditionError(f"v_min ({v_min:g}) is above v_max ({v_max:g}). Swap the two")
        _check_duration("slack", self.slack, least=0)
        _check_per(self)
        _check_strict(self.strict)

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
        """Both, 0 and infinity where there is none."""
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
        _check_strict(self.strict)

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
            f"{name} must {'not be negative' if least == 0 else 'be above 0'}; found {brief(value)}"
        )


def _check_per(predicate: Propagation | SpeedRange) -> None:
    if predicate.per is not None:
        if not isinstance(predicate.per, str):
            raise ConditionError(
                f"per must be a unit of time, or None; found {brief(predicate.per)}"
            )
        object.__setattr__(predicate, "per", unit_name(predicate.per))


def _check_strict(strict: object) -> None:
    if not isinstance(strict, bool):
        raise ConditionError(f"strict must be True or False; found {brief(strict)}")
