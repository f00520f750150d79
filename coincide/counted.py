"""What every join that counts before it fills has in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from coincide.results import JoinCounters, offsets_of, runs_of_about


class CountedJoin:
    """A join whose matches are counted once, so that any run of base positions can be filled by itself."""

    @property
    @abstractmethod
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The matches of each base position, and the tally that `JoinCounters.of_tally` takes."""

    @property
    def counts(self) -> np.ndarray:
        """Matches of each base position: int64 array, shape (n_left,)."""
        return self._counted[0]

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at and found."""
        return JoinCounters.of_tally(*self._counted[1].tolist())

    @cached_property
    def offsets(self) -> np.ndarray:
        """Exclusive scan of the counts: int64 array, shape (n_left + 1,)."""
        return offsets_of(self.counts)

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        """Runs of base positions of about `batch_pairs` matches: `coincide.results.runs_of_about`."""
        return runs_of_about(self.offsets, batch_pairs)
