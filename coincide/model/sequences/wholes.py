"""What holds of all events together: a chain of windows, three windows of three events, or a gathering."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from coincide.model.sequences.chain import chain_probability
from coincide.model.sequences.gathering import gathering_probability
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.triangle import triangle_probability

CHAIN, TRIANGLE, GATHERING = range(3)
_ONE = Fraction(1)


@dataclass(frozen=True)
class Whole:
    """The windows between several events, ticks.

    Parameters
    ----------
    kind : int
        ``CHAIN``: from each event to the next. ``TRIANGLE``: those two of three events, and from the first
        to the last. ``GATHERING``: one width for all.
    lows, highs : int64 arrays
        The ends of the windows; of a gathering its width below 0 and above.
    """

    kind: int
    lows: np.ndarray
    highs: np.ndarray

    def exact(self, ends: list[int], laws: list[int], table: Laws) -> Fraction:
        """The probability of one set of events, whose last edges and laws these are."""
        buckets = table.exact(laws)
        numbers, given = np.arange(len(laws)).tolist(), np.array(ends, object)
        lows, highs = self.lows.tolist(), self.highs.tolist()
        found: Fraction
        if self.kind == TRIANGLE:
            found = triangle_probability(given, numbers, buckets, lows, highs, _ONE)
        elif self.kind == GATHERING:
            product = np.empty(len(ends) + 1, object)
            found = gathering_probability(given, numbers, buckets, highs[0], _ONE, product)
        else:
            work = chain_work(np.diff(buckets.starts), object)
            found = chain_probability(given, numbers, buckets, lows, highs, _ONE, work)
        return found


Half = tuple[np.ndarray, np.ndarray]


def chain_work(edges: np.ndarray, dtype: type) -> tuple[Half, Half, np.ndarray, np.ndarray]:
    """What `chain_probability` writes to, for events whose laws have at most `edges` edges."""
    n, room = len(edges), chain_room(edges)
    cuts: type = object if dtype is object else np.int64

    def half() -> Half:
        return np.empty(room, cuts), np.empty((room, n + 2), dtype)

    return half(), half(), np.empty(n + 2, dtype), np.empty(n + 2, dtype)


def chain_room(edges: np.ndarray) -> int:
    """How many pieces a density of a chain has at most, for events whose laws have at most these edges."""
    room = 0
    for count in edges.tolist():
        room = count + 2 * (room + 1)
    return room + 1


def doubt(kind: int, edges: np.ndarray) -> float:
    """A bound on the error of a probability in float64, for laws with at most `edges` edges.

    A polynomial of degree d between 0 and 1 has coefficients below 6 ** d, and each step adds some
    roundings of these. Sums over buckets add one each.
    """
    n = len(edges)
    of_steps = n * 6.0 ** (n - 1) if kind == CHAIN else 8.0 * n * n
    return float(2.0**-51 * (of_steps + edges.sum() * 2.0**n))
