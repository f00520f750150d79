"""Events in the columns of the wire, read back by the worker."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import one_array
from spark_plugin.worker.wire.columns import CODED, TIME, UNMATCHED, WireLayout, right_lengths


def read_side(
    table: pa.Table, layout: WireLayout, side: str, rows: np.ndarray | None = None
) -> Side:
    """The events of one side.

    Parameters
    ----------
    table : pa.Table
        Columns of the wire.
    layout : WireLayout
    side : {"left", "right"}
    rows : int64 array or None
        Rows of the table that are of this side; None: all.
    """
    picked = None if rows is None else pa.array(rows)

    def column(name: str) -> pa.Array:
        whole = one_array(table.column(name))
        return whole if picked is None else whole.take(picked)

    latest, lengths = column(TIME).to_numpy(), column(CODED).to_numpy()
    matchable = None
    if side == "right":
        lengths = right_lengths(lengths)
    elif lengths.size and lengths.min() == UNMATCHED:
        matchable = lengths != UNMATCHED
        lengths = np.where(matchable, lengths, 0)
    return Side(
        latest - lengths,
        latest,
        matchable,
        [column(name) for name in layout.keys],
        [column(name) for name in layout.payload(side)],
    )
