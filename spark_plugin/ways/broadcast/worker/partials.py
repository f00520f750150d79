"""Where left is the small side: tasks find parts of what is asked of a left event.

A task that streams right events sees some of the partners of every left event. It yields what it found
by the row of the left event in the broadcast table; `spark_plugin.ways.broadcast.combining` does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from spark_plugin.ways.broadcast.worker.small_side import SmallSide
from spark_plugin.ways.broadcast.worker.task import BroadcastTask
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.partial_results import parts_of_best


def partial_spec(spec: AnySpec) -> AnySpec:
    """What a task computes: of left events without a partner it knows nothing."""
    if spec.one_row_per_event:
        return spec.but(how="inner", emit="counts")
    # What decides among the best partners that tasks find is theirs to tell.
    return (spec.with_merits() if spec.emit == "best" else spec).but(how="inner")


@dataclass(frozen=True, kw_only=True)
class PartialTask(BroadcastTask):
    """Yields, by row of the left event, what the right events of a partition are to it.

    `spec` is from `partial_spec`, `layout` has no left columns.
    """

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, rows = self.near(small, streamed)
        left, right = [rows], list(streamed.payload)
        if self.spec.emit == "best":
            # What the order among the best of several tasks goes by.
            left.append(near.min_time + near.max_time)
            right += [pa.array(streamed.max_time), pa.array(streamed.min_time)]
        near = replace(near, payload=[pa.array(column) for column in left])
        return self.joined(near, replace(streamed, payload=right))

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The row, what was found, and for the best partners what their order goes by."""
        columns = batch.columns[len(self.layout.keys) :]
        if self.spec.emit != "best":
            return columns
        row, *others = columns
        return [row, *parts_of_best(self.spec, others)]
