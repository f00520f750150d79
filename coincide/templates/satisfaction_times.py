"""What is known of a timing condition on templates: integers, by pair of templates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class SatisfactionTimes:
    """Which s = max_right - max_left qualify, by pair of templates.

    Parameters
    ----------
    first, last : int64 arrays, shape (left templates, right templates)
        The least and the largest that does, ticks; (1, 0) where none does.
    gap_starts : int64 array, shape (pairs + 1,), or (0,) if there is no gap
        Where the gaps of each pair begin; pairs row by row.
    gap_first, gap_last : int64 arrays, shape (gaps,)
        What between `first` and `last` does not qualify.
    """

    first: np.ndarray
    last: np.ndarray
    gap_starts: np.ndarray
    gap_first: np.ndarray
    gap_last: np.ndarray

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in vars(self).values())

    def ranges(self, left: int, right: int) -> list[tuple[int, int]]:
        """The ranges of a pair of templates, ascending, both ends inclusive."""
        first, last = int(self.first[left, right]), int(self.last[left, right])
        if first > last:
            return []
        gaps = slice(0)
        if self.gap_starts.size:
            pair = left * self.first.shape[1] + right
            gaps = slice(int(self.gap_starts[pair]), int(self.gap_starts[pair + 1]))
        ends = [first]
        for low, high in zip(
            self.gap_first[gaps].tolist(), self.gap_last[gaps].tolist(), strict=True
        ):
            ends += [low - 1, high + 1]
        ends.append(last)
        return list(zip(ends[::2], ends[1::2], strict=True))
