"""Slices of row groups: each left row is in one slice, each slice reads the right rows it can reach.

Unlike slices of an exchange these are cut between rows of the files, not between times: so no row is
in two slices, whatever the order, and disorder costs reading, never correctness. A slice learns from
its left rows when they are, and so which right row groups matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
        return f"{len(self.slices)} slices of row groups, each row read {self.reads:.2f} times"


def direct_plan(
    left: Sequence[RowGroup],
    right: Sequence[RowGroup],
    window: Window,
    *,
    parallelism: int,
    slices: int | None,
    slice_rows: int,
) -> DirectPlan:
    """Cut the left row groups into slices of about equal rows, in order of time.

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
    parts = _cut(sorted(left, key=_when), wanted)
    spans = [_span(slice_) for slice_ in parts]
    owned: list[list[RowGroup]] = [[] for _ in parts]
    decoded = sum(part.group.rows for slice_ in parts for part in slice_)
    for group in right:
        readers = [i for i, span in enumerate(spans) if reaches(group, span, window)]
        owner = readers[0] if readers else min(range(len(parts)), key=lambda i: len(owned[i]))
        owned[owner].append(group)
        decoded += group.rows * max(1, len(readers))
    found = tuple(
        DirectSlice(tuple(slice_), tuple(groups))
        for slice_, groups in zip(parts, owned, strict=True)
    )
    return DirectPlan(found, tuple(right), decoded / max(rows, 1))


def reaches(right: RowGroup, span: tuple[int, int] | None, window: Window) -> bool:
    """Whether a right row group can hold partners of left events within a span of time.

    A pair of positive probability has lo <= T_right - T_left <= hi for some times in its intervals.
    """
    if span is None or right.first is None or right.last is None:
        return False
    return right.first <= span[1] + window.hi and right.last >= span[0] + window.lo


def _slices_for(rows: int, parallelism: int, slice_rows: int) -> int:
    slices = max(1, -(-rows // slice_rows), min(parallelism, rows // _SMALLEST_SLICE_ROWS))
    # Whole waves of tasks, so that no core idles in the last one.
    return -(-slices // parallelism) * parallelism if slices > parallelism else slices


def _when(group: RowGroup) -> tuple[float, float]:
    """Order in time; groups without times last."""
    if group.first is None or group.last is None:
        return float("inf"), float("inf")
    return group.first, group.last


def _cut(groups: Sequence[RowGroup], slices: int) -> list[list[Part]]:
    """Runs of rows, cut near even shares; one empty run if there are no rows."""
    ends = [0]
    for group in groups:
        ends.append(ends[-1] + group.rows)
    total = ends[-1]
    slices = max(1, min(slices, total))
    near = _SNAP * total / slices
    cuts = {0, total}
    for i in range(1, slices):
        even = total * i // slices
        end = min(ends, key=lambda place: abs(place - even))
        cuts.add(end if abs(end - even) <= near else even)
    runs = []
    for start, stop in pairwise(sorted(cuts)):
        runs.append(
            [
                Part(group, max(start - begin, 0), min(stop - begin, group.rows))
                for group, begin in zip(groups, ends, strict=False)
                if begin < stop and begin + group.rows > start
            ]
        )
    return runs or [[]]


def _span(parts: Sequence[Part]) -> tuple[int, int] | None:
    """When the events of a slice are, as far as the footers tell."""
    ends = [_estimated(part) for part in parts if part.group.first is not None]
    return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None


def _estimated(part: Part) -> tuple[int, int]:
    """Where part of a row group lies in time, if its rows are in order."""
    first, last, rows = part.group.first, part.group.last, part.group.rows
    assert first is not None
    assert last is not None
    return (
        first + (last - first) * part.start // rows,
        last - (last - first) * (rows - part.stop) // rows,
    )
