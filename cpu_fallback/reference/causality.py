"""The oracle of causality: every cause against every effect, in rational arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from cpu_fallback.reference.decision import qualifies, satisfaction_probability
from cpu_fallback.reference.join import Histogram, histogram_probability

Number = Any
Place = Sequence[Number]
Event = tuple[Any, Any, Any]
Predicate = Callable[[int, Any], bool]
"""From delta, in ticks, and the squared distance, to whether they meet it."""

_DIGITS = 60
_ENOUGH = Decimal(10) ** -50


def temporal(lo: int | None, hi: int | None, strict: bool = False) -> Predicate:
    """lo <= delta <= hi, or strictly between: section 4.1."""
    return lambda delta, _: (
        (lo is None or _above(delta, lo, strict)) and (hi is None or _above(hi, delta, strict))
    )


def spatial(radius: Number, strict: bool = False) -> Predicate:
    """distance <= radius, or below it: section 4.2."""
    return lambda _, distance2: _above(_like(distance2, radius) ** 2, distance2, strict)


def propagation(tolerance: int, time: int, strict: bool = False) -> Predicate:
    """t_p <= delta <= t_p + tolerance, or strictly between, of a constant t_p: section 4.3."""
    return temporal(time, time + tolerance, strict)


def speed_range(
    v_min: Number, v_max: Number, early: int, late: int, strict: bool = False
) -> Predicate:
    """distance / v_max - early <= delta <= distance / v_min + late, or strictly between."""
    # Speeds are distances per tick. Section 4.3 with t_p = distance / v has v_min = v_max = v,
    # early = 0 and late = tolerance. A None for v_max is a speed without bound. With a None or 0 for
    # v_min the latest delta has no bound, at distance 0 as well.

    def holds(delta: int, distance2: Number) -> bool:
        after, before = delta + early, delta - late
        if v_max is None:
            behind = _above(after, 0, strict)
        else:
            # distance / v_max <= after, and the left is at least 0.
            behind = after >= 0 and _above(
                (_like(distance2, v_max) * after) ** 2, distance2, strict
            )
        if before < 0 or not v_min:
            return behind
        return behind and _above(distance2, (_like(distance2, v_min) * before) ** 2, strict)

    return holds


def ellipsoidal(radius: Number, duration: int, strict: bool = False) -> Predicate:
    """(distance / radius)² + (delta / duration)² <= 1, or below 1."""

    def holds(delta: int, distance2: Number) -> bool:
        r, d = _like(distance2, radius), _like(distance2, duration)
        return _above(
            _like(distance2, 1), distance2 / r**2 + (_like(distance2, delta) / d) ** 2, strict
        )

    return holds


def causality(
    causes: Sequence[Event],
    effects: Sequence[Event],
    predicates: Sequence[Predicate],
    distance2: Callable[[Place, Place], Number],
) -> list[tuple[int, int]]:
    """Rows of all pairs (cause, effect) that meet every predicate: Definition 1 over all data."""
    return [
        (i, j)
        for i, cause in enumerate(causes)
        for j, effect in enumerate(effects)
        if _pairable(cause, effect) and _meets(cause, effect, predicates, distance2)
    ]


def causality_in_one(
    events: Sequence[Event],
    predicates: Sequence[Predicate],
    distance2: Callable[[Place, Place], Number],
) -> list[tuple[int, int]]:
    """As `causality`, of one stream: every event is a cause, and every other one may be its effect."""
    return [(i, j) for i, j in causality(events, events, predicates, distance2) if i != j]


def each_once(
    pairs: Sequence[tuple[int, int]], order: Callable[[int], Any]
) -> list[tuple[int, int]]:
    """Pairs of one stream in one order: of both that of the earlier event, by an order of rows."""
    known = set(pairs)
    return [(i, j) for i, j in pairs if order(i) < order(j) or (j, i) not in known]


def uncertain_causality(
    causes: Sequence[tuple[int, int, Place]],
    effects: Sequence[tuple[int, int, Place]],
    predicates: Sequence[Predicate],
    confidence: float,
    deltas: range,
) -> list[tuple[int, int]]:
    """Rows of all pairs of interval timestamps that qualify, in a plane."""
    # A pair's window is from the first to the last tick that the predicates admit at its distance.
    # The pair qualifies when delta lies in it with enough probability.
    found = []
    for i, (low, high, place) in enumerate(causes):
        for j, (first, last, where) in enumerate(effects):
            squared = plane_distance2(place, where)
            window = [d for d in deltas if all(each(d, squared) for each in predicates)]
            if window:
                p = satisfaction_probability(low, high, first, last, window[0], window[-1])
                if qualifies(p, confidence):
                    found.append((i, j))
    return found


def histogram_causality(
    causes: Sequence[tuple[Histogram, Place]],
    effects: Sequence[tuple[Histogram, Place]],
    predicates: Sequence[Predicate],
    confidence: float,
    deltas: range,
) -> list[tuple[int, int]]:
    """As `uncertain_causality`, of histogram timestamps: by the sum over pairs of buckets."""
    found = []
    for i, (cause, place) in enumerate(causes):
        for j, (effect, where) in enumerate(effects):
            squared = plane_distance2(place, where)
            window = [d for d in deltas if all(each(d, squared) for each in predicates)]
            if window:
                p = histogram_probability(cause, effect, window[0], window[-1])
                if qualifies(p, confidence):
                    found.append((i, j))
    return found


def clusters(n: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The smallest row that each of n rows is connected to, by pairs."""
    label = list(range(n))
    changed = True
    while changed:
        changed = False
        for i, j in pairs:
            smaller = min(label[i], label[j])
            changed |= label[i] != smaller or label[j] != smaller
            label[i] = label[j] = smaller
    return label


