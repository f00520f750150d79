"""The small side: collected by the driver, sorted; read by every worker once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_plugin.ways.samples import Reach, shifted
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import narrowed, one_array
from spark_plugin.worker.timestamps.models import Bounds, SideModel
from spark_plugin.worker.wire.columns import WireLayout
from spark_plugin.worker.wire.sides import read_side


def sorted_table(table: pa.Table, layout: WireLayout, side: str, model: SideModel) -> pa.Table:
    """The rows of a side on the wire by midpoint; those that match nothing last."""
    events = read_side(table, layout, side, model)
    midpoints = events.sort_keys
    keys = (midpoints,) if events.matchable is None else (midpoints, ~events.matchable)
    order = np.lexsort(keys)
    whole = pa.table([one_array(column) for column in table.columns], names=table.column_names)
    if (np.diff(order) != 1).any():
        whole = whole.take(pa.array(order))
    return narrowed(whole, table.schema)


class SmallSide:
    """The small side in a worker.

    Parameters
    ----------
    table : pa.Table
        From `sorted_table`.
    layout : WireLayout
    name : {"left", "right"}
    model : SideModel
    """

    def __init__(self, table: pa.Table, layout: WireLayout, name: str, model: SideModel) -> None:
        self.side = read_side(table, layout, name, model)
        matchable = self.side.matchable
        self._matchable = len(self.side) if matchable is None else int(matchable.sum())
        self._midpoints = self.side.sort_keys[: self._matchable]
        self._shapes = _extent(self.side.shapes[: self._matchable])
        self._is_left = name == "left"

    def __len__(self) -> int:
        return len(self.side)

    def near(self, streamed: Side, pairs: Bounds) -> tuple[Side, np.ndarray]:
        """The events that some of the streamed ones can reach.

        Parameters
        ----------
        streamed : Side
            Of the other side.
        pairs : Bounds
            Of both sides.

        Returns
        -------
        Side
        int64 array
            Their rows in the table.
        """
        first, last = self._rows_near(streamed, pairs)
        side, count = self.side, last - first
        near = Side(
            side.max_time[first:last],
            side.shapes[first:last],
            side.model,
            None,
            [key.slice(first, count) for key in side.keys],
            [column.slice(first, count) for column in side.payload],
            [column.slice(first, count) for column in side.places],
            [column.slice(first, count) for column in side.identity],
            tested=[column.slice(first, count) for column in side.tested],
        )
        return near, np.arange(first, last)

    def _rows_near(self, streamed: Side, pairs: Bounds) -> tuple[int, int]:
        midpoints, own = streamed.sort_keys, streamed.shapes
        if streamed.matchable is not None:
            midpoints, own = midpoints[streamed.matchable], own[streamed.matchable]
        if not own.size or not self._matchable:
            return 0, 0
        shapes = self._shapes, _extent(own)
        reach = Reach.of(pairs, *(shapes if self._is_left else shapes[::-1]))
        towards = reach.reversed if self._is_left else reach
        earliest, latest = (np.array([end]) for end in _extent(midpoints))
        first = np.searchsorted(self._midpoints, shifted(earliest, towards.first), side="left")
        last = np.searchsorted(self._midpoints, shifted(latest, towards.last), side="right")
        # Of a window that nothing can meet the ends are the wrong way round.
        return int(first[0]), max(int(first[0]), int(last[0]))


def _extent(values: np.ndarray) -> tuple[int, int]:
    """Smallest and largest; zeros of none."""
    return (int(values.min()), int(values.max())) if values.size else (0, 0)
