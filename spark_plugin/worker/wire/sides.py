"""Events in the columns of the wire, read back by the worker."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import one_array
from spark_plugin.worker.timestamps.models import SideModel
from spark_plugin.worker.wire.columns import CODED, TIME, UNMATCHED, WireLayout, right_shapes


def read_side(
    table: pa.Table,
    layout: WireLayout,
    side: str,
    model: SideModel,
    rows: np.ndarray | None = None,
) -> Side:
    """The events of one side.

    Parameters
    ----------
    table : pa.Table
        Columns of the wire.
    layout : WireLayout
    side : {"left", "right"}
    model : SideModel
        Of its timestamps.
    rows : int64 array or None
        Rows of the table that are of this side; None: all.
    """
    picked = None if rows is None else pa.array(rows)

    def column(name: str) -> pa.Array:
        whole = one_array(table.column(name))
        return whole if picked is None else whole.take(picked)

    latest, shapes = column(TIME).to_numpy(), column(CODED).to_numpy()
    matchable = None
    if side == "right":
        shapes = right_shapes(shapes)
    elif shapes.size and shapes.min() == UNMATCHED:
        matchable = shapes != UNMATCHED
        shapes = np.where(matchable, shapes, 0)
    return Side(
        latest,
        shapes,
        model,
        matchable,
        [column(name) for name in layout.keys],
        [column(name) for name in layout.payload(side)],
        [column(name) for name in layout.places],
        [column(name) for name in layout.identity],
        tested=[column(name) for name in layout.tested(side)],
    )
