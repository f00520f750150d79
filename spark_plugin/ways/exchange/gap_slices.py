"""An exchange of stretches of time between which nothing can meet: each has all matches of its events.

An optimal assignment looks at events together that hang together by their pairs. Within a key, where no
left event reaches over a moment, no such group does: so events between two gaps go to one slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame

from coincide.model.errors import several
from spark_plugin.frames.columns import literal
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.exchange import StretchTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.wire import KEY_HASH
from spark_plugin.ways.join_sides import Job

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


def gap_join(job: Job, plan: GapPlan) -> tuple[DataFrame, None]:
    """The result in wire types, not yet computed."""
    sides, spec, result, stage = job.sides, job.spec, job.result, job.stage
    layout, place = result.layout, ("midpoint", KEY_HASH)
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
    rows = rows.repartition(plan.count, KEY_HASH, "stretch").selectExpr(*layout.columns)
    shapes = plan.reach.left, plan.reach.right
    task = StretchTask(spec, layout, result.names, stage.metrics, shapes=shapes)
    return stage.run(rows, task, result.wire_schema), None


def _ends(reach: Reach) -> tuple[list[str], list[str]]:
    """SQL of what left events reach, and of where right ones are: whole ticks, so that sums fit."""
    here = "shiftright(midpoint, 1)"
    first, last = literal(reach.first // 2), literal(reach.last // 2 + 1)
    return (
        [f"{here} + {first} AS reach_start", f"{here} + {last} AS reach_end"],
        [f"{here} AS reach_start", f"{here} AS reach_end"],
    )
