"""Classes of events by the shape of their timestamps, which share a band with each class they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.errors import ConditionError
from coincide.model.options import MAX_CLASSES
from coincide.model.sides import SIDES

_SAMPLE = 4096
_CANDIDATES = 48


def length_classes(lengths: np.ndarray, most: int) -> ShapeClasses:
    """At most `most` classes of lengths, narrow where events are many."""
    # The cuts minimise the sum over classes of share times width, to which the number of pairs to
    # probe is nearly proportional. Lengths of few distinct values give classes of one value each.
    if lengths.size == 0:
        return ShapeClasses.one(0, 0)
    return ShapeClasses.between(lengths, class_ends(length_sample(lengths), [most])[0])


def class_ends(sample: np.ndarray, mosts: Sequence[int]) -> list[np.ndarray]:
    """The ends of the best classes for each of several limits on their number, shared work done once."""
    candidates, weights = _candidates(sample)
    return _best_cuts(candidates, weights, [min(most, MAX_CLASSES) for most in mosts])


def length_sample(lengths: Any, xp: Any = np) -> Any:
    """Some thousand of the lengths, the shortest and the longest among them; not for none."""
    stride = max(1, lengths.size // _SAMPLE)
    return xp.append(lengths[::stride], xp.stack([lengths.min(), lengths.max()]))


def _candidates(sample: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending possible class ends, the longest length last, and the events up to each."""
    values, counts = np.unique(sample, return_counts=True)
    if values.size > _CANDIDATES:
        ranks = np.cumsum(counts)
        even = np.searchsorted(ranks, np.linspace(0, ranks[-1], _CANDIDATES - 8)[1:])
        # The tails are where one outlier would widen a whole class.
        tails = np.array([0, 1, 3, 7, values.size - 8, values.size - 4, values.size - 2])
        chosen = np.unique(
            np.concatenate([even, tails, [values.size - 1]]).clip(0, values.size - 1)
        )
        values, counts = values[chosen], np.diff(ranks[chosen], prepend=0)
    return values, counts.astype(np.float64)


def _best_cuts(values: np.ndarray, weights: np.ndarray, mosts: Sequence[int]) -> list[np.ndarray]:
    """Ends of the classes that minimise sum(weight * width): dynamic programming over candidates."""
    n = values.size
    below = np.concatenate([[0.0], np.cumsum(weights)])
    spread = values.astype(np.float64)
    # cost[i, j]: one class of candidates i ... j.
    cost = (below[None, 1:] - below[:-1, None]) * (spread[None, :] - spread[:, None])
    cost[np.tril_indices(n, -1)] = np.inf
    best = cost[0].copy()
    origins: list[np.ndarray] = []
    for _ in range(min(n, max(mosts)) - 1):
        extended = best[:-1, None] + cost[1:, :]
        origin = np.argmin(extended, axis=0)
        candidate = extended[origin, np.arange(n)]
        better = candidate < best
        origins.append(np.where(better, origin, -1))
        best = np.where(better, candidate, best)
    # As many classes as values: each is its own, also where rounded costs see no gain.
    return [
        values if n <= most else values[_walk_back(origins[: most - 1], n - 1)] for most in mosts
    ]


def _walk_back(origins: list[np.ndarray], last: int) -> np.ndarray:
    ends = [last]
    for origin in reversed(origins):
        if origin[ends[-1]] >= 0:
            ends.append(int(origin[ends[-1]]))
    return np.array(ends[::-1])


MOST_CLASSES = 1024
"""Most classes of a side. A join's tables grow with their square, a base event's work with their number."""

_FEW = 16


@dataclass(frozen=True, eq=False)
class ShapeClasses:
    """Disjoint ranges of shapes, ascending, one per class."""

    lowest: np.ndarray  # int64, shape (K,)
    highest: np.ndarray  # int64, shape (K,)
    share: np.ndarray  # float64, shape (K,): fraction of the events in each class

    @classmethod
    def one(cls, lowest: int, highest: int) -> ShapeClasses:
        """A single class; of lengths, from rho to pi: the papers' lazy algorithm."""
        return cls(np.array([lowest], np.int64), np.array([highest], np.int64), np.ones(1))

    @classmethod
    def even(cls, lowest: int, highest: int, most: int) -> ShapeClasses:
        """At most this many equal ranges of shapes, which hold all from the lowest to the highest."""
        width = -(-(highest - lowest + 1) // most)
        lows = range(lowest, highest + 1, width)
        highs = [min(low + width - 1, highest) for low in lows]
        count = len(highs)
        return cls(np.array(lows, np.int64), np.array(highs, np.int64), np.full(count, 1 / count))

    @classmethod
    def between(cls, shapes: np.ndarray, highest: np.ndarray) -> ShapeClasses:
        """Classes with these ends, as narrow as the shapes allow; none without events."""
        return cls.of_extents(*_extents(shapes, highest))

    @classmethod
    def of_extents(cls, low: np.ndarray, high: np.ndarray, counts: np.ndarray) -> ShapeClasses:
        """Classes of which the least and largest shape and the number of events are known."""
        used = counts > 0
        return cls(low[used], high[used], counts[used] / counts.sum())

    @property
    def count(self) -> int:
        """K."""
        return self.lowest.size

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of the values of the templates in each class: array, shape (K,)."""
        ends = zip(self.lowest.tolist(), self.highest.tolist(), strict=True)
        return np.array([values[low : high + 1].max() for low, high in ends], values.dtype)

    def assign(self, shapes: np.ndarray) -> np.ndarray:
        """The class of each shape; every shape must lie in a class."""
        return _assign(shapes, self.highest)


def checked(chosen: tuple[ShapeClasses, ShapeClasses]) -> tuple[ShapeClasses, ShapeClasses]:
    """The classes of both sides of a join, unless they are more than it takes."""
    for side, classes in zip(SIDES, chosen, strict=True):
        if classes.count > MOST_CLASSES:
            raise ConditionError(
                f"{side}: the timestamp model makes {classes.count:,} classes of its shapes, and"
                f" a join takes at most {MOST_CLASSES:,}. Put similar shapes into one class."
            )
    return chosen


@compiled(forceinline=True)
def class_of(shape, highest):
    """The class of a shape: the first whose largest shape is not below it, or the last."""
    start, size = 0, highest.size
    while size > 1:
        half = size >> 1
        start += half * (highest[start + half - 1] < shape)
        size -= half
    return start


@compiled(forceinline=True)
def _found(shape, highest):
    """As `class_of`. Few classes are passed sooner one by one."""
    if highest.size > _FEW:
        return class_of(shape, highest)
    k = 0
    while shape > highest[k]:
        k += 1
    return k


@compiled(allocates=True)
def _assign(shapes, highest):
    classes = np.empty(shapes.size, np.uint16)
    for i in range(shapes.size):
        classes[i] = _found(shapes[i], highest)
    return classes


@compiled(allocates=True)
def _extents(shapes, highest):
    low = np.full(highest.size, np.iinfo(np.int64).max, np.int64)
    high = np.full(highest.size, -1, np.int64)
    counts = np.zeros(highest.size, np.int64)
    for shape in shapes:
        k = _found(shape, highest)
        low[k] = min(low[k], shape)
        high[k] = max(high[k], shape)
        counts[k] += 1
    return low, high, counts
