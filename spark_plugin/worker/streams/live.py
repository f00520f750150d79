"""The events of a side that are kept for partners to come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spark_plugin.worker.arrow.sides import Side, concatenated
from spark_plugin.worker.streams.marks import are_marked

_LEAST_DEAD = 256
"""Fewer are not worth a copy."""
_MOST_DEAD = 4
"""Dead ones are let go of where they are more than one in so many."""
_RATIO = 8
"""A part that is no more than so many times larger than the next one takes it in."""
_MUCH = 4
"""So many times more events than look for partners among them are looked through by keys first."""


@dataclass(frozen=True, eq=False)
class Part:
    """Events of a side, with the marks of their keys.

    Parameters
    ----------
    side : Side
        Of events that can match, ``matchable`` is None. Ranks are in order of arrival.
    marks : uint16 array, shape (n,)
    """

    side: Side
    marks: np.ndarray

    def __len__(self) -> int:
        return len(self.side)

    def where(self, mask: np.ndarray) -> Part:
        """Those in a mask; the same if all are."""
        return self if mask.all() else self.rows(np.flatnonzero(mask))

    def rows(self, index: np.ndarray) -> Part:
        """Some of them, in memory of their own."""
        return Part(self.side.rows(index), self.marks[index])

    @property
    def nbytes(self) -> int:
        """Bytes of the events with their columns."""
        side = self.side
        columns = sum(each.nbytes for each in (*side.keys, *side.payload, *side.tested))
        assert side.ranks is not None
        arrays = side.max_time, side.shapes, side.ranks, self.marks
        return int(columns + sum(each.nbytes for each in arrays))


def joined(parts: Sequence[Part]) -> Part:
    """The events of parts of one side, of which there is at least one."""
    some = [part for part in parts if len(part)] or [parts[0]]
    if len(some) == 1:
        return some[0]
    side = concatenated([part.side for part in some])
    return Part(side, np.concatenate([part.marks for part in some]))


@dataclass(frozen=True, eq=False)
class Live:
    """Events in parts, each much larger than the next: so an event is seldom copied, and parts are few.

    Parameters
    ----------
    none : Part
        Without events.
    parts : tuple of Part
    """

    none: Part
    parts: tuple[Part, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """Bytes of the events with their columns."""
        return sum(part.nbytes for part in self.parts)

    def with_more(self, part: Part) -> Live:
        """These and more."""
        if not len(part):
            return self
        parts = [*self.parts, part]
        while len(parts) > 1 and len(parts[-2]) <= _RATIO * len(parts[-1]):
            parts[-2:] = [joined(parts[-2:])]
        if parts[-1] is part:
            # A copy: what was pushed may be a slice of much more.
            parts[-1] = part.rows(np.arange(len(part)))
        return Live(self.none, tuple(parts))

    def since(self, bound: int) -> Live:
        """Those from a max_time on, and some of the others where these are few."""
        kept = (_since(part, bound) for part in self.parts)
        return Live(self.none, tuple(part for part in kept if len(part)))

    def between(self, first: int, stop: int) -> Part:
        """Those whose max_time is at least `first` and below `stop`."""
        return self.where(lambda part: (part.side.max_time >= first) & (part.side.max_time < stop))

    def where(self, mask: Callable[[Part], np.ndarray]) -> Part:
        """Those in a mask, which is made of each part."""
        return joined([*(part.where(mask(part)) for part in self.parts), self.none])

    def within(self, span: tuple[int, int], marks: np.ndarray) -> Part:
        """Those whose max_time is in a span, ends included, and whose mark is among these."""
        first, last = span
        return self.where(
            lambda part: (
                (part.side.max_time >= first)
                & (part.side.max_time <= last)
                & are_marked(part.marks, marks)
            )
        )

    def near(self, others: Part, reach: tuple[int, int]) -> Part:
        """Those that may have a partner among others of the other side: the rest need not be sorted.

        Parameters
        ----------
        others : Part
        reach : (int, int)
            Least and largest difference between a max_time of these and one of the others, ticks.
        """
        mask = others.side.matchable
        times = others.side.max_time if mask is None else others.side.max_time[mask]
        if not times.size:
            return self.none
        first, last = int(times.min()) + reach[0], int(times.max()) + reach[1]
        found, by_keys = [self.none], _MUCH * len(others) < len(self)
        for part in self.parts:
            is_near = (part.side.max_time >= first) & (part.side.max_time <= last)
            if by_keys:
                is_near &= are_marked(part.marks, others.marks)
            found.append(part.where(is_near))
        return joined(found)


def _since(part: Part, bound: int) -> Part:
    keep = part.side.max_time >= bound
    dead = len(part) - int(keep.sum())
    if dead == len(part) or (dead >= _LEAST_DEAD and dead * _MOST_DEAD >= len(part)):
        return part.where(keep)
    return part
