"""In what order an event takes its partners: the preference, then all that `docs/meaning.md` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from coincide.probability import distances_from_middle
from coincide.sides import LEFT, RIGHT
from cpu_fallback.join.choosing import EARLIEST, LATEST, NEAREST, Keys, ordered_delays
from spark_plugin.worker.arrow.sides import Side, tie_ranks
from spark_plugin.worker.emission.emission import Rows
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.numbering import numbers_in_runs
from spark_plugin.worker.partial_results import sortable
from spark_plugin.worker.preferring import preference

_MERITS = float(1 << 40)
_DELAYS = {"nearest": NEAREST, "first": EARLIEST, "last": LATEST}


class PairOrder:
    """The order of partners, of either side.

    Parameters
    ----------
    left, right : Side
    spec : JoinSpec
    probabilities : callable
        From left and right rows to the probabilities of these pairs.
    """

    def __init__(
        self,
        left: Side,
        right: Side,
        spec: JoinSpec,
        probabilities: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        self._sides, self._spec, self._probabilities = (left, right), spec, probabilities
        self._midpoints = left.min_time + left.max_time, right.min_time + right.max_time

    def prepared(self, *sides: int) -> PairOrder:
        """Itself, the ties of partners of these sides decided, for threads that share it."""
        for side in sides:
            _ = self._left_ranks if side == LEFT else self._right_ranks
        return self

    def preferred(self, rows: Rows) -> np.ndarray:
        """By what pairs are ordered first, the least being best: int64 array, shape (pairs,).

        Of either event of a pair: the first partner of a left event is its earliest, that of a right event
        its latest, as both have the least delay.
        """
        prefer = self._spec.partners.prefer
        if self._spec.partners.preferred is not None:
            return self._of_column[rows[RIGHT]]
        if prefer == "probability":
            # Floats that are not negative are ordered as their bits are.
            return -self._merits(rows).view(np.int64)
        return ordered_delays(*self._midpoints, rows, _DELAYS[prefer])

    def leading(self, rows: Rows) -> Keys:
        """By what pairs are ordered first, and what parts most of those that are equal then."""
        first = self.preferred(rows)
        if self._spec.partners.prefer == "probability":
            return first, sortable(self.from_middle(rows))
        return first, np.zeros(first.size, np.int64)

    def after_preferred(self, rows: Rows) -> list[np.ndarray]:
        """By what pairs are ordered then, before the events themselves decide, the least being best."""
        return [-self._merits(rows), self.from_middle(rows)]

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of the window, half ticks: uint64 array, shape (pairs,)."""
        left, right = (own[each] for own, each in zip(self._midpoints, rows, strict=True))
        window = self._spec.window
        return distances_from_middle(left, right, window.lo, window.hi)

    def best(self, rows: Rows, of: int, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best partners of each event, of one side.

        Parameters
        ----------
        rows : (int64 array, int64 array)
            All pairs among which they can be, in any order.
        of : int
            The side of the partners.
        k : int

        Returns
        -------
        int64 array
            Numbers of pairs, by the row of the event, the best one first.
        int64 array
            The how-many-best of its event each is, from 1.
        """
        events = rows[LEFT if of == RIGHT else RIGHT]
        least_first = [self.preferred(rows), *self.after_preferred(rows), self.ranks(of)[rows[of]]]
        order = np.lexsort((*reversed(least_first), events))
        ranks = _places(events[order]) + 1
        kept = ranks <= k
        return order[kept], ranks[kept]

    def ranks(self, side: int) -> np.ndarray:
        """Order of the events of a side among partners equal in all else: int64 array, by row."""
        return self._left_ranks if side == LEFT else self._right_ranks

    @cached_property
    def _left_ranks(self) -> np.ndarray:
        return tie_ranks(self._sides[LEFT])

    @cached_property
    def _right_ranks(self) -> np.ndarray:
        return tie_ranks(self._sides[RIGHT])

    @cached_property
    def _of_column(self) -> np.ndarray:
        """Of right rows: the preferred column, which comes after those of a condition on pairs."""
        preferred = self._spec.partners.preferred
        assert preferred is not None
        return preference(self._sides[RIGHT].tested[-1], preferred)

    def _merits(self, rows: Rows) -> np.ndarray:
        """As of `coincide.timestamps.protocol.Rule`, of pairs that qualify."""
        probabilities = self._probabilities(*rows)
        if not self._spec.has_histograms:
            return probabilities
        return np.floor(probabilities * _MERITS + 0.5) / _MERITS


def _places(events: np.ndarray) -> np.ndarray:
    """The how-many-eth of its event each entry is, from 0, where those of an event are together."""
    begins = np.ones(events.size, bool)
    begins[1:] = events[1:] != events[:-1]
    return numbers_in_runs(begins)
