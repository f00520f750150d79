"""A join of DataFrames by broadcast, planned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide.engine.events.sides import Side
from coincide.engine.join.spec import AnySpec
from coincide.model.bands import midpoint_reach
from coincide.model.condition import Window
from coincide.model.errors import argument
from coincide.model.options import SideName
from coincide.model.units import TIME_LIMIT
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import literal
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.queries import note_query, ship
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.wire_rows import wire_rows
from spark_plugin.tasks.broadcast import BroadcastTask, PartialTask, is_two_step, sorted_table
from spark_plugin.tasks.samples import shifted
from spark_plugin.tasks.wire import Shipment, WireLayout, read_side
from spark_plugin.ways.broadcast.collecting import wire_table
from spark_plugin.ways.join_sides import Job
from spark_plugin.ways.partial_results import PartialResult

_TOO_LARGE = "the side to broadcast", f"remove {argument('way')}"


@dataclass(frozen=True)
class BroadcastPlan:
    """A join in which one side goes to every worker."""

    small: SideName
    why: str
    events: Side | None = field(default=None, compare=False, repr=False)
    way: ClassVar[str] = "broadcast"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{self.small} to every worker, {self.why}"


def broadcast_join(job: Job, plan: BroadcastPlan) -> tuple[DataFrame, Shipment]:
    """The result in wire types, and what it needs. The small side is collected at once, no more."""
    spec, result, stage, options = job.spec, job.result, job.stage, job.options
    small, large = job.sides if plan.small == "left" else job.sides[::-1]
    layout, spark = result.layout, small.spark
    table = _small_table(small, layout.only(plan.small), plan, spec, stage)
    near = _near(table, small, large, layout.only(plan.small), spec)
    rows = wire_rows(
        large, layout.only(large.side), spec.keeps_unmatched, stage.raise_invalid, near=near
    )
    # Without events Spark would leave the second step out, and what tasks count with it.
    if not is_two_step(plan.small, spec) or table.num_rows == 0:
        shipment = ship(table, spark, *_TOO_LARGE)
        task = BroadcastTask(
            spec, layout, result.names, stage.metrics, side=plan.small, small=shipment,
            slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
        )  # fmt: skip
        return stage.run(rows, task, result.wire_schema), shipment
    parts = PartialResult(spec, result, "left_row")
    names = [*layout.keys, *layout.left]
    columns = [pa.array(np.arange(table.num_rows)), *map(table.column, names)]
    named = pa.table(columns, names=parts.events_schema.names)
    events = spark.createDataFrame(named, parts.events_schema)
    # Left output columns stay here.
    layout = replace(layout, left=())
    shipment = ship(table.select(layout.only("left").columns), spark, *_TOO_LARGE)
    task = PartialTask(
        parts.spec, layout, tuple(parts.found_schema.names), stage.metrics, side=plan.small, small=shipment,
        slice_rows=options.slice_rows, slice_bytes=options.slice_bytes,
    )  # fmt: skip
    found = stage.run(rows, task, parts.found_schema, is_joined=True)
    return parts.combined(found, events), shipment


def _small_table(
    small: EventFrame, layout: WireLayout, plan: BroadcastPlan, spec: AnySpec, stage: Stage
) -> pa.Table:
    """The small side on the wire, in order of time."""
    if plan.events is not None:
        table = wire_table(plan.events, small, layout)
    else:
        note_query(f"{small.called} collected")
        table = wire_rows(small, layout, spec.keeps_unmatched, stage.raise_invalid).toArrow()
    return sorted_table(table, layout, plan.small, small.times.model)


def _near(
    table: pa.Table, small: EventFrame, large: EventFrame, layout: WireLayout, spec: AnySpec
) -> Column | None:
    """Which valid rows of the large side are to be joined; None: all."""
    if (spec.keeps_unmatched and large.side == "left") or large.source.isStreaming:
        return None
    events = read_side(table, layout, small.side, small.times.model)
    return near_events(events, large, spec, is_left=small.side == "left")


def near_events(events: Side, large: EventFrame, spec: AnySpec, *, is_left: bool) -> Column | None:
    """Which valid rows of the large side can be near some events of the small one; None: any may be."""
    if is_accelerated(large.spark):  # it would run the test on the CPU, and all that is below it
        return None
    window = spec.widest_of_rows
    own, others = spec.largest_useful if is_left else spec.largest_useful[::-1]
    cells = near_cells(
        events.up_to(own), is_left, window, large.longest, are_uniform=spec.are_uniform
    )
    near = cells.has(large.spark)
    if large.times.model.shape_is_length and others < 2 * TIME_LIMIT:
        near &= F.expr(f"high - low <= {literal(others)}")
    return near


_MOST_CELLS = 1 << 22
"""Bits: half a megabyte."""
_NOT_HUGE = 1 << 47
"""Lengths up to this one, in ticks, cost midpoints two half ticks at most."""
_BEYOND = 2 * TIME_LIMIT
_FULL = 0.9
"""Where a larger share of cells is in use nearly every row passes, and few cells tell the others."""
_FEW_CELLS = 32
_SURE = 0.5
"""Where no larger share is in use, a margin as long as the longest row of the large side is taken."""
_WORD = 6


@dataclass(frozen=True, eq=False)
class NearCells:
    """Cells of time in which rows can begin that have matches."""

    width: int
    first: int
    words: np.ndarray
    margin: int
    key: str = "low"

    def has(self, spark: SparkSession) -> Column:
        """Whether a valid row of ``low`` and ``high`` can have a match: boolean."""
        if not self.words.size:
            return F.expr("low > high")  # with a plain false Spark leaves out what is counted, too
        cell = f"(shiftright({self.key}, {self.width}) - {literal(self.first)})"
        if self.words.size == 1:
            word = F.lit(int(self.words[0])).cast("bigint")
        else:
            # With a literal every plan that is shown or logged would hold all words.
            told = spark.createDataFrame(pa.table({"words": pa.array([self.words])}))
            word = F.get(told.scalar(), F.expr(f"CAST(shiftright({cell}, {_WORD}) AS INT)"))
        bit = F.expr(f"shiftleft(1L, CAST({cell} & 63L AS INT))")
        last = literal((self.words.size << _WORD) - 1)
        return (
            F.when(F.expr(f"high - low > {literal(self.margin)}"), F.lit(True))
            .when(F.expr(f"{cell} BETWEEN 0L AND {last}"), word.bitwiseAND(bit) != 0)
            .otherwise(F.lit(False))
        )


def near_cells(
    small: Side,
    is_left: bool,
    window: Window,
    longest: int | None = None,
    *,
    are_uniform: bool = True,
) -> NearCells:
    """Where rows of the large side are that can have matches."""
    rows = slice(None) if small.matchable is None else small.matchable
    high, lengths = small.max_time[rows], small.lengths[rows]
    if not high.size:
        return NearCells(0, 0, high, 0)
    window = window if is_left else window.mirrored()
    apart = midpoint_reach(window, _NOT_HUGE)
    if are_uniform and apart is not None and int(lengths.max()) <= _NOT_HUGE:
        share, cells = _cells_of_midpoints(2 * high - lengths, apart, _MOST_CELLS)
        return (
            cells
            if share <= _FULL
            else _cells_of_midpoints(2 * high - lengths, apart, _FEW_CELLS)[1]
        )
    # Where the support of a match has a point, in whole ticks.
    first, last = high - lengths + window.lo, high + window.hi
    reach = int(np.median(last - first))
    cells_upto = partial(_cells_of_supports, first, last, reach)
    choices = [] if longest is None else [cells_upto(longest, _MOST_CELLS)]
    if not choices or choices[0][0] > _SURE:  # declared to be safe, it may be far too long
        span = int(last.max()) - int(first.min())
        choices.append(cells_upto(_margin(lengths, reach, span), _MOST_CELLS))
    share, cells = min(choices, key=lambda choice: choice[0])
    return cells if share <= _FULL else cells_upto(cells.margin, _FEW_CELLS)[1]


def _cells_of_supports(
    first: np.ndarray, last: np.ndarray, reach: int, longest: int, most: int
) -> tuple[float, NearCells]:
    """Cells in which rows no longer than that begin whose matches have points from first to last."""
    width = _width(first, last, (reach + longest) // 4, most)
    margin = max(longest, 1 << width)
    share, start, words = _in_use((first - margin) >> width, last >> width)
    return share, NearCells(width, start, words, margin)


def _cells_of_midpoints(
    midpoints: np.ndarray, apart: tuple[int, int], most: int
) -> tuple[float, NearCells]:
    """Cells of doubled midpoints that are so far from those of events, and which share is in use."""
    # No row has a midpoint beyond these, and cells are told from each other by differences.
    first, last = (np.clip(shifted(midpoints, by), -_BEYOND, _BEYOND) for by in apart)
    width = _width(first, last, (apart[1] - apart[0]) // 16, most)
    share, start, words = _in_use(first >> width, last >> width)
    return share, NearCells(width, start, words, _NOT_HUGE, "(low + high)")


def _width(first: np.ndarray, last: np.ndarray, ticks: int, most: int) -> int:
    """Binary logarithm of a cell of about this many ticks, where there are about `most` cells at most."""
    width = max(ticks, 1).bit_length() - 1
    while (int(last.max()) - int(first.min())) >> width >= most:
        width += 1
    return width


def _in_use(begins: np.ndarray, ends: np.ndarray) -> tuple[float, int, np.ndarray]:
    """Cells of any of the ranges: their share, the first of all, and a bit for each."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], np.maximum.accumulate(ends[order])
    # Ranges that meet are one; between two of them cells are not in use.
    starts = np.concatenate([[0], np.flatnonzero(begins[1:] > ends[:-1] + 1) + 1])
    firsts, lasts = begins[starts], ends[np.append(starts[1:] - 1, ends.size - 1)]
    count = int(lasts[-1] - firsts[0]) + 1
    unused = np.append(firsts[1:] - lasts[:-1] - 1, -count % 64)
    runs = np.column_stack([lasts - firsts + 1, unused]).reshape(-1)
    is_near = np.repeat(np.arange(runs.size) % 2 == 0, runs)
    words = np.packbits(is_near, bitorder="little").view("<i8").astype(np.int64)
    return int(runs[::2].sum()) / count, int(firsts[0]), words


def _margin(lengths: np.ndarray, reach: int, span: int) -> int:
    """The length up to which rows are told apart, so that fewest pass if they are as long as events."""
    # With n events over a span about ``n * (length + reach) / span`` short rows pass, and all others.
    upto = np.sort(lengths)
    n = upto.size
    passing = n * (upto + float(reach)) / max(span, 1) - np.arange(1, n + 1) / n
    return int(upto[np.argmin(passing)])
