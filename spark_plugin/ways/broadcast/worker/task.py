"""The worker of a broadcast: streams one side through, chunk by chunk, and joins it with the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.sides import SIDES
from spark_plugin.ways.broadcast.plan import BroadcastPlan, chunk_rows
from spark_plugin.ways.broadcast.worker.small_side import SmallSide
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.wire.chunks import chunks
from spark_plugin.worker.wire.shipment import Shipment
from spark_plugin.worker.wire.sides import read_side
from spark_plugin.worker.wire.task import WireTask


@dataclass(frozen=True, kw_only=True)
class BroadcastTask(WireTask):
    """Joins rows of the large side, in whatever partitions they are, with the small side.

    Parameters
    ----------
    plan : BroadcastPlan
    small : Shipment
    slice_rows, slice_bytes : int
        Most rows of the large side, and bytes of them, to hold at once.
    """

    plan: BroadcastPlan
    small: Shipment
    slice_rows: int
    slice_bytes: int

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each chunk."""
        plan = self.plan
        of_small, of_large = (self.spec.models[SIDES.index(s)] for s in (plan.small, plan.large))
        layout = self.layout.only(plan.small)
        small = SmallSide(self.small.table(), layout, plan.small, of_small)
        layout = self.layout.only(plan.large)
        rows = chunk_rows(self.slice_rows, len(small))
        for table in chunks(batches, rows, self.slice_bytes):
            yield self.emission(small, read_side(table, layout, plan.large, of_large))

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, _ = self.near(small, streamed)
        left, right = (near, streamed) if self.plan.small == "left" else (streamed, near)
        return self.joined(left, right)

    def near(self, small: SmallSide, streamed: Side) -> tuple[Side, np.ndarray]:
        """The small side's events near a chunk, and their rows."""
        return small.near(streamed, self.spec.pairs)
