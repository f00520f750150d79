"""What a condition asks of a pair, in ticks: the normal form of every predicate and of their conjunction.

For a fixed distance each predicate admits one interval of delta = T_effect - T_cause. There are
four kinds of limits: a window on delta whatever the distance; a largest distance; *fronts*, which
travel away from the cause at a constant speed and must, or must not yet, have reached the effect;
and ellipsoids.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from coincide.model.causality.spaces import largest_square
from coincide.model.errors import ConditionError, argument, option
from coincide.model.units import NANOSECONDS_PER_UNIT, UNBOUNDED, Tick

NOWHERE, BEHIND, AHEAD = 0, 2, 4
"""Kinds of fronts: none at all, the effect lies behind the front, or not behind it."""

STRICT = 1
"""Added to a kind where the front itself counts for neither."""

MOST_SPEEDS, MOST_ELLIPSOIDS = 2, 2
"""Most limits of one condition: kernels have room for this many."""

_GUARD = 1e-9
"""What bounds are widened by, relatively, where they only exclude: far more than floats err."""


class Front(NamedTuple):
    """A front that leaves the place of the cause `shift` ticks before it (negative: after it)."""

    speed: float = 1.0  # Distance per this many ticks: the square root of `per2`
    per2: float = 1.0
    shift: int = 0  # Ticks
    kind: int = NOWHERE  # `NOWHERE`, or `BEHIND` or `AHEAD`, plus `STRICT`

    @property
    def is_ahead(self) -> bool:
        """Whether the effect must not be behind it."""
        return self.kind >= AHEAD


class Ellipsoid(NamedTuple):
    """distance² · duration2 + delta² · radius2 <= both, or below it if `strict`."""

    radius2: float = 1.0  # Squared
    duration2: float = -1.0  # Squared, ticks²; negative of no ellipsoid
    both: float = 0.0  # Their product
    strict: bool = False


@dataclass(frozen=True)
class Limits:
    """What one predicate, or several at once, ask of a pair."""

    lo: int = -UNBOUNDED  # Window on delta, inclusive, ticks
    hi: int = UNBOUNDED  # Window on delta, inclusive, ticks
    radius: float = math.inf  # Largest distance; infinity for none
    strict: bool = False  # Whether the radius itself is too far
    fronts: tuple[Front, ...] = ()
    ellipsoids: tuple[Ellipsoid, ...] = ()

    def __and__(self, other: Limits) -> Limits:
        """The limits of both."""
        radius, inclusive = min((self.radius, not self.strict), (other.radius, not other.strict))
        return Limits(
            max(self.lo, other.lo), min(self.hi, other.hi), radius, not inclusive,
            self.fronts + other.fronts, self.ellipsoids + other.ellipsoids,
        )  # fmt: skip

    @property
    def bound(self) -> float:
        """The largest squared distance: infinity for none."""
        return math.inf if math.isinf(self.radius) else largest_square(self.radius, self.strict)

    @property
    def reach(self) -> float:
        """No pair that is farther apart meets them: infinity if there is no such distance."""
        reach, (_, hi) = self._nearest_radius(), self._window()
        for front in self.fronts:
            if not front.is_ahead and hi < UNBOUNDED:
                reach = min(reach, front.speed * max(hi + front.shift, 0) / math.sqrt(front.per2))
        return reach * (1 + _GUARD)

    @property
    def window(self) -> tuple[int, int]:
        """Where to look for pairs: as `deltas` or a little more, since floats err; `UNBOUNDED` for none."""
        (lo, hi), reach = self._window(), self.reach
        for front in self.fronts:
            if not front.is_ahead:
                lo = max(lo, -front.shift)
            elif reach < math.inf:
                last = reach * math.sqrt(front.per2) / front.speed - front.shift
                if last < UNBOUNDED:
                    hi = min(hi, math.floor(last + abs(last) * _GUARD) + 1)
        return lo, hi

    @property
    def deltas(self) -> tuple[int, int]:
        """Least and most delta of a pair that meets them, exactly; the first above the second for none."""
        # Floats count as the decimals that they read as: 0.3 is three tenths.
        lo, hi = self.window
        before, after = self._admitted(-1, max(1, -hi), -lo), self._admitted(1, max(1, lo), hi)
        found = [*before, *after, *([0] if self._admits(0) else [])]
        return (min(found), max(found)) if found else (1, 0)

    def _admitted(self, sign: int, first: int, last: int) -> list[int]:
        """The deltas nearest to 0 and farthest from it, before or after it, that some distance admits."""
        # What holds next to the window on delta is convex and begins at delta 0 and distance 0.
        # So where a delta is admitted all between it and 0 are.
        # Mostly it is the last one, or one next to it.
        low, high, step = last, last + 1, 1
        while low >= first and not self._admits(sign * low):
            low, high, step = low - step, low, 2 * step
        low = max(low, first - 1)
        while high - low > 1:
            middle = (low + high) // 2
            if self._admits(sign * middle):
                low = middle
            else:
                high = middle
        return [sign * first, sign * low] if low >= first else []

    def _admits(self, delta: int) -> bool:
        """Whether a pair at some distance meets them: between bounds on its square, inclusive or strict."""
        least, most = [(Fraction(0), False)], []
        if self.radius < math.inf:
            most.append((_decimal(self.radius) ** 2, self.strict))
        for each in self.fronts:
            ticks, strict = delta + each.shift, bool(each.kind & STRICT)
            passed = (_decimal(each.speed) * ticks / round(math.sqrt(each.per2))) ** 2
            if each.is_ahead:
                least += [(passed, strict)] if ticks >= 0 else []
            elif ticks < strict:
                return False
            else:
                most.append((passed, strict))
        for body in self.ellipsoids:
            share = 1 - Fraction(delta, round(math.sqrt(body.duration2))) ** 2
            most.append((_decimal(math.sqrt(body.radius2)) ** 2 * share, body.strict))
        return self.lo <= delta <= self.hi and all(
            low < high or (low == high and not (above or below))
            for low, above in least
            for high, below in most
        )

    @property
    def is_forward(self) -> bool:
        """Whether exact instants that meet them with the later as cause do so in the other order, too."""
        first = max([self.lo, *(-front.shift for front in self.fronts if not front.is_ahead)])
        last = min([self.hi, *(-front.shift for front in self.fronts if front.is_ahead)])
        return first + last >= 0

    @property
    def is_symmetric(self) -> bool:
        """Whether a pair meets them as it does in the other order."""
        return self.lo + self.hi == 0 and not self.fronts

    def _nearest_radius(self) -> float:
        return min([self.radius, *(math.sqrt(each.radius2) for each in self.ellipsoids)])

    def _window(self) -> tuple[int, int]:
        durations = [math.ceil(math.sqrt(each.duration2)) for each in self.ellipsoids]
        return max([self.lo, *(-each for each in durations)]), min([self.hi, *durations])

    def checked(self, condition: object) -> Limits:
        """Refuse limits that nothing meets, or that bound neither time nor distance."""
        lo, hi = self.window
        if lo > hi:
            raise ConditionError(
                f"no time difference meets {condition}. It would have to be at least {lo} and at"
                f" most {hi} ticks. Widen the windows, or use {argument('strict', False)}."
            )
        speeds = max(
            [sum(front.is_ahead == kind for front in self.fronts) for kind in (True, False)]
        )
        if speeds > MOST_SPEEDS or len(self.ellipsoids) > MOST_ELLIPSOIDS:
            raise ConditionError(
                f"a condition has at most {MOST_SPEEDS} predicates on speeds and"
                f" {MOST_ELLIPSOIDS} ellipsoids (found {speeds} and {len(self.ellipsoids)}). Join"
                " by some of them, then filter the result."
            )
        if self.bound < 0:
            raise ConditionError(
                f"no distance meets {condition}, as the radius is 0 and strict. Use"
                f" {argument('strict', False)}."
            )
        if math.isinf(self.reach) and max(-lo, hi) >= UNBOUNDED:
            raise ConditionError(
                f"{condition} limits neither the time nor the distance between cause and effect,"
                " so nearly every pair would match. Add Temporal(lo, hi) or Spatial(radius)."
            )
        return self


def all_of(limits: Iterable[Limits]) -> Limits:
    """The limits of a conjunction."""
    found = Limits()
    for each in limits:
        found = found & each
    return found


def ticks_per(per: str | None, tick: Tick) -> tuple[Fraction, str]:
    """Ticks in the unit of time of a speed, and that unit in words."""
    if per is None:
        return Fraction(1), "tick"
    if tick.nanoseconds is None:
        raise ConditionError(
            f"speeds are per {per}, but the unit of the time columns is unknown, as they hold"
            f" plain numbers. Give the unit of the columns, for example {option('unit', 'us')}, or"
            f" give speeds per tick with {argument('per', None)}."
        )
    return Fraction(NANOSECONDS_PER_UNIT[per], tick.nanoseconds), per


def front(speed: float, per: Fraction, shift: int, kind: int) -> Front:
    """A front of a speed in distance per `per` ticks."""
    # Both sides of the comparison stay whole numbers where speeds and distances are.
    return Front(float(_decimal(speed) * per.denominator), float(per.numerator**2), shift, kind)


def _decimal(number: float) -> Fraction:
    """The shortest decimal that reads as a float."""
    return Fraction(repr(number))


def ellipsoid(radius: float, duration: int, strict: bool) -> Ellipsoid:
    """(distance / radius)² + (delta / duration)² <= 1; the duration in ticks."""
    radius2, duration2 = radius**2, float(duration) ** 2
    return Ellipsoid(radius2, duration2, radius2 * duration2, strict)
