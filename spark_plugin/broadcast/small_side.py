"""The small side: collected by the driver, sorted, sent to every worker as Arrow, read there once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from spark_plugin.samples import Reach, shifted
from spark_plugin.sides import Side
from spark_plugin.wire import WireLayout
from spark_plugin.wire_sides import read_side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def sorted_table(table: pa.Table, layout: WireLayout, side: str) -> pa.Table:
    """The rows of a side on the wire by midpoint; those that match nothing last."""
    events = read_side(table, layout, side)
    midpoints = events.min_time + events.max_time
    keys = (midpoints,) if events.matchable is None else (midpoints, ~events.matchable)
    order = np.lexsort(keys)
    if (np.diff(order) == 1).all():
        return table.combine_chunks()
    return table.take(pa.array(order)).combine_chunks()


@dataclass(frozen=True)
class Shipment:
    """A table on its way to the workers.

    Parameters
    ----------
    content : pyspark.Broadcast or bytes
        The table as an Arrow stream. Broadcast, it reaches each worker once; else with every task.
    """

    content: Any

    @classmethod
    def of(cls, table: pa.Table, spark: SparkSession) -> Shipment:
        """Send a table; without broadcasts (Spark Connect) it travels with the function."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        content = sink.getvalue().to_pybytes()
        context = getattr(spark, "sparkContext", None)
        return cls(content if context is None else context.broadcast(content))

    def table(self) -> pa.Table:
        """The table, where it has arrived; no copy is made."""
        content = getattr(self.content, "value", self.content)
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


class SmallSide:
    """The small side in a worker.

    Parameters
    ----------
    table : pa.Table
        From `sorted_table`.
    layout : WireLayout
    name : {"left", "right"}
    """

    def __init__(self, table: pa.Table, layout: WireLayout, name: str) -> None:
        self.schema = table.schema
        self.side = read_side(table, layout, name)
        matchable = self.side.matchable
        self._matchable = len(self.side) if matchable is None else int(matchable.sum())
        self._midpoints = (self.side.min_time + self.side.max_time)[: self._matchable]
        self._name = name

    def __len__(self) -> int:
        return len(self.side)

    def near(self, streamed: Side, reach: Reach) -> tuple[Side, np.ndarray]:
        """The events that some of the streamed ones can reach.

        Parameters
        ----------
        streamed : Side
            Of the other side.
        reach : Reach
            Of D = midpoint of the right event - midpoint of the left event.

        Returns
        -------
        Side
        int64 array
            Their rows in the table.
        """
        first, last = self._rows_near(streamed, reach)
        side, count = self.side, last - first
        near = Side(
            side.min_time[first:last],
            side.max_time[first:last],
            None,
            [key.slice(first, count) for key in side.keys],
            [column.slice(first, count) for column in side.payload],
        )
        return near, np.arange(first, last)

    def _rows_near(self, streamed: Side, reach: Reach) -> tuple[int, int]:
        midpoints = streamed.min_time + streamed.max_time
        if streamed.matchable is not None:
            midpoints = midpoints[streamed.matchable]
        if not midpoints.size:
            return 0, 0
        ends = np.array([midpoints.min(), midpoints.max()])
        towards = reach if self._name == "right" else reach.reversed
        first = np.searchsorted(self._midpoints, shifted(ends[:1], towards.first), side="left")
        last = np.searchsorted(self._midpoints, shifted(ends[1:], towards.last), side="right")
        return int(first[0]), int(last[0])
