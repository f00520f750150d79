"""Template histograms of a side: drawing them, what they say of an event, probabilities of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa

from bench.hunt.chance import Chance
from cpu_fallback.reference.join import histogram_probability

Shape = tuple[tuple[int, int, float], ...]
"""Buckets (low, high, mass) relative to the end of the last one, ticks."""

_EDGE_LIMIT = 2**60 - 1
_TEXTS = ("a", "b", "c c", "é", "A", "x-1")
_NUMBERS = (0, 7, -1, 2**40, 3, 4)
_MASSES: tuple[tuple[float, ...], ...] = (
    (1.0,), (0.5, 0.5), (0.1, 0.3, 0.6), (0.25, 0.75), (0.2, 0.0, 0.8), (0.0, 1.0, 0.0),
    (0.4, 0.0, 0.1, 0.5), (0.333333333, 0.333333333, 0.333333334), (0.7, 0.1, 0.1, 0.1),
)  # fmt: skip


@dataclass(frozen=True)
class Templates:
    """The templates of one side."""

    # Ids, all texts or all integers; edges in ticks; masses.
    given: tuple[tuple[Any, tuple[int, ...], tuple[float, ...]], ...]
    delays: bool  # whether edges are delays of detection

    @property
    def column(self) -> pa.DataType:
        """The type of the column that names templates."""
        return pa.string() if isinstance(self.given[0][0], str) else pa.int64()

    @property
    def ids(self) -> list[Any]:
        """The ids of the templates."""
        return [name for name, _, _ in self.given]

    def shape(self, name: Any) -> tuple[int, Shape] | None:
        """What a template adds to the time at which an event is seen, and its buckets; None: unknown."""
        found = [(edges, masses) for known, edges, masses in self.given if known == name]
        if not found:
            return None
        edges, masses = found[0]
        if self.delays:
            edges, masses = tuple(-edge for edge in edges[::-1]), masses[::-1]
        end = edges[-1]
        buckets = zip(edges, edges[1:], masses, strict=False)
        shape = tuple((low - end, high - end, mass) for low, high, mass in buckets)
        return end if self.delays else 0, shape


def draw_templates(chance: Chance, step: int | None) -> Templates:
    """A few templates; without a step of any length."""
    ids = chance.shuffled(chance.choice((_TEXTS, _NUMBERS)))[: chance.choice((1, 2, 2, 3, 5))]
    gridded = chance.happens(60)
    given = []
    for name in ids:
        masses = chance.choice(_MASSES)
        if chance.happens(30):
            weights = [chance.integer(0, 9) for _ in masses]
            weights[0] += not any(weights)
            masses = tuple(weight / sum(weights) for weight in weights)
        given.append((name, _edges(chance, step, len(masses) + 1, gridded), masses))
    return Templates(tuple(given), chance.happens(50))


def _edges(chance: Chance, step: int | None, count: int, gridded: bool) -> tuple[int, ...]:
    """Not falling; equal ones make buckets of length 0."""
    if step is None:
        limit = 2 ** chance.integer(1, 60) - 1
        drawn = [chance.integer(-limit, limit) for _ in range(count)]
    elif gridded:
        drawn = [chance.integer(-2, 6) * step for _ in range(count)]
    else:
        drawn = [chance.integer(-2 * step, 6 * step) for _ in range(count)]
    return tuple(sorted(max(-_EDGE_LIMIT, min(_EDGE_LIMIT, edge)) for edge in drawn))


@lru_cache(maxsize=1 << 15)
def shape_probability(left: Shape, right: Shape, s: int, lo: int, hi: int) -> Fraction:
    """The probability of a pair of which the right one ends by s later: by the reference."""
    moved = [(low + s, high + s, mass) for low, high, mass in right]
    return histogram_probability(left, moved, lo, hi)
