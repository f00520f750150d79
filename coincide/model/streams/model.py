"""What a model of timestamps gives the stream correlators besides what it gives a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.errors import MemoryBudgetError, argument
from coincide.model.sides import LEFT, SIDES
from coincide.model.templates.satisfaction import MOST_PAIRS, KnownLengths, beside, solved_times
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps.histograms import HistogramPairs

if TYPE_CHECKING:
    from coincide.model.streams.intake import Intake
    from coincide.model.streams.options import SideLimits


class StreamModel(Protocol):
    """The timestamps of two streams and the condition on them: every shape within its limits may come.

    What it shares with a `coincide.model.timestamps.protocol.PairModel` means the same there.
    """

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the key of a target less that of a base event, by their classes."""

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """Largest lean of the shapes of each class, half ticks."""

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> Intake:
        """What checks the events of one correlator and makes shapes of them."""

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """Narrow ranges of all shapes of a side, to bound the `max_time_bands` of each."""

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `bands`, on the doubled max_time of a target less the key of a base event.

        Parameters
        ----------
        base_side : int
        own : ShapeClasses
            K1 of base events.
        other : ShapeClasses
            One, of all targets.

        Returns
        -------
        int64 array, shape (K1, 4)
        """

    def stream_classes(
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        """Classes of a side, good for the shapes seen, which hold every shape within the limits.

        Parameters
        ----------
        side : int
        seen : int64 array, shape (n,)
            Shapes of the events so far; n > 0.
        most : int or None
            Upper limit on classes of shapes that were seen; None: a default.
        limits : (int, int)
            Least and largest shape of the side.
        """

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:
        """The probability from which on a look-up table may tell that a pair qualifies.

        Parameters
        ----------
        left, right : ShapeClasses
            One each, of all events.

        Returns
        -------
        float or None
            None where it tells nothing: Lee & Lee (2010), Corollary 2, speaks of intervals, of which
            the shape is the length, and of one end of the window.
        """


class LengthNumbers:
    """Numbers lengths in the order in which they come, and solves the table for them.

    Numbers stay, so that what a kernel keeps of earlier events remains true.
    """

    def __init__(self, window: Window, side: int, table: TemplateTable, most: int) -> None:
        self._window, self._side, self._table = window, side, table
        self._most = min(most, MOST_PAIRS // len(table))
        nothing = np.empty(0, np.int64)
        empty = np.empty((0, len(table)) if side == LEFT else (len(table), 0), np.int64)
        times = SatisfactionTimes(empty, empty, nothing, nothing, nothing)
        # One object, so that no exception can leave a part of it behind.
        self._known = self._all_known(nothing, times)

    @property
    def rule(self) -> Any:
        """Decides pairs of all lengths so far."""
        return self._known.rule

    @property
    def lengths(self) -> np.ndarray:
        """Lengths by number: int64 array, ticks."""
        return self._known.lengths.lengths

    def numbered(self, lengths: np.ndarray) -> np.ndarray:
        """The numbers of lengths, new ones included: int64 array, shape (n,)."""
        if not self._known.lengths.has_all(lengths):
            self._known = self._with(np.setdiff1d(lengths, self._known.lengths.ordered))
        return self._known.lengths.numbered(lengths)

    def _with(self, new: np.ndarray) -> _Known:
        count = self.lengths.size + new.size
        if count > self._most:
            name, other = SIDES[self._side], SIDES[1 - self._side]
            raise MemoryBudgetError(
                f"{name}: {count:,} different lengths of intervals have come, each of which counts"
                f" as a template, and {self._most:,} are allowed beside the {len(self._table):,}"
                f" of {other}_templates; round the intervals to fewer lengths, or give a larger"
                f" {argument('most_lengths')} (at most {MOST_PAIRS // len(self._table):,})"
            )
        times = beside(self._known.lengths.times, self._solved(new), self._side)
        return self._all_known(np.concatenate([self.lengths, new]), times)

    def _solved(self, lengths: np.ndarray) -> SatisfactionTimes:
        return solved_times(*self._tables(lengths), self._window)

    def _all_known(self, lengths: np.ndarray, times: SatisfactionTimes) -> _Known:
        rule = _Solved(self._window, *self._tables(lengths), times).rule
        return _Known(KnownLengths.of(lengths, times), rule)

    def _tables(self, lengths: np.ndarray) -> tuple[TemplateTable, TemplateTable]:
        own = TemplateTable.of_lengths(lengths)
        return (own, self._table) if self._side == LEFT else (self._table, own)


@dataclass(frozen=True)
class _Solved(HistogramPairs):
    """A pair of tables of which the satisfaction times are known."""

    times: SatisfactionTimes

    @property
    def table(self) -> SatisfactionTimes:
        return self.times


class _Known(NamedTuple):
    """What is known of the lengths so far."""

    lengths: KnownLengths
    rule: Any
