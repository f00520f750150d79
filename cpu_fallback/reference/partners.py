"""The oracle of which partners are handed out: every pair tried, every choice made by sorting.

Rows are those of `cpu_fallback.reference.join`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cpu_fallback.reference.decision import qualifies, satisfaction_probability
from cpu_fallback.reference.join import Row

PREFERENCES = ("probability", "nearest", "first", "last")


class Pair(NamedTuple):
    """A pair that qualifies: its rows by number, and its probability."""

    left: int
    right: int
    probability: Fraction


def _always(left: Row, right: Row) -> bool:
    return True


class Asked(NamedTuple):
    """Both sides, the window on T_right - T_left in ticks, the confidence, keys, and which pairs may be."""

    left: Sequence[Row]
    right: Sequence[Row]
    lo: int
    hi: int
    confidence: float
    by: Sequence[str] = ()
    admits: Callable[[Row, Row], bool] = _always


def pairs(asked: Asked) -> list[Pair]:
    """All pairs that qualify."""
    found = []
    for i, one in enumerate(asked.left):
        for j, other in enumerate(asked.right):
            times = [row[name] for row in (one, other) for name in ("min_time", "max_time")]
            keys = [(one[name], other[name]) for name in asked.by]
            if None in times or any(a is None or a != b for a, b in keys):
                continue
            if not asked.admits(one, other):
                continue
            p = satisfaction_probability(times[0], times[1], times[2], times[3], asked.lo, asked.hi)
            if qualifies(p, asked.confidence):
                found.append(Pair(i, j, p))
    return found


def place(asked: Asked, pair: Pair, prefer: str, partner: str) -> tuple[Any, ...]:
    """Where a pair stands among those of its event; `partner` is the side of the other one."""
    left, right = asked.left[pair.left], asked.right[pair.right]
    number, other = (pair.right, right) if partner == "right" else (pair.left, left)
    middle = Fraction(right["min_time"] + right["max_time"], 2) - Fraction(
        left["min_time"] + left["max_time"], 2
    )
    words = {"probability": 0, "nearest": abs(middle), "first": middle, "last": -middle}
    first = words[prefer] if prefer in PREFERENCES else by_column(right, prefer)
    from_middle = abs(middle - Fraction(asked.lo + asked.hi, 2))
    times = other["max_time"], other["min_time"]
    return (first, -pair.probability, from_middle, *times, other["id"], number)


def by_column(right: Row, prefer: str) -> tuple[int, Any]:
    """Where a right event stands by a column of its own: values, then NaN, then null."""
    value = right[prefer.lstrip("+-")]
    if value is None:
        return 2, 0
    if value != value:
        return 1, 0
    return 0, -value if prefer.startswith("-") else value


def best_partners(asked: Asked, prefer: str, k: int) -> list[tuple[int, int, int]]:
    """Left row, right row and rank of the k best partners of each left event."""
    found, chosen = pairs(asked), []
    for i in range(len(asked.left)):
        own = [pair for pair in found if pair.left == i]
        own.sort(key=lambda pair: place(asked, pair, prefer, "right"))
        chosen += [(i, pair.right, rank) for rank, pair in enumerate(own[:k], 1)]
    return chosen


def mutual_pairs(asked: Asked, prefer: str) -> list[tuple[int, int]]:
    """Left and right rows of the pairs in which each is the other's best."""
    found, chosen = pairs(asked), []
    for pair in found:
        of_left = [each for each in found if each.left == pair.left]
        of_right = [each for each in found if each.right == pair.right]
        if pair == min(
            of_left, key=lambda each: place(asked, each, prefer, "right")
        ) and pair == min(of_right, key=lambda each: place(asked, each, prefer, "left")):
            chosen.append((pair.left, pair.right))
    return chosen


def unambiguous_pairs(asked: Asked) -> list[tuple[int, int]]:
    """Left and right rows of the pairs of which neither event is in another."""
    found = pairs(asked)
    return [
        (one.left, one.right)
        for one in found
        if not any((each.left == one.left) != (each.right == one.right) for each in found)
    ]


def optimum(asked: Asked, prefer: str) -> tuple[Any, ...]:
    """What no one-to-one assignment exceeds, by trying all.

    Returns
    -------
    tuple
        Of ``"probability"`` the sum of the probabilities; of ``"nearest"`` the number of pairs, then the
        sum of the distances of midpoints, negative.
    """
    return _optimum(asked, prefer, pairs(asked))


def value(asked: Asked, prefer: str, chosen: Sequence[Pair]) -> tuple[Any, ...]:
    """The same of one assignment."""
    if prefer == "probability":
        return (sum(pair.probability for pair in chosen),)
    apart = [place(asked, pair, "nearest", "right")[0] for pair in chosen]
    return (len(chosen), -sum(apart))


def _optimum(asked: Asked, prefer: str, left_over: Sequence[Pair]) -> tuple[Any, ...]:
    if not left_over:
        return value(asked, prefer, ())
    first, *others = left_over
    without = _optimum(asked, prefer, others)
    free = [pair for pair in others if pair.left != first.left and pair.right != first.right]
    own = value(asked, prefer, (first,))
    rest = _optimum(asked, prefer, free)
    return max(without, tuple(a + b for a, b in zip(own, rest, strict=True)))
