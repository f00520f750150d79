"""An exchange whose slices are cut where nothing can meet: each has all partners of all its events.

An optimal assignment looks at events together that hang together by their pairs. Within a key, where no
left event reaches over a moment, no such group does: so events between two gaps go to one slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pyspark.sql import DataFrame

from coincide.engine.join.spec import AnySpec
from coincide.model.errors import several
from spark_plugin.frames.columns import literal
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import Rows, SliceTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.wire import LABEL, LabelCode
from spark_plugin.ways.exchange.join import in_partitions
from spark_plugin.ways.exchange.slice_columns import partition_labels

_BEFORE = "max(reach_end) OVER ({} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
_BY_TIME = "PARTITION BY key_hash ORDER BY reach_start"


@dataclass(frozen=True)
class GapPlan:
    """How many slices there are, and how far left events reach."""

    count: int
    reach: Reach
    way: ClassVar[str] = "exchange"
    replication: ClassVar[float] = 1.0

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{several(self.count, 'slice')}, cut at gaps in time"


def gap_join(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    result: ResultColumns,
    plan: GapPlan,
    stage: Stage,
) -> DataFrame:
    """The result in wire types, not yet computed."""
    labels, layout = partition_labels(plan.count), result.layout
    shapes = plan.reach.left, plan.reach.right
    code = LabelCode.of(int(labels.max()), (shapes[0][1], shapes[1][1]))
    place = ("midpoint", "key_hash")
    left, right = (
        wire_rows(side, layout, spec.keeps_unmatched, stage.raise_invalid, place=place).selectExpr(
            "*", *ends
        )
        for side, ends in zip(sides, _ends(plan.reach), strict=True)
    )
    rows = left.unionAll(right)
    rows = rows.selectExpr("*", f"{_BEFORE.format(_BY_TIME)} AS reached")
    begins = "IF(reached IS NULL OR reached < reach_start, 1L, 0L)"
    rows = rows.selectExpr("*", f"sum({begins}) OVER ({_BY_TIME}) AS stretch")
    rows = rows.selectExpr(f"{_label(labels)} AS {LABEL}", *layout.columns)
    wire = Rows(code)
    task = SliceTask(spec, layout, result.names, stage.metrics, wire=wire, shapes=shapes)
    return stage.run(in_partitions(rows, plan.count, layout, code), task, result.wire_schema)


def _ends(reach: Reach) -> tuple[list[str], list[str]]:
    """SQL of what left events reach, and of where right ones are: whole ticks, so that sums fit."""
    here = "shiftright(midpoint, 1)"
    first, last = literal(reach.first // 2), literal(reach.last // 2 + 1)
    return (
        [f"{here} + {first} AS reach_start", f"{here} + {last} AS reach_end"],
        [f"{here} AS reach_start", f"{here} AS reach_end"],
    )


def _label(labels: np.ndarray) -> str:
    if labels.size == 1:
        return literal(labels[0])
    array = f"array({', '.join(map(literal, labels))})"
    return (
        f"element_at({array}, CAST(pmod(xxhash64(key_hash, stretch), {labels.size}L) + 1 AS INT))"
    )
