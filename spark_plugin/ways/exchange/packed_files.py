"""Sides of an exchange that only read Parquet: tasks read their row groups, and pack them at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.engine.events.schemas import with_like_keys
from coincide.engine.files.footers import Footer
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts
from coincide.engine.join.join import TablePlan, plan_tables
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import CoincideError
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_files import Files, deals_of, files_of, rows_at_once, spark_schema
from spark_plugin.tasks.packed_files import COUNTS, FilePackTask, names_of_counts
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.wire import WireLayout

_log = logging.getLogger("coincide")


@dataclass(frozen=True)
class FileSide:
    """The files of a side, and what makes events of their rows."""

    files: PlannedFiles
    tables: TablePlan
    footers: list[Footer]

    @property
    def at_once(self) -> int:
        """Rows that a task reads at once, about."""
        return rows_at_once(self.footers)

    def deals(self, tasks: int) -> tuple[Parts, ...]:
        """All row groups, dealt in their order to tasks of about as many rows each."""
        return deals_of(self.footers, tasks)


def file_sides(
    sides: tuple[EventFrame, EventFrame],
    arguments: PairArguments,
    found: Sequence[Files | None] | None = None,
) -> list[FileSide | None]:
    """What tasks read themselves of both sides; None of one whose rows come through Spark."""
    # `found`: their files, if they were looked for.
    nothing: list[FileSide | None] = [None, None]
    if is_accelerated(sides[0].spark) or arguments.is_one_stream:
        return nothing
    found = [files_of(side) for side in sides] if found is None else found
    # Tasks of both sides must hash keys alike.
    if not any(found) or (sides[0].by and not all(found)):
        return nothing
    own = [
        spark_schema(side, side.needed) if given is None else given[0].schema
        for side, given in zip(sides, found, strict=True)
    ]
    schemas = with_like_keys(own, arguments.keys, arguments.right_keys)
    try:
        tables = plan_tables(schemas[0], schemas[1], arguments)
    except CoincideError as closed:  # types of keys that are one to Spark, and two to Arrow
        _log.debug("correlate: Spark reads the files: %s", closed)
        return nothing
    if tables.tick != sides[0].times.scales[0].tick:
        return nothing
    planned = [
        None
        if given is None or not _are_needed(side, tables, i)
        else FileSide(replace(given[0], schema=schemas[i]), tables, given[1])
        for i, (side, given) in enumerate(zip(sides, found, strict=True))
    ]
    return nothing if sides[0].by and not all(planned) else planned


def _are_needed(side: EventFrame, tables: TablePlan, number: int) -> bool:
    """Whether the columns of a plan of files are those that tasks need."""
    of_plan = tables.by[number], tables.payload[number], tables.tested[number]
    return of_plan == (side.by, side.payload, side.tested)


def packs_of_files(
    spark: SparkSession,
    side: EventFrame,
    given: FileSide,
    pack: PackTask,
    layout: WireLayout,
    columns: str,
    *,
    keeps_unmatched: bool,
    has_salt: bool,
) -> DataFrame:
    """Packs of a side, whose tasks read its files; its rows are counted on their way if it is observed."""
    deals = given.deals(parallelism(spark))
    task = FilePackTask(
        pack, given.files, given.tables, deals, layout, keeps_unmatched=keeps_unmatched,
        at_once=given.at_once, up_to=side.up_to, has_salt=has_salt,
        counts=side.observation is not None,
    )  # fmt: skip
    numbers = spark.range(0, len(deals), 1, len(deals))
    if side.observation is None:
        return numbers.mapInArrow(task, columns)
    packs = numbers.mapInArrow(task, f"{columns}, {COUNTS} array<double>")
    totals = [
        F.expr(
            f"max({COUNTS}[{i}])" if name == "rounded" else f"CAST(sum({COUNTS}[{i}]) AS BIGINT)"
        ).alias(name)
        for i, name in enumerate(names_of_counts())
    ]
    observed = packs.observe(side.observation, *totals)
    return observed.where(f"{COUNTS} IS NULL").drop(COUNTS)
