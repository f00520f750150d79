"""An index to which queries are added, and from which they are removed, between batches."""

from __future__ import annotations

import numpy as np

from coincide.borders.index import BorderIndex

_FEWEST_TO_MERGE = 4096
_SHARE_TO_MERGE = 8
"""A delta is merged into the index once it is an eighth of it: added queries are moved a few times."""


class LiveIndex:
    """A large index, and a small one of what was added since.

    Both are searched, and now and then the small one is merged into the large one, in linear time.

    Parameters
    ----------
    dimensions : int
    """

    def __init__(self, dimensions: int) -> None:
        none = np.zeros((0, dimensions))
        self._nothing = BorderIndex.of(none, none, np.zeros(0, np.int64))
        self.base, self.recent = self._nothing, self._nothing

    @property
    def levels(self) -> list[BorderIndex]:
        """The indexes to search, the large one first."""
        return [self.base, self.recent] if len(self.recent) else [self.base]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(level.nbytes for level in self.levels)

    def add(self, lower: np.ndarray, upper: np.ndarray, numbers: np.ndarray) -> None:
        """Add queries, whose numbers are above all before them.

        Parameters
        ----------
        lower, upper : float64 arrays, shape (n, d)
        numbers : int64 array, shape (n,)
        """
        added = BorderIndex.of(lower, upper, numbers)
        if not len(self.base):
            self.base = added
            return
        self.recent = self.recent.merged(added)
        if len(self.recent) > max(_FEWEST_TO_MERGE, len(self.base) // _SHARE_TO_MERGE):
            self._merge()

    def remove(self, numbers: np.ndarray) -> None:
        """Remove queries; numbers that are not here are passed over."""
        for level in self.levels:
            rows = level.rows_of(numbers)
            level.remove(rows[rows >= 0])
        if self.base.live < len(self.base) // 2:
            self._merge()

    def _merge(self) -> None:
        self.base, self.recent = self.base.merged(self.recent), self._nothing
