"""Lengths of intervals that meet templates: each becomes a template of one bucket when it first comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coincide.condition import Window
from coincide.errors import MemoryBudgetError
from coincide.sides import LEFT, SIDES
from coincide.templates.length_times import KnownLengths, beside
from coincide.templates.satisfaction import MOST_PAIRS, solved_times
from coincide.templates.satisfaction_times import SatisfactionTimes
from coincide.templates.table import TemplateTable
from coincide.timestamps.histograms import HistogramPairs


class LengthNumbers:
    """Numbers lengths in the order in which they come, and solves the table for them.

    Numbers stay, so that what a kernel keeps of earlier events remains true.

    Parameters
    ----------
    window : Window
        Ticks.
    side : int
        Of the intervals.
    table : TemplateTable
        Of the other side.
    most : int
        Lengths that may come.
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
        """The numbers of lengths, new ones included: int64 array, shape (n,).

        Parameters
        ----------
        lengths : int64 array, shape (n,)

        Raises
        ------
        MemoryBudgetError
            If there are too many new ones. None is taken then.
        """
        if not self._known.lengths.has_all(lengths):
            self._known = self._with(np.setdiff1d(lengths, self._known.lengths.ordered))
        return self._known.lengths.numbered(lengths)

    def _with(self, new: np.ndarray) -> _Known:
        count = self.lengths.size + new.size
        if count > self._most:
            name, other = SIDES[self._side], SIDES[1 - self._side]
            raise MemoryBudgetError(
                f"{name}: {count:,} different lengths of intervals have come, each of which counts as a"
                f" template, and {self._most:,} are allowed beside the {len(self._table):,} of"
                f" {other}_templates; round the intervals to fewer lengths, or give a larger most_lengths"
                f" (at most {MOST_PAIRS // len(self._table):,})"
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
    """What is known of the lengths so far.

    Parameters
    ----------
    lengths : KnownLengths
    rule : NamedTuple
    """

    lengths: KnownLengths
    rule: Any
