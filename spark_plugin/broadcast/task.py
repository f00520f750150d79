"""The worker of a broadcast: streams one side through, chunk by chunk, and joins it with the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType

import pyarrow as pa

from spark_plugin.broadcast.plan import BroadcastPlan
from spark_plugin.broadcast.small_side import Shipment, SmallSide
from spark_plugin.devices import load_task_backend
from spark_plugin.emission import Emission
from spark_plugin.sides import Side
from spark_plugin.wire_sides import read_side
from spark_plugin.wire_task import WireTask

_SMALLEST_CHUNK = 1 << 18


@dataclass(frozen=True, kw_only=True)
class BroadcastTask(WireTask):
    """Joins rows of the large side, in whatever partitions they are, with the small side.

    Parameters
    ----------
    plan : BroadcastPlan
    small : Shipment
    chunk_rows : int
        Most rows of the large side to hold at once.
    """

    plan: BroadcastPlan
    small: Shipment
    chunk_rows: int

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each chunk."""
        plan, backend = self.plan, load_task_backend(self.spec.backend)
        small = SmallSide(self.small.table(), self.layout.only(plan.small), plan.small)
        # Preparing the small side for a chunk costs as much as its rows do.
        rows = min(self.chunk_rows, max(_SMALLEST_CHUNK, len(small)))
        for table in chunks(batches, rows):
            streamed = read_side(table, self.layout.only(plan.large), plan.large)
            yield self.emission(small, streamed, table.schema, backend)

    def emission(
        self, small: SmallSide, streamed: Side, schema: pa.Schema, backend: ModuleType
    ) -> Emission:
        """The join of a chunk, of which `schema` is the wire's."""
        near, _ = small.near(streamed, self.plan.reach)
        sides, schemas = (near, streamed), (small.schema, schema)
        if self.plan.small == "right":
            sides, schemas = sides[::-1], schemas[::-1]
        return Emission(*sides, self.spec, self.schema(*schemas, self.layout, self.spec), backend)


def chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """Gather batches until they have so many rows."""
    gathered: list[pa.RecordBatch] = []
    for batch in batches:
        gathered.append(batch)
        if sum(map(len, gathered)) >= rows:
            yield pa.Table.from_batches(gathered)
            gathered = []
    if gathered:
        yield pa.Table.from_batches(gathered)
