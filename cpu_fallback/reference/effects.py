"""The oracle of which effects of a cause are handed out: every pair tried, every choice made by sorting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cpu_fallback.reference.causality import (
    Place,
    Predicate,
    plane_distance2,
    uncertain_causality,
)
from cpu_fallback.reference.decision import satisfaction_probability

PREFERENCES = ("probability", "nearest", "first", "last", "distance")
Timed = tuple[int, int, Place]
"""min_time, max_time and place."""


class Asked(NamedTuple):
    """Both sides, in a plane, and what is asked of their pairs.

    `predicates`, `confidence` and `deltas` are as of `uncertain_causality`; a window that holds the first
    or the last of the deltas is open there. Of one stream `effects` are the causes. `admits` is a condition
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
    """All pairs.

    A window that is open at one end has no middle: nearest to the other end counts; in one that is open at
    both all deltas are alike. Of one stream every event is a cause, and every other one may be its effect.
    """
    found = []
    for i, j in uncertain_causality(*asked[:5]):
        (low, high, place), (first, last, where) = asked.causes[i], asked.effects[j]
        if asked.is_one_stream and i == j:
            continue
        squared = plane_distance2(place, where)
        if not asked.admits(i, j, last - high, squared):
            continue
        window = [d for d in asked.deltas if all(each(d, squared) for each in asked.predicates)]
        p = satisfaction_probability(low, high, first, last, window[0], window[-1])
        lo = None if window[0] == asked.deltas[0] else window[0]
        hi = None if window[-1] == asked.deltas[-1] else window[-1]
        ends = [end for end in (lo, hi) if end is not None]
        between = Fraction(first + last - low - high, 2)
        apart = abs(between - Fraction(sum(ends), len(ends))) if ends else Fraction(0)
        found.append(Pair(i, j, p, between, apart, squared))
    return found


def place(asked: Asked, pair: Pair, prefer: str, partner: str) -> tuple[Any, ...]:
    """Where a pair stands among those of its event; `partner` says what the other one is."""
    least = {
        "probability": -pair.probability, "nearest": abs(pair.between), "first": pair.between,
        "last": -pair.between, "distance": pair.distance2,
    }[prefer]  # fmt: skip
    row = pair.effect if partner == "effect" else pair.cause
    side = asked.effects if partner == "effect" else asked.causes
    earliest, latest, _ = side[row]
    return (least, -pair.probability, pair.from_middle, pair.distance2, latest, earliest, row)


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