def plane_distance2(a: Place, b: Place) -> Fraction:
    """Squared straight distance, exactly."""
    return sum(((Fraction(p) - Fraction(q)) ** 2 for p, q in zip(a, b, strict=True)), Fraction(0))


def sphere_distance2(radius: Number) -> Callable[[Place, Place], Decimal]:
    """Squared distance on a sphere: great circle² + (difference of heights)², if there are heights."""
    # Places are latitude and longitude in degrees, and perhaps a height.

    def squared(a: Place, b: Place) -> Decimal:
        with localcontext() as context:
            context.prec = _DIGITS
            arc = Decimal(radius) * _arc(a[:2], b[:2])
            heights = Decimal(b[2]) - Decimal(a[2]) if len(a) == 3 else Decimal(0)
            return arc**2 + heights**2

    return squared


def _pairable(cause: Event, effect: Event) -> bool:
    whole = all(
        event[0] is not None and event[2] is not None and not _is_missing(event[1])
        for event in (cause, effect)
    )
    return whole and bool(cause[2] == effect[2])


def _is_missing(place: Place | None) -> bool:
    return place is None or any(each is None for each in place)


def _meets(
    cause: Event, effect: Event, predicates: Sequence[Predicate], distance2: Callable[..., Number]
) -> bool:
    delta, squared = effect[0] - cause[0], distance2(cause[1], effect[1])
    with localcontext() as context:
        context.prec = _DIGITS
        return all(predicate(delta, squared) for predicate in predicates)


def _above(a: Number, b: Number, strict: bool) -> bool:
    return bool(a > b) if strict else bool(a >= b)


def _like(model: Number, value: Number) -> Number:
    """A number of the kind that distances are."""
    if not isinstance(model, Decimal):
        return Fraction(value)
    if isinstance(value, Fraction):
        return Decimal(value.numerator) / Decimal(value.denominator)
    return Decimal(value)


def _arc(a: Place, b: Place) -> Decimal:
    """The angle between two directions, radians: by twice the arc sine of half the chord."""
    x, y = _direction(tuple(a)), _direction(tuple(b))
    half_chord2 = sum(((p - q) ** 2 for p, q in zip(x, y, strict=True)), Decimal(0)) / 4
    half_sum2 = max(Decimal(0), 1 - half_chord2)
    return 2 * _arc_tangent2(half_chord2.sqrt(), half_sum2.sqrt())


@cache
def _direction(place: Place) -> tuple[Decimal, Decimal, Decimal]:
    latitude, longitude = (Decimal(each) * pi() / 180 for each in place)
    sine, cosine = _sine(latitude), _sine(latitude + pi() / 2)
    return cosine * _sine(longitude + pi() / 2), cosine * _sine(longitude), sine


def _sine(angle: Decimal) -> Decimal:
    """By its power series."""
    term = total = angle
    n = 1
    while abs(term) > _ENOUGH:
        term *= -angle * angle / ((n + 1) * (n + 2))
        total += term
        n += 2
    return total


def _arc_tangent2(y: Decimal, x: Decimal) -> Decimal:
    """The angle of a point in the first quadrant, by halving it until its power series is short."""
    if y > x:
        return pi() / 2 - _arc_tangent2(x, y)
    if x == 0:
        return Decimal(0)
    ratio, doublings = y / x, 0
    while ratio > Decimal("0.05"):
        ratio = ratio / (1 + (1 + ratio**2).sqrt())
        doublings += 1
    term, total, n = ratio, ratio, 1
    while abs(term) > _ENOUGH:
        term *= -(ratio**2)
        n += 2
        total += term / n
    return total * 2**doublings


@cache
def pi() -> Decimal:
    """By Machin's formula, in the current precision."""
    return 16 * _inverse_tangent(5) - 4 * _inverse_tangent(239)


def _inverse_tangent(n: int) -> Decimal:
    """The arc tangent of 1 / n."""
    power = total = Decimal(1) / n
    k = 1
    while abs(power) > _ENOUGH:
        power /= -(n * n)
        k += 2
        total += power / k
    return total


PREFERENCES = ("probability", "nearest", "first", "last", "distance")
Timed = tuple[int, int, Place]
"""min_time, max_time and place."""


