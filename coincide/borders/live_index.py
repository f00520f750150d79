"""An index to which queries are added, and from which they are removed, between batches."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from coincide.borders.index import BorderIndex, Removal

_FEWEST_TO_MERGE = 4096
_SHARE_TO_MERGE = 16
"""A level is merged into the one before it once it is a sixteenth of it: of a million queries there are
three at most, and an added query is moved a few times."""


class LiveIndex:
    """A large index, and after it ever smaller ones of what was added since.

    All are searched. What is added is merged into the smallest one, and now and then a level into the one
    before it, in linear time.

    Parameters
    ----------
    dimensions : int

    Attributes
    ----------
    levels : list of BorderIndex
        The indexes to search, the large one first.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.levels = [_nothing(dimensions)]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(level.nbytes for level in self.levels)

    def levels_with(self, added: BorderIndex) -> list[BorderIndex]:
        """The levels to have, once queries are added whose numbers are above all before them."""
        if not len(added):
            return self.levels
        # An empty level gives its place up: to merge with it would be to build all arrays once more.
        levels = [*(self.levels if len(self.levels[-1]) else self.levels[:-1]), added]
        while len(levels) > 1 and _is_merged(len(levels[-2]), len(levels[-1])):
            levels[-2:] = [levels[-2].merged(levels[-1])]
        return levels

    def live_ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Numbers, lower and upper borders and closed ends of all live queries."""
        rows = [np.flatnonzero(level.is_live) for level in self.levels]
        levels = list(zip(self.levels, rows, strict=True))
        ranges = [level.ranges_of(own) for level, own in levels]
        return (
            np.concatenate([level.numbers[own] for level, own in levels]),
            np.concatenate([lower for lower, _ in ranges]),
            np.concatenate([upper for _, upper in ranges]),
            np.concatenate([level.closed[own] for level, own in levels]),
        )

    def removals(self, numbers: np.ndarray) -> list[Removal]:
        """What `remove` needs, level by level; numbers that are not here are passed over."""
        return [level.removal(numbers) for level in self.levels]

    def remove(self, removals: list[Removal]) -> int:
        """Remove queries, and say how many. It takes no memory, but to tidy up."""
        for level, removal in zip(self.levels, removals, strict=True):
            level.remove(removal)
        # They are removed by now: where memory lacks, the next removal tidies up.
        with suppress(MemoryError):
            self._tidy()
        return sum(removal.rows.size for removal in removals)

    def _tidy(self) -> None:
        # From the last one on: what is merged into a level does not move those before it.
        for k in reversed(range(len(self.levels))):
            if self.levels[k].live < len(self.levels[k]) // 2:
                self._merge_into(k)

    def _merge_into(self, k: int) -> None:
        """Merge the level behind one into it, if there is any, and take out what was removed."""
        pair = [*self.levels[k : k + 2], _nothing(self.dimensions)]
        merged = pair[0].merged(pair[1])
        self.levels[k : k + 2] = [merged] if len(merged) or k == 0 else []


def _nothing(dimensions: int) -> BorderIndex:
    none = np.zeros((0, dimensions))
    return BorderIndex.of(none, none, np.zeros(0, np.int64))


def _is_merged(size: int, later: int) -> bool:
    return size <= _FEWEST_TO_MERGE or later * _SHARE_TO_MERGE > size
