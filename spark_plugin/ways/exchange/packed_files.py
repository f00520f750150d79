"""Sides of an exchange that only read Parquet: tasks read their row groups, and pack them at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.engine.events.schemas import with_like_keys
from coincide.engine.files.footers import Footer
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Places, places_of, row_groups
from coincide.engine.join.join import TablePlan, plan_tables
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import CoincideError
from coincide.model.sides import LEFT, SIDES
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_files import Files, deals_of, files_of, rows_at_once, spark_schema
from spark_plugin.tasks.packed_files import COUNTS, FilePackTask, Staying, names_of_counts
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.slice_plan import CellPlan, SlicePlan
from spark_plugin.tasks.wire import WireLayout

_log = logging.getLogger("coincide")
_MOST_READERS, _FEW_OF_ALL = 3, 4
"""Several slices read a row group where it lies if they are three at most, and at most a fourth of all."""
_IN_ORDER = 0.4
"""Slices are cut by time if at least this share of rows is in row groups of about one slice each."""


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

    def staying(self, number: int, plan: SlicePlan | CellPlan) -> tuple[Places, Staying | None]:
        """The row groups that tasks pack, and those that few slices of a plan read where they lie."""
        places, times = places_of(self.footers), self.tables.times[number]
        if not isinstance(plan, SlicePlan) or times.beyond is None:
            return places, None
        if not times.model.shape_is_length:
            return places, None
        groups = row_groups(self.footers, times)
        is_bounded = groups.is_known & ~groups.is_open & groups.spans.are_timed
        ends = (
            np.where(is_bounded, 2 * each, 0) for each in (groups.spans.first, groups.spans.last)
        )
        first, last = plan.slices_between(*ends, is_left=number == LEFT)
        readers = last - first + 1
        are_few = (readers <= _MOST_READERS) & (readers * _FEW_OF_ALL <= plan.count)
        stays = is_bounded & ((readers == 1) | are_few)
        if not stays.any():
            return places, None
        own = np.flatnonzero(stays)
        staying = Staying(places.take(own), first[own], last[own])
        return places.take(np.flatnonzero(~stays)), staying


def are_in_order(sides: tuple[EventFrame, EventFrame], slices: int) -> bool:
    """Whether most rows of two sides of files are in row groups that would stay where they are."""
    found = [files_of(side) for side in sides]
    if any(
        given is None or side.times.beyond is None for side, given in zip(sides, found, strict=True)
    ):
        return False
    if not all(side.times.model.shape_is_length for side in sides):
        return False
    groups = [
        row_groups(footers, side.times)
        for side, (_, footers) in zip(sides, filter(None, found), strict=True)
    ]
    first, last, rows = (
        np.concatenate(each)
        for each in zip(
            *((g.likely.first, g.likely.last, g.places.rows) for g in groups), strict=True
        )
    )
    is_timed = first <= last
    if not is_timed.any():
        return False
    whole = int(last[is_timed].max()) - int(first[is_timed].min())
    is_narrow = is_timed & (2.0 * slices * (last - first) <= whole)
    return bool(rows[is_narrow].sum() >= _IN_ORDER * rows.sum())


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


def pack_task(
    spark: SparkSession,
    side: EventFrame,
    given: FileSide,
    pack: PackTask,
    layout: WireLayout,
    *,
    keeps_unmatched: bool,
    has_salt: bool,
) -> FilePackTask:
    """What reads the files of a side, and packs its events."""
    places, stays = places_of(given.footers), None
    # Rows without a time may go to any slice, and rows are counted where each is read once.
    if not keeps_unmatched and side.observation is None:
        places, stays = given.staying(SIDES.index(side.side), pack.plan)
    return FilePackTask(
        pack, given.files, given.tables, deals_of(places, parallelism(spark)), layout,
        keeps_unmatched=keeps_unmatched, at_once=given.at_once, up_to=side.up_to,
        has_salt=has_salt, counts=side.observation is not None, stays=stays,
    )  # fmt: skip


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
    """Packs of a side, whose tasks read its files."""
    task = pack_task(
        spark, side, given, pack, layout, keeps_unmatched=keeps_unmatched, has_salt=has_salt
    )
    return packs_by(task, side, columns)


def packs_by(task: FilePackTask, side: EventFrame, columns: str) -> DataFrame:
    """The packs of a task; rows are counted on their way if the side is observed."""
    deals = len(task.deals)
    numbers = side.spark.range(0, deals, 1, deals)
    if not task.counts:
        return numbers.mapInArrow(task, columns)
    packs = numbers.mapInArrow(task, f"{columns}, {COUNTS} array<double>")
    totals = [
        F.expr(
            f"max({COUNTS}[{i}])" if name == "rounded" else f"CAST(sum({COUNTS}[{i}]) AS BIGINT)"
        ).alias(name)
        for i, name in enumerate(names_of_counts())
    ]
    assert side.observation is not None
    observed = packs.observe(side.observation, *totals)
    return observed.where(f"{COUNTS} IS NULL").drop(COUNTS)
