"""What every way gets of a join that it is to run."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.engine.join.spec import AnySpec
from coincide.model.options import CorrelateOptions
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.stage import Stage

Sides = tuple[EventFrame, EventFrame]


@dataclass(frozen=True, eq=False)
class Job:
    """A join of two sides, and the stage in which its tasks run."""

    sides: Sides
    spec: AnySpec
    result: ResultColumns
    options: CorrelateOptions
    stage: Stage
