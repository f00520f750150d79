"""The oracle of sequences and coincidences: all tuples, and volumes by counting equal simplices.

A time in [a, b] is a whole number of ticks plus a part of one. Whether lo <= T_j - T_i <= hi holds, with
whole bounds, depends on the whole numbers and on which part is the larger. So the cube of the parts falls
into n! simplices of equal volume, and each of them meets all windows or, but for its rim, none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

from cpu_fallback.reference.decision import qualifies

Row = Mapping[str, Any]
Bucket = tuple[int, int, float]
Windows = Mapping[tuple[int, int], tuple[int, int]]
"""Bounds on T_j - T_i by (i, j): `lo` and `hi`, whole ticks."""


def steps(windows: Sequence[tuple[int, int]], total: tuple[int, int] | None = None) -> Windows:
    """The windows of a sequence, from each event to the next, and from the first to the last."""
    found = {(i, i + 1): window for i, window in enumerate(windows)}
    if total is not None:
        last = len(windows)
        own = found.get((0, last), total)
        found[0, last] = max(own[0], total[0]), min(own[1], total[1])
    return found


def within(n: int, width: int) -> Windows:
    """The windows of a coincidence of n events, all within a width of each other."""
    return {(i, j): (-width, width) for i, j in combinations(range(n), 2)}


def probability(laws: Sequence[Sequence[Bucket]], windows: Windows) -> Fraction:
    """The probability that independent times meet all windows: each uniform in each of its buckets."""
    found = Fraction(0)
    for buckets in product(*laws):
        mass = Fraction(1)
        for (_, _, own), law in zip(buckets, laws, strict=True):
            mass *= Fraction(own) / sum(Fraction(each) for _, _, each in law)
        if mass:
            found += mass * _volume([(low, high) for low, high, _ in buckets], windows)
    return found


def _volume(ends: Sequence[tuple[int, int]], windows: Windows) -> Fraction:
    """The share of a box that meets all windows."""
    lasting = [i for i, (low, high) in enumerate(ends) if low < high]
    good = cells = 0
    for whole in product(*(range(low, max(high, low + 1)) for low, high in ends)):
        for order in permutations(lasting):
            # An exact time has no part; of the others one is larger than the next.
            parts = {i: order.index(i) + 1 if i in order else 0 for i in range(len(ends))}
            cells += 1
            good += all(
                _is_met(whole[j] - whole[i], parts[j] - parts[i], *window)
                for (i, j), window in windows.items()
            )
    return Fraction(good, cells)


def _is_met(wholes: int, parts: int, lo: int, hi: int) -> bool:
    """Whether a difference lies in a window, by that of whole numbers and the sign of that of parts."""
    return (lo, 0) <= (wholes, parts) <= (hi, 0)


def sequences(
    streams: Sequence[Sequence[Row]],
    windows: Windows,
    confidence: float,
    by: Sequence[str] = (),
    admits: Callable[..., bool] = lambda *rows: True,
) -> list[tuple[tuple[int, ...], Fraction]]:
    """Rows of all tuples whose probability of the whole reaches the confidence, and these.

    A row has ``law``, its buckets or None, and keys. Streams that are one object are one stream: no
    event is in a tuple twice.
    """
    found = []
    for numbers in product(*(range(len(rows)) for rows in streams)):
        rows = [stream[i] for stream, i in zip(streams, numbers, strict=True)]
        if any(row["law"] is None or any(row[key] is None for key in by) for row in rows):
            continue
        if any(row[key] != rows[0][key] for row in rows for key in by):
            continue
        if _has_one_twice(streams, numbers) or not admits(*rows):
            continue
        chance = probability([row["law"] for row in rows], windows)
        if qualifies(chance, confidence):
            found.append((numbers, chance))
    return found


def _has_one_twice(streams: Sequence[Any], numbers: Sequence[int]) -> bool:
    return any(
        streams[i] is streams[j] and numbers[i] == numbers[j]
        for i, j in combinations(range(len(streams)), 2)
    )


def coincidences(
    streams: Sequence[Sequence[Row]],
    windows: Windows,
    confidence: float,
    at_least: int,
    by: Sequence[str] = (),
    admits: Callable[..., bool] = lambda *rows: True,
) -> list[tuple[tuple[int | None, ...], Fraction]]:
    """Sets of events of `at_least` streams or more that no larger set holds, and their probabilities.

    A set has a row number of each stream, None of one that has no event in it. `admits` gets the row of
    each stream, None of such a one: what it does not admit is no set, so that parts of it may be sets.
    """
    sets: dict[tuple[int | None, ...], Fraction] = {}
    for members in _members(len(streams), at_least):
        some = [streams[k] for k in members]
        own = {
            (i, j): windows[members[i], members[j]] for i, j in combinations(range(len(some)), 2)
        }
        for numbers, chance in sequences(some, own, confidence, by):
            row: list[int | None] = [None] * len(streams)
            for k, number in zip(members, numbers, strict=True):
                row[k] = number
            events = [None if n is None else streams[k][n] for k, n in enumerate(row)]
            if admits(*events):
                sets[tuple(row)] = chance
    return [
        (own, chance)
        for own, chance in sets.items()
        if not any(_is_part(own, other) for other in sets)
    ]


def _members(n: int, at_least: int) -> Iterator[tuple[int, ...]]:
    for size in range(at_least, n + 1):
        yield from combinations(range(n), size)


def _is_part(own: Sequence[int | None], other: Sequence[int | None]) -> bool:
    """Whether another set holds all events of this one, and more."""
    return own != other and all(a is None or a == b for a, b in zip(own, other, strict=True))
