"""Classes of one side's events: ranges of their shapes, which share a band with each class of the other.

The shape of an interval is its length (`coincide.length_classes` cuts those); templates are numbered so
that near ones are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.compiled import compiled
from coincide.errors import ConditionError
from coincide.sides import SIDES

MOST_CLASSES = 1024
"""Of a side. A join's tables grow with their square, a base event's work with their number."""

_FEW = 16


@dataclass(frozen=True, eq=False)
class ShapeClasses:
    """Disjoint ranges of shapes, ascending, one per class.

    Parameters
    ----------
    lowest, highest : int64 arrays, shape (K,)
        Least and largest shape that occurs in each class: of lengths, the class's rho and pi, ticks.
    share : float64 array, shape (K,)
        Fraction of the events in each class.
    """

    lowest: np.ndarray
    highest: np.ndarray
    share: np.ndarray

    @classmethod
    def one(cls, lowest: int, highest: int) -> ShapeClasses:
        """A single class; of lengths, from rho to pi: the papers' lazy algorithm."""
        return cls(np.array([lowest], np.int64), np.array([highest], np.int64), np.ones(1))

    @classmethod
    def even(cls, lowest: int, highest: int, most: int) -> ShapeClasses:
        """So many equal ranges of shapes at most, which hold all from the lowest to the highest."""
        width = -(-(highest - lowest + 1) // most)
        lows = range(lowest, highest + 1, width)
        highs = [min(low + width - 1, highest) for low in lows]
        count = len(highs)
        return cls(np.array(lows, np.int64), np.array(highs, np.int64), np.full(count, 1 / count))

    @classmethod
    def between(cls, shapes: np.ndarray, highest: np.ndarray) -> ShapeClasses:
        """Classes with these ends, as narrow as the shapes allow; none without events.

        Parameters
        ----------
        shapes : int64 array, shape (n,), n > 0
        highest : int64 array, shape (K,)
            Ascending ends, the last at least the largest shape.
        """
        return cls.of_extents(*_extents(shapes, highest))

    @classmethod
    def of_extents(cls, low: np.ndarray, high: np.ndarray, counts: np.ndarray) -> ShapeClasses:
        """Classes of which the least and largest shape and the number of events are known.

        Parameters
        ----------
        low, high, counts : int64 arrays, shape (K,)
            Ascending. Classes of no events are left out.
        """
        used = counts > 0
        return cls(low[used], high[used], counts[used] / counts.sum())

    @property
    def count(self) -> int:
        """K."""
        return self.lowest.size

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of the values of the templates in each class: array, shape (K,).

        Parameters
        ----------
        values : array, shape (templates,)
            By template; its number is its shape.
        """
        ends = zip(self.lowest.tolist(), self.highest.tolist(), strict=True)
        return np.array([values[low : high + 1].max() for low, high in ends], values.dtype)

    def assign(self, shapes: np.ndarray) -> np.ndarray:
        """The class of each shape; every shape must lie in a class.

        Parameters
        ----------
        shapes : int64 array, shape (n,)

        Returns
        -------
        uint16 array, shape (n,)
        """
        return _assign(shapes, self.highest)


def checked(chosen: tuple[ShapeClasses, ShapeClasses]) -> tuple[ShapeClasses, ShapeClasses]:
    """The classes of both sides of a join, unless they are more than it takes.

    Raises
    ------
    ConditionError
        If a side has more than `MOST_CLASSES`.
    """
    for side, classes in zip(SIDES, chosen, strict=True):
        if classes.count > MOST_CLASSES:
            raise ConditionError(
                f"{side}: the timestamp model cuts its shapes into {classes.count:,} classes, and a join"
                f" takes {MOST_CLASSES:,}; put near shapes into one class"
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
