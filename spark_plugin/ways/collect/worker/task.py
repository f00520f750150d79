"""The worker of two collected sides: joins a part of the left one with the right one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from spark_plugin.ways.broadcast.worker.small_side import SmallSide
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.wire.shipment import Shipment
from spark_plugin.worker.wire.sides import read_side
from spark_plugin.worker.wire.task import WireTask


@dataclass(frozen=True, kw_only=True)
class CollectedTask(WireTask):
    """Gets rows with the number of a part, and joins this part.

    Parameters
    ----------
    rows : Shipment
        Left events, then right ones, each by midpoint.
    left_rows : int
    bounds : tuple of int
        As of `CollectPlan`.
    """

    rows: Shipment
    left_rows: int
    bounds: tuple[int, ...]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each part."""
        parts = [part for batch in batches for part in batch.column(0).to_pylist()]
        if not parts:
            return
        table = self.rows.table()
        of_left, of_right = self.spec.models
        own, others = (self.layout.only(side) for side in ("left", "right"))
        small = SmallSide(table.slice(self.left_rows), others, "right", of_right)
        for part in parts:
            first, last = self.bounds[part : part + 2]
            left = read_side(table.slice(first, last - first), own, "left", of_left)
            yield self.joined(left, small.near(left, self.spec.pairs)[0])
