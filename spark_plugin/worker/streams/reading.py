"""From pushed tables to events that are in time, those that are late, and those that match nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.one_stream import ROW_NUMBERS
from spark_plugin.worker.streams.live import Part
from spark_plugin.worker.streams.marks import marks_of

_ROW = ROW_NUMBERS[-1]
"""A column beside those of the user: the row of the push, to find late ones by."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What a push brings.

    Parameters
    ----------
    events : tuple of Part
        In time; they can match. Of one stream twice: as left events and as right ones.
    matchless : Part or None
        With a null time or key; None if there are none.
    late : pa.Table
        Rows that came later than the delay permits, as they were pushed.
    clock : int
        The latest max_time of the side by now, ticks.
    counts : SideCounts
        Of all rows.
    behind : int
        How far the latest of the late rows lies behind what came before it, ticks.
    """

    events: tuple[Part, ...]
    matchless: Part | None
    late: pa.Table
    clock: int
    counts: SideCounts
    behind: int = 0


def read_arrivals(
    plan: TablePlan, number: int, table: pa.Table, clock: int, delay: int, taken: int = 0
) -> Arrivals:
    """The rows of a push, in order of arrival.

    An event arrives at the largest max_time that its side has seen, over all keys. It is late if its own
    is more than the delay below that.

    Parameters
    ----------
    plan : TablePlan
    number : int
        LEFT or RIGHT.
    table : pa.Table
    clock : int
        The largest max_time so far, ticks.
    delay : int
    taken : int
        Events of the side that were in time so far: ranks go on from there.

    Raises
    ------
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    """
    sides, counts = _read(plan, number, table)
    can_match = sides[0].matchable
    matchless = None
    if can_match is not None:
        null = np.flatnonzero(~can_match)
        none = np.zeros(null.size, np.int64)
        matchless = Part(replace(sides[0].rows(null), ranks=none), none.astype(np.uint16))
        sides = [_chosen(side, can_match) for side in sides]
    max_time = sides[0].max_time
    clocks = np.maximum.accumulate(np.maximum(max_time, clock))
    is_late = max_time < clocks - delay
    late, behind = table.slice(0, 0), 0
    if is_late.any():
        behind = int((clocks - max_time)[is_late].max())
        rows = _rows(plan, number, table, counts)
        rows = rows if can_match is None else rows[can_match]
        late = table.take(pa.array(rows[is_late]))
        sides = [_chosen(side, ~is_late) for side in sides]
    ranks = np.arange(taken, taken + len(sides[0]))
    sides = [replace(side, ranks=ranks) for side in sides]
    marks = marks_of(sides[0].keys, len(sides[0]), case_fold=plan.spec.case_fold)
    events = tuple(Part(side, marks) for side in sides)
    now = int(clocks[-1]) if clocks.size else clock
    return Arrivals(events, matchless, late, now, counts, behind)


def _read(plan: TablePlan, number: int, table: pa.Table) -> tuple[list[Side], SideCounts]:
    """The events of a table; of one stream as left events and as right ones."""
    if plan.spec.is_one_stream:
        left, right, counts = plan.read_stream(table)
        return [left, right], counts
    side, counts = plan.read(number, table)
    return [side], counts


def _rows(plan: TablePlan, number: int, table: pa.Table, counts: SideCounts) -> np.ndarray:
    """Of each event its row in the table, from which invalid rows have been left out."""
    rows = np.arange(table.num_rows)
    if not counts.dropped:
        return rows
    (side, *_), _ = _read(plan, number, table.append_column(_ROW, pa.array(rows)))
    found: np.ndarray = side.identity[-1].to_numpy()
    return found


def _chosen(side: Side, mask: np.ndarray) -> Side:
    return replace(side.rows(np.flatnonzero(mask)), matchable=None)
