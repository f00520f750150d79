"""The clock of a side: how far its rows have come, and which of them are too far ahead to move it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from coincide.model.units import TIME_LIMIT

NEVER = -TIME_LIMIT
"""A clock that has not begun, ticks."""

LAST_ROWS = 31
"""This many rows of a side say where it is: the median of the last ones. Odd."""
_MIDDLE = LAST_ROWS // 2
_FAR = 2 * TIME_LIMIT
_AT_ONCE = 1 << 14
_FEW = 3
"""Rows are few if they are at most one in this many."""


def _no_rows() -> np.ndarray:
    # While there are few rows, the others are above and below by turns, the next one to leave first.
    # So the middle is the median of the rows, the lower one of two; of no row it is above all.
    return np.array([_FAR, *[_FAR, -_FAR] * _MIDDLE], np.int64)


class Ticked(NamedTuple):
    """What a clock says of some rows in order of arrival."""

    after: SideClock
    clocks: np.ndarray  # int64, shape (n,): the clock once each row has come, ticks
    beyond: (
        np.ndarray
    )  # int64, shape (n,): ticks from the last rows to each row that is set aside, or 0


@dataclass(frozen=True, eq=False)
class SideClock:
    """How far a side has come."""

    now: int = NEVER  # ticks
    promised: int = NEVER  # ticks, to which time alone has moved it
    last: np.ndarray = field(default_factory=_no_rows)  # int64, shape (LAST_ROWS,): max_times

    def ticked(self, times: np.ndarray, ahead: int | None) -> Ticked:
        """After rows of some max_times; those more than `ahead` beyond the last ones move nothing."""
        line = np.concatenate([self.last, times])
        beyond = np.zeros(times.size, np.int64)
        if ahead is not None:
            reached = np.maximum(_medians(line, times.size), self.promised)
            is_ahead = times > reached + min(ahead, _FAR - 1)
            beyond[is_ahead] = (times - reached)[is_ahead]
        moving = np.where(beyond == 0, times, NEVER)
        clocks = np.maximum.accumulate(np.maximum(moving, self.now))
        now = int(clocks[-1]) if clocks.size else self.now
        after = replace(self, now=now, last=line[line.size - LAST_ROWS :].copy())
        return Ticked(after, clocks, beyond)

    def advanced(self, time: int) -> SideClock:
        """After time has passed without rows."""
        return replace(self, now=max(self.now, time), promised=max(self.promised, time))

    def lead(self, delay: int) -> int:
        """How far few of the last rows have moved it ahead of the others, ticks; 0 if it is not so."""
        known = self.last[np.abs(self.last) < _FAR]
        near = np.count_nonzero(known >= self.now - delay)
        if self.now <= self.promised or _FEW * near > known.size:
            return 0
        return self.now - int(np.partition(self.last, _MIDDLE)[_MIDDLE])


def _medians(line: np.ndarray, rows: int) -> np.ndarray:
    """The median of the rows before each row: the rows are the last ones of a line."""
    windows = sliding_window_view(line, LAST_ROWS)[:rows]
    found = [
        np.partition(windows[start : start + _AT_ONCE], _MIDDLE, axis=1)[:, _MIDDLE]
        for start in range(0, rows, _AT_ONCE)
    ]
    return np.concatenate(found) if found else np.empty(0, np.int64)
