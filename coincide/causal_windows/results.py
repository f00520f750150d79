"""What became of the tuples that went through a window, and how many pairs it is likely to have missed."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class WindowCounts:
    """What became of tuples.

    Parameters
    ----------
    arrived, kept, evicted : int
        Tuples that came, that are in the window, and that had to go.
    followed : int
        Of the sample that is followed beyond eviction.
    matches, found : int
        Pairs of a tuple that is followed and one that arrived after it, and those of them that the window
        held together.
    matches2, matches_found, found2 : int
        Sums over the tuples that are followed, of matches², matches · found and found².
    cut : int
        Tuples that are followed no longer, since there were too many: what they match now nobody knows.
    """

    arrived: int = 0
    kept: int = 0
    evicted: int = 0
    followed: int = 0
    matches: int = 0
    found: int = 0
    matches2: int = 0
    matches_found: int = 0
    found2: int = 0
    cut: int = 0

    def then(self, later: WindowCounts) -> WindowCounts:
        """Counts of both, of a window that was emptied and of the next one."""
        sums = [getattr(self, f.name) + getattr(later, f.name) for f in fields(WindowCounts)]
        return replace(WindowCounts(*sums), kept=later.kept)

    @property
    def recall(self) -> float | None:
        """The estimated share of all pairs that were found; None while nothing is known."""
        return self.found / self.matches if self.matches else None

    @property
    def recall_error(self) -> float | None:
        """Standard error of `recall`: that of a ratio, its tuples taken to be independent."""
        recall = self.recall
        if recall is None:
            return None
        squares = self.found2 - 2 * recall * self.matches_found + recall * recall * self.matches2
        return math.sqrt(max(0.0, squares)) / self.matches
