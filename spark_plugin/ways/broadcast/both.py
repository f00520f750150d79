"""Both sides to every worker: the driver collects them, a task joins a part of left with all of right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.engine.join.spec import AnySpec
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import argument, several
from spark_plugin.frames.output_columns import layout_of
from spark_plugin.frames.queries import ship
from spark_plugin.tasks.broadcast import PartTask, sorted_table
from spark_plugin.tasks.samples import Reach, Sample, expected_matches
from spark_plugin.tasks.wire import Shipment
from spark_plugin.ways.broadcast.collecting import CollectedSide, wire_table
from spark_plugin.ways.join_sides import Job, Sides

_SMALLEST_WORK = 500_000.0
"""Below this much work, in rows that an exchange moves, a further task does not pay."""
_SAMPLES = 4096


@dataclass(frozen=True, eq=False)
class BothPlan:
    """A join of rows that the driver has: left ones first, which `bounds` cut into parts."""

    rows: pa.Table
    bounds: tuple[int, ...]
    way: ClassVar[str] = "broadcast-both"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        tasks = several(len(self.bounds) - 1, "task")
        return f"both sides collected, {self.rows.nbytes:,} bytes to {tasks}"


def dealt(sides: Sides, collected: Sequence[CollectedSide], spec: JoinSpec, tasks: int) -> BothPlan:
    """The rows on the wire, and which task gets which."""
    own, others = (
        side.times.declared or (each.statistics.shortest, each.statistics.longest)
        for side, each in zip(sides, collected, strict=True)
    )
    reach = Reach.of(spec.pairs, own, others, spec.largest_useful)
    layout = layout_of(sides, spec)
    left, right = (
        sorted_table(
            wire_table(each.events, side, layout),
            layout.only(side.side),
            side.side,
            side.times.model,
        )
        for each, side in zip(collected, sides, strict=True)
    )
    samples = collected[0].statistics.sample(), collected[1].statistics.sample()
    bounds = _bounds(*samples, reach, spec, left.num_rows, tasks)
    return BothPlan(pa.concat_tables([left, right], promote_options="default"), bounds)


def _bounds(
    left: Sample, right: Sample, reach: Reach, spec: AnySpec, left_rows: int, tasks: int
) -> tuple[int, ...]:
    """Where to cut the left events, so that tasks have about equal work, as a thinner sample tells."""
    # Events of one stream are numbered where all that are alike are together, and what is one to
    # one is known where all are.
    if spec.is_one_stream or spec.choice.one_to_one is not None or not left.midpoints.size:
        return 0, left_rows
    own = _thinned(left)
    stride = -(-left.midpoints.size // own.midpoints.size)
    done = np.cumsum(1.0 + spec.row.pair_work * expected_matches(own, _thinned(right), reach))
    count = max(1, min(tasks, int(done[-1] * stride // _SMALLEST_WORK)))
    cuts = np.searchsorted(done, np.arange(1, count) / count * done[-1]) * stride
    return 0, *np.unique(cuts[(cuts > 0) & (cuts < left_rows)]).tolist(), left_rows


def _thinned(sample: Sample) -> Sample:
    stride = -(-sample.midpoints.size // _SAMPLES)
    if stride <= 1:
        return sample
    midpoints, hashes = sample.midpoints[::stride], sample.hashes[::stride]
    weights = np.full(midpoints.size, sample.midpoints.size / midpoints.size)
    return Sample(midpoints, weights, hashes, sample.rows)


def both_join(job: Job, plan: BothPlan) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs."""
    spark, result, stage = job.sides[0].spark, job.result, job.stage
    shipment = ship(plan.rows, spark, "both sides", f"remove {argument('way')}")
    parts = len(plan.bounds) - 1
    task = PartTask(
        job.spec, result.layout, result.names, stage.metrics, rows=shipment, bounds=plan.bounds
    )
    return stage.run(spark.range(0, parts, 1, parts), task, result.wire_schema), shipment