class Asked(NamedTuple):
    """Both sides, in a plane, and the question about their pairs.

    `predicates`, `confidence` and `deltas` are those of `uncertain_causality`; a window with the first
    or the last of the deltas is open there. `effects` of one stream are the causes. `admits` is a condition
    of its own, on the rows of a pair, its delta and its squared distance.
    """

    causes: Sequence[Timed]
    effects: Sequence[Timed]
    predicates: Sequence[Predicate]
    confidence: float
    deltas: range
    is_one_stream: bool = False
    admits: Callable[[int, int, int, Fraction], bool] = lambda *_: True


class Pair(NamedTuple):
    """Rows of a pair that qualifies, and all that it is ordered by."""

    cause: int
    effect: int
    probability: Fraction
    between: Fraction
    """From the middle of the cause to that of the effect."""
    from_middle: Fraction
    distance2: Fraction


def pairs(asked: Asked) -> list[Pair]:
    """All pairs."""
    # A window that is open at one end has no middle: nearest to the other end counts; in one that
    # is open at both all deltas are alike. In one stream every event is a cause, and every other
    # one may be its effect.
    found = []
    for i, j in uncertain_causality(*asked[:5]):
        (low, high, place), (first, last, where) = asked.causes[i], asked.effects[j]
        if asked.is_one_stream and i == j:
            continue
        squared = plane_distance2(place, where)
        doubled = first + last - low - high
        # The delta of the result: between midpoints, less half a tick if need be.
        if not asked.admits(i, j, doubled // 2, squared):
            continue
        window = [d for d in asked.deltas if all(each(d, squared) for each in asked.predicates)]
        p = satisfaction_probability(low, high, first, last, window[0], window[-1])
        lo = None if window[0] == asked.deltas[0] else window[0]
        hi = None if window[-1] == asked.deltas[-1] else window[-1]
        ends = [end for end in (lo, hi) if end is not None]
        between = Fraction(doubled, 2)
        apart = abs(between - Fraction(sum(ends), len(ends))) if ends else Fraction(0)
        found.append(Pair(i, j, p, between, apart, squared))
    return found


def place(asked: Asked, pair: Pair, prefer: str, match: str) -> tuple[Any, ...]:
    """The place of a pair among those of its event; `match` says what the other one is."""
    least = {
        "probability": -pair.probability, "nearest": abs(pair.between), "first": pair.between,
        "last": -pair.between, "distance": pair.distance2,
    }[prefer]  # fmt: skip
    row = pair.effect if match == "effect" else pair.cause
    side = asked.effects if match == "effect" else asked.causes
    earliest, latest, _ = side[row]
    is_latest = prefer == ("last" if match == "effect" else "first")
    apart = pair.from_middle, pair.distance2
    return (least, -pair.probability, *apart, latest, earliest, -row if is_latest else row)


def best_effects(
    asked: Asked, found: Sequence[Pair], prefer: str = "probability", k: int = 1
) -> list[tuple[int, int, int]]:
    """Cause, effect and rank of the k best effects of each cause among the pairs found, by row."""
    chosen = []
    for cause in range(len(asked.causes)):
        own = [pair for pair in found if pair.cause == cause]
        own.sort(key=lambda pair: place(asked, pair, prefer, "effect"))
        chosen += [(cause, pair.effect, rank) for rank, pair in enumerate(own[:k], 1)]
    return chosen


def mutual_pairs(asked: Asked, found: Sequence[Pair], prefer: str) -> list[tuple[int, int]]:
    """Rows of the pairs found in which each is the other's best one."""
    chosen = []
    for pair in found:
        effects = [each for each in found if each.cause == pair.cause]
        causes = [each for each in found if each.effect == pair.effect]
        if pair == min(effects, key=lambda each: place(asked, each, prefer, "effect")) and (
            pair == min(causes, key=lambda each: place(asked, each, prefer, "cause"))
        ):
            chosen.append((pair.cause, pair.effect))
    return chosen


def unambiguous_pairs(found: Sequence[Pair]) -> list[tuple[int, int]]:
    """Rows of the pairs found of which neither event is in another."""
    return [
        (one.cause, one.effect)
        for one in found
        if not any((each.cause == one.cause) != (each.effect == one.effect) for each in found)
    ]


def value(prefer: str, chosen: Sequence[Pair]) -> tuple[Any, ...]:
    """What an assignment is worth: the sum of probabilities, or how many pairs, then how near."""
    if prefer == "probability":
        return (sum(pair.probability for pair in chosen),)
    return (len(chosen), -sum(abs(pair.between) for pair in chosen))


def optimum(prefer: str, left_over: Sequence[Pair]) -> tuple[Any, ...]:
    """What no one-to-one assignment of these pairs exceeds, by trying all."""
    if not left_over:
        return value(prefer, ())
    first, *others = left_over
    free = [pair for pair in others if pair.cause != first.cause and pair.effect != first.effect]
    own, rest = value(prefer, (first,)), optimum(prefer, free)
    return max(optimum(prefer, others), tuple(a + b for a, b in zip(own, rest, strict=True)))
