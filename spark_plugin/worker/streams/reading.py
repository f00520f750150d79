"""From pushed tables to events that are in time, those that are late, and those that match nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.tables import read_side
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.live import Part
from spark_plugin.worker.streams.marks import marks_of

_ROW = "\0row"
"""A column beside those of the user: the row of the push, to find late ones by."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What a push brings.

    Parameters
    ----------
    events : Part
        In time; they can match.
    matchless : Part
        With a null time or key.
    late : pa.Table
        Rows that came later than the delay permits, as they were pushed.
    clock : int
        The latest max_time of the side by now, ticks.
    counts : SideCounts
        Of all rows.
    """

    events: Part
    matchless: Part
    late: pa.Table
    clock: int
    counts: SideCounts


def read_arrivals(
    plan: TablePlan, number: int, table: pa.Table, clock: int, delay: int
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

    Raises
    ------
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    """
    numbered = table.append_column(_ROW, pa.array(np.arange(table.num_rows)))
    payload = [*plan.payload[number], _ROW]
    side, counts = read_side(numbered, plan.times[number], plan.by[number], payload, plan.invalid)
    rows = side.payload[-1].to_numpy()
    side = replace(side, payload=side.payload[:-1])
    null = np.zeros(0, np.int64) if side.matchable is None else np.flatnonzero(~side.matchable)
    matchless = Part(side.rows(null), np.zeros(null.size, np.uint16))
    if side.matchable is not None:
        rows = rows[side.matchable]
        side = replace(side.rows(np.flatnonzero(side.matchable)), matchable=None)
    clocks = np.maximum.accumulate(np.maximum(side.max_time, clock))
    is_late = side.max_time < clocks - delay
    late = table.take(pa.array(rows[is_late]))
    if is_late.any():
        side = side.rows(np.flatnonzero(~is_late))
    events = Part(side, marks_of(side.keys, len(side)))
    return Arrivals(events, matchless, late, int(clocks[-1]) if clocks.size else clock, counts)
