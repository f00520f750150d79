"""The pairs of the best one-to-one assignment."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from coincide.errors import DataError
from coincide.sides import LEFT, RIGHT
from cpu_fallback.join.assigning import Groups, best_assignment, connected_groups
from spark_plugin.worker.emission.emission import Rows
from spark_plugin.worker.emission.matched import Matched, joined, taken
from spark_plugin.worker.in_order import in_order

_EXACT = float(1 << 53)
"""Floats hold all whole numbers up to here."""
_CURE = (
    "narrow the window, raise the confidence, join by more keys, raise largest_group, or use"
    " matching='mutual'"
)
_STEPS = float(1 << 40)
"""Probabilities are added in whole 2**-40, which floats add exactly."""


class Optimal(Matched):
    """One pair an event, with the greatest sum of probabilities, or the least of distances."""

    @cached_property
    def _found(self) -> Rows:
        self._check_partners()
        runs = self.join.chunks(self._batch_pairs)
        parts = in_order(lambda run: [self._pairs_of(*run)], runs, self._spec.threads)
        rows = joined(list(parts))
        # By their ranks, so that events meet in the same order whatever task they are in.
        groups = connected_groups(*(self._order.ranks(side)[rows[side]] for side in (LEFT, RIGHT)))
        self._check_sizes(groups, rows)
        return taken(rows, best_assignment(groups, self._gains(groups, rows)))

    def _gains(self, groups: Groups, rows: Rows) -> np.ndarray:
        if self._spec.partners.prefer == "probability":
            steps: np.ndarray = np.floor(self._probabilities(*rows) * _STEPS + 0.5)
            return np.maximum(steps, 1.0)
        # One pair more gains more than all the distances of a group.
        apart = self._order.preferred(rows)[groups.order].astype(np.float64)
        widest = np.maximum.reduceat(apart, groups.offsets[:-1]) if apart.size else apart
        enough = (widest + 1.0) * groups.sizes.min(axis=1)
        if (enough * groups.sizes.min(axis=1)).max(initial=0.0) > _EXACT:
            raise DataError(
                "matching='optimal' cannot add so many distances, so large, exactly: count times in a"
                " coarser tick, narrow the window, join by more keys, or use matching='mutual'"
            )
        gains = np.empty(apart.size)
        gains[groups.order] = np.repeat(enough, np.diff(groups.offsets)) + 1.0 - apart
        return gains

    def _check_partners(self) -> None:
        """Refuse, before any pair is made, an event whose partners alone are too many.

        Raises
        ------
        DataError
        """
        counts, most = self.join.counts, self._spec.partners.largest_group
        if counts.max(initial=0) < most:
            return
        row = self.join.left_order[int(counts.argmax())]
        raise DataError(
            f"matching='optimal' found a left event, at tick {self._left.max_time[row]}, of"
            f" {counts.max():,} partners, more than largest_group={most:,} has room for: {_CURE}"
        )

    def _check_sizes(self, groups: Groups, rows: Rows) -> None:
        """Refuse groups that would take too long, or too much memory.

        Raises
        ------
        DataError
        """
        most, sizes = self._spec.partners.largest_group, groups.sizes.sum(axis=1)
        if sizes.max(initial=0) <= most:
            return
        largest = int(sizes.argmax())
        pairs = groups.order[groups.offsets[largest] : groups.offsets[largest + 1]]
        own = np.unique(rows[LEFT][pairs])
        left = self._left
        raise DataError(
            f"matching='optimal' found {sizes[largest]:,} events that hang together by their pairs"
            f" ({own.size:,} left ones, at ticks {left.min_time[own].min()} to"
            f" {left.max_time[own].max()}), more than largest_group={most:,}: {_CURE}"
        )
