"""Slices of row groups: each left row is in one slice, each slice reads the right rows it can reach.

Unlike slices of an exchange these are cut between rows of the files, not between times: so no row is
in two slices, whatever the order, and disorder costs reading, never correctness. A slice learns from
its left rows when they are, and so which right row groups matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from event_model.condition import Window
from spark_plugin.direct.footers import RowGroup

_SMALLEST_SLICE_ROWS = 100_000
"""Below this many rows a task of its own does not pay."""
_SNAP = 0.25
"""A cut moves to the end of a row group that is so near, in parts of a slice: groups are read whole."""


@dataclass(frozen=True)
class Part:
    """Rows start ... stop of a row group."""

    group: RowGroup
    start: int
    stop: int


@dataclass(frozen=True)
class DirectSlice:
    """What one task joins.

    Parameters
    ----------
    left : tuple of Part
    accounts_for : tuple of RowGroup
        Right row groups whose rows this slice checks and counts, whether it needs them or not.
    """

    left: tuple[Part, ...]
    accounts_for: tuple[RowGroup, ...]


@dataclass(frozen=True)
class DirectPlan:
    """All slices.

    Parameters
    ----------
    slices : tuple of DirectSlice
    right : tuple of RowGroup
        All of them.
    reads : float
        Rows to decode over rows in the files, estimated.
    """

    slices: tuple[DirectSlice, ...]
    right: tuple[RowGroup, ...]
    reads: float

    def describe(self) -> str:
        """The plan in one line."""
        count = len(self.slices)
        plural = "" if count == 1 else "s"
        return f"{count:,} slice{plural} of row groups, each row read {self.reads:.2f} times"


def direct_plan(
    left: Sequence[RowGroup],
    right: Sequence[RowGroup],
    window: Window,
    *,
    parallelism: int,
    slices: int | None,
    slice_rows: int,
) -> DirectPlan:
    """Cut the left row groups into slices of about equal work, in order of time.

    Parameters
    ----------
    left, right : sequences of RowGroup
        All with statistics.
    window : Window
        Ticks.
    parallelism : int
        Tasks that run at once.
    slices : int or None
        Slices asked for; None: chosen from the rows.
    slice_rows : int
        Rows of both sides that a slice should hold.
    """
    rows = sum(group.rows for group in (*left, *right))
    wanted = slices or _slices_for(rows, parallelism, slice_rows)
    in_time = _InTime(right, window)
    ordered = sorted(left, key=_when)
    parts = _cut(ordered, [group.rows + in_time.rows_near(group) for group in ordered], wanted)
    owners, readers = in_time.readers(parts)
    owned: list[list[RowGroup]] = [[] for _ in parts]
    for place, group in enumerate(right):
        # Groups that nobody reads are dealt out.
        owned[owners[place] if readers[place] else place % len(parts)].append(group)
    decoded = sum(part.group.rows for slice_ in parts for part in slice_)
    decoded += int(np.maximum(readers, 1) @ in_time.rows)
    found = tuple(
        DirectSlice(tuple(slice_), tuple(groups))
        for slice_, groups in zip(parts, owned, strict=True)
    )
    return DirectPlan(found, tuple(right), decoded / max(rows, 1))


def reaches(
    right: RowGroup, slice_: DirectSlice, span: tuple[int, int] | None, window: Window
) -> bool:
    """Whether a right row group can hold partners of a slice's left events.

    A pair of positive probability has lo <= T_right - T_left <= hi for some times in its intervals.

    Parameters
    ----------
    right : RowGroup
    slice_ : DirectSlice
    span : (int, int) or None
        Its earliest min_time and latest max_time, once read; None: it has no events that can match.
    window : Window
    """
    if span is None or not _meets(right, span[0], span[1], window):
        return False
    # Between two of its row groups a slice may have a gap, full of right events that none can reach.
    return any(_meets(right, p.group.first, p.group.last, window) for p in slice_.left)


def _meets(right: RowGroup, low: int | None, high: int | None, window: Window) -> bool:
    if right.first is None or right.last is None or low is None or high is None:
        return False
    return right.first <= high + window.hi and right.last >= low + window.lo


def _slices_for(rows: int, parallelism: int, slice_rows: int) -> int:
    slices = max(1, -(-rows // slice_rows), min(parallelism, rows // _SMALLEST_SLICE_ROWS))
    # Whole waves of tasks, so that no core idles in the last one.
    return -(-slices // parallelism) * parallelism if slices > parallelism else slices


def _when(group: RowGroup) -> tuple[float, float]:
    """Order in time; groups without times last."""
    if group.first is None or group.last is None:
        return float("inf"), float("inf")
    return group.first, group.last


def _cut(groups: Sequence[RowGroup], work: Sequence[float], slices: int) -> list[list[Part]]:
    """Runs of rows of about equal work, cut near; one empty run if there are no rows."""
    ends = np.concatenate([[0], np.cumsum([group.rows for group in groups])]).astype(np.int64)
    done = np.concatenate([[0.0], np.cumsum(work)])
    total = int(ends[-1])
    slices = max(1, min(slices, total))
    even = done[-1] * np.arange(1, slices) / slices
    nearest = done[np.abs(done[:, None] - even).argmin(axis=0)] if slices > 1 else even
    near = np.abs(nearest - even) <= _SNAP * done[-1] / slices
    rows = np.interp(np.where(near, nearest, even), done, ends).astype(np.int64)
    cuts = [0, *np.unique(rows[(rows > 0) & (rows < total)]).tolist(), total]
    return [_run(groups, ends, start, stop) for start, stop in pairwise(cuts)]


def _run(groups: Sequence[RowGroup], ends: np.ndarray, start: int, stop: int) -> list[Part]:
    """Rows start ... stop of all groups in a row."""
    first = int(np.searchsorted(ends, start, side="right")) - 1
    last = int(np.searchsorted(ends, stop, side="left"))
    begins = ends[first:last].tolist()
    return [
        Part(group, max(start - begin, 0), min(stop - begin, group.rows))
        for group, begin in zip(groups[first:last], begins, strict=True)
    ]


class _InTime:
    """The right row groups along the time axis."""

    def __init__(self, right: Sequence[RowGroup], window: Window) -> None:
        self._window = window
        self.rows = np.array([group.rows for group in right], np.int64)
        self._timed = np.array([group.first is not None for group in right], bool)
        self._first = np.array([group.first or 0 for group in right], np.int64)
        self._last = np.array([group.last or 0 for group in right], np.int64)

    def rows_near(self, left: RowGroup) -> float:
        """Right rows that the events of a left row group can reach, if rows are spread evenly."""
        if left.first is None or left.last is None:
            return 0.0
        low, high = left.first + self._window.lo, left.last + self._window.hi
        shared = np.minimum(self._last, high) - np.maximum(self._first, low) + 1.0
        lengths = np.maximum(self._last - self._first, 0) + 1.0
        return float(np.clip(shared / lengths, 0.0, 1.0) @ (self.rows * self._timed))

    def readers(self, slices: Sequence[Sequence[Part]]) -> tuple[np.ndarray, np.ndarray]:
        """Of each right row group the first slice that reads it, and how many do, by the footers."""
        owners, readers = np.zeros(self.rows.size, np.int64), np.zeros(self.rows.size, np.int64)
        for number, parts in enumerate(slices):
            read = np.zeros(self.rows.size, bool)
            for part in parts:
                read |= self._reached(_estimated(part))
            owners[read & (readers == 0)] = number
            readers += read
        return owners, readers

    def _reached(self, span: tuple[int, int] | None) -> np.ndarray:
        if span is None:
            return np.zeros(self.rows.size, bool)
        low, high = span[0] + self._window.lo, span[1] + self._window.hi
        return self._timed & (self._first <= high) & (self._last >= low)


def _estimated(part: Part) -> tuple[int, int] | None:
    """Where part of a row group lies in time, if its rows are in order."""
    first, last, rows = part.group.first, part.group.last, part.group.rows
    if first is None or last is None:
        return None
    return (
        first + (last - first) * part.start // rows,
        last - (last - first) * (rows - part.stop) // rows,
    )
