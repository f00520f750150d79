"""Planned joins of slices of files, in one process or elsewhere, or the reason why there is no plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import holds_codes, plain_schema, with_like_keys
from coincide.engine.events.sides import Side
from coincide.engine.events.spans import SpanColumns
from coincide.engine.files.common_schema import check_alike, check_present
from coincide.engine.files.finding import ColumnNames, Given, ParquetFiles, find_files
from coincide.engine.files.footers import Footer, file_schemas, read_footers
from coincide.engine.files.old_timestamps import holds_dates
from coincide.engine.files.slice_join import (
    DirectJoin,
    PlannedFiles,
    SliceRows,
    counted_slice,
    join_slice,
    read_slice,
)
from coincide.engine.files.slices import DirectPlan, Parts, RowGroups, direct_plan, row_groups
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import (
    TablePlan,
    check_preferred_in_tasks,
    plan_alone,
    plan_tables,
)
from coincide.engine.reports.emptiness import Evidence, NoPairs, evidence_of, explain_emptiness
from coincide.engine.reports.join_report import JoinSummary
from coincide.engine.reports.metrics import JoinTally
from coincide.engine.room import Expected, PairLimit
from coincide.model.errors import CoincideError, argument
from coincide.model.options import CorrelateOptions
from coincide.model.sides import LEFT, RIGHT, unit_option

MOST_READS = 4.0
"""Times that a row is read on average, at most: of more, Spark's exchange moves less."""
TIMES_WITH_STATISTICS = (
    'spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")'
)
"""Spark's default, INT96, has none."""
REMEDY = f'{TIMES_WITH_STATISTICS} and df.sort("min_time").write.parquet("ordered")'


_BEST_GROUP_ROWS = 100_000
_MANY = 16
"""Pairs for each row that a slice has read."""


class NotDirect(CoincideError, ValueError):
    """The files can be joined, but not this way; the text says why and what would help."""


def plan_files(
    left: Given,
    right: Given | None,
    arguments: JoinArguments,
    *,
    parallelism: int,
    compares_slices: bool = False,
    names: tuple[ColumnNames, ColumnNames] | None = None,
) -> DirectJoin:
    """Plan a join from the footers of its files."""
    choice, is_inner = arguments.choice, arguments.how == "inner"
    can_compare = compares_slices and is_inner and not choice.is_of_groups
    if choice.one_to_one is not None and (arguments.is_one_stream or not can_compare):
        raise NotDirect(
            f"{choice.one_to_one.said} compares pairs of different slices of files. Use a"
            " broadcast, an exchange, or a join of tables in memory."
        )
    arguments = settled(arguments, left, right)
    if right is not None and arguments.mirrored is not None:
        return plan_files(
            right, left, arguments.mirrored,
            parallelism=parallelism, compares_slices=compares_slices,
            names=None if names is None else names[::-1],
        )  # fmt: skip
    needed, times = arguments.columns, arguments.time_columns
    called = arguments.sides
    files = (find_files(called[0], left),) * 2
    if right is not None:
        files = files[0], find_files(called[1], right)
    if names is not None:
        files = replace(files[0], names=names[0]), replace(files[1], names=names[1])
    # Both sides of one stream are the same, footers too.
    given = list(zip(files, times, needed, strict=True))[: 1 if right is None else 2]
    footers = [read_footers(*side) for side in given]
    footers = [footers[0], footers[-1]]
    for side, read, columns in zip(files, footers, needed, strict=True):
        check_present(side.side, file_schemas(side, read), columns)
    own = [read[0].schema for read in footers]
    schemas = with_like_keys(own, arguments.keys, arguments.right_keys)
    tables = plan_tables(schemas[0], schemas[1], arguments)
    beside = plan_alone(schemas[0], schemas[1], arguments, tables)
    groups = [_row_groups(files[i], footers[i], tables, i) for i in (0, 1)]
    options = arguments.options
    options = replace(options, slice_rows=rows_of_slice(footers, options))
    planned = [
        PlannedFiles.of(side, schema, read)
        for side, schema, read in zip(files, schemas, footers, strict=True)
    ]
    plan = _ordered_plan(files[1], groups, tables, parallelism, options)
    join = DirectJoin(tables, (planned[0], planned[1]), plan)
    if beside is None:
        return join
    plan = _ordered_plan(files[0], groups[::-1], beside, parallelism, options)
    return replace(join, alone=DirectJoin(beside, (planned[1], planned[0]), plan))


def check_for_tasks(join: DirectJoin) -> None:
    """Refuse what tasks of Spark cannot compare: `check_preferred_in_tasks`."""
    check_preferred_in_tasks(join.tables.spec.choice, called(join)[RIGHT], join.schemas[RIGHT])


def settled(arguments: JoinArguments, left: Given, right: Given | None) -> JoinArguments:
    """The arguments for files of these columns: `JoinArguments.settled`. The first file of a side tells."""
    if not arguments.is_open:
        return arguments
    called = arguments.sides
    own = _schema_of(find_files(called[0], left))
    return arguments.settled(
        own, own if right is None else _schema_of(find_files(called[1], right))
    )


def _schema_of(files: ParquetFiles) -> pa.Schema:
    return plain_schema(read_footers(replace(files, paths=files.paths[:1]), ())[0].schema)


def _row_groups(
    files: ParquetFiles, footers: Sequence[Footer], tables: TablePlan, side: int
) -> RowGroups:
    """The row groups of a side, all its files being fit for the direct way."""
    names = tables.columns(side)
    check_alike(files.side, file_schemas(files, footers), names)
    for path, footer in zip(files.paths, footers, strict=True):
        check_readable(f"{files.side}: {path}", footer, names)
    useful = tables.spec.largest_useful[side]
    return timed_groups(files, footers, tables, side, useful)


def timed_groups(
    files: ParquetFiles, footers: Sequence[Footer], tables: TablePlan, side: int, useful: int
) -> RowGroups:
    """The row groups of a side; no event of a larger shape than `useful` matches."""
    if tables.times[side].beyond is None:
        times = tables.times[side]
        if isinstance(times, SpanColumns) and times.open_ends:
            raise NotDirect(
                f"{files.side}: the times of a row group do not bound its events, as some may go on."
                f" Leave out {argument('open_ends', True)} if none does."
            )
        widths = " and ".join(times.names[1:])
        option = unit_option(files.side).removesuffix("unit")
        raise NotDirect(
            f"{files.side}: the times of a row group do not bound its events, as {widths} of each"
            f" row counts too. Declare the longest length, {argument(f'{option}longest')}."
        )
    longest = {"longest": useful} if tables.spec.models[side].shape_is_length else {}
    groups = row_groups(footers, tables.times[side], **longest)
    _check_known(files, groups, tables, side)
    return groups


def rows_of_slice(footers: Sequence[Sequence[Footer]], options: CorrelateOptions) -> int:
    """How many rows a slice should hold, so that it holds no more bytes than it should."""
    every = [footer for side in footers for footer in side]
    rows, size = sum(int(f.rows.sum()) for f in every), sum(f.bytes for f in every)
    return max(1, min(options.slice_rows, int(options.slice_bytes * rows / max(size, 1.0))))


def _ordered_plan(
    right_files: ParquetFiles,
    groups: Sequence[RowGroups],
    tables: TablePlan,
    parallelism: int,
    options: CorrelateOptions,
) -> DirectPlan:
    """The slices, if rows need not be read too often; else why."""

    def planned(right: RowGroups) -> DirectPlan:
        return direct_plan(
            groups[0], right, tables.timing.widest,
            parallelism=parallelism, slices=options.slices, slice_rows=options.slice_rows,
        )  # fmt: skip

    plan = planned(groups[1])
    if plan.reads <= MOST_READS:
        return plan
    often = (
        f"each row would be read {plan.reads:.1f} times on average, and up to {MOST_READS:g}"
        " times pays"
    )
    if planned(replace(groups[1], spans=groups[1].likely)).reads <= MOST_READS:
        raise NotDirect(_wild(right_files, groups[1], often))
    raise NotDirect(_disorder(plan, groups, often))


def check_readable(file: str, footer: Footer, names: Sequence[str]) -> None:
    """Refuse what PyArrow does not read, and old times, whose meaning only Spark knows."""
    old = sorted(footer.int96.intersection(names))
    if old:
        raise NotDirect(
            f"{file} has {' and '.join(old)} as INT96, Spark's default for timestamps, which has"
            f" no statistics. Write it again after {TIMES_WITH_STATISTICS}"
        )
    coded = sorted({name for name in names if holds_codes(footer.schema.field(name).type)})
    if coded:
        raise NotDirect(
            f"{file} has dictionaries within {' and '.join(coded)}, which PyArrow does not read."
            " Cast nested columns to plain values, and write it again."
        )
    dated = sorted({name for name in names if holds_dates(footer.schema.field(name).type)})
    if footer.old_calendar and dated:
        raise NotDirect(
            f"{file} has {' and '.join(dated)} in Spark's old calendar, which only Spark reads"
            " right. Write it again with spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED."
        )


def _check_known(files: ParquetFiles, groups: RowGroups, tables: TablePlan, side: int) -> None:
    unknown = np.flatnonzero(~groups.is_known)
    if unknown.size:
        scales = tables.times[side].scales
        names = " and ".join(dict.fromkeys(scale.column.name for scale in scales))
        path = files.paths[groups.places.file[unknown[0]]]
        raise NotDirect(
            f"{files.side}: {path} has no statistics of {names}. Write it with statistics, and"
            " times as timestamps in microseconds or integers."
        )


def _wild(files: ParquetFiles, groups: RowGroups, often: str) -> str:
    """Why and how often rows are read where single times out of range hide when row groups are."""
    # Those of the right side: slices see for themselves when their left rows are.
    wild = np.flatnonzero(groups.is_open)
    path = files.paths[groups.places.file[wild[0]]]
    return (
        f"{files.side}: {wild.size:,} of {len(groups.places):,} row groups hold NaN, infinity or"
        f" times that reach 2^61 ticks (found the first in {path}). The times of their events are"
        f" unknown, so {often}. Correct such times, or remove these rows from the files."
    )


def _disorder(plan: DirectPlan, groups: Sequence[RowGroups], often: str) -> str:
    sizes = np.concatenate([side.places.rows for side in groups])
    largest, slice_rows = int(sizes.max()), max(1, int(sizes.sum()) // len(plan.slices))
    if largest > slice_rows:
        return (
            f"row groups hold up to {largest:,} rows where a slice has about {slice_rows:,}, and"
            f" are read whole, so {often}. Write the files once in order of time and in smaller"
            f" row groups, for example by {_smaller_groups(slice_rows)}. They are then joined"
            " without an exchange."
        )
    return (
        f"the files are not in order of time, so {often}. Order them once, for example by"
        f" {REMEDY}, and they are joined without an exchange."
    )


def _smaller_groups(slice_rows: int) -> str:
    """How to write row groups of which a slice holds several."""
    size = max(1, min(_BEST_GROUP_ROWS, slice_rows // 4))
    return f'pq.write_table(table.sort_by("min_time"), "ordered.parquet", row_group_size={size})'


_MOST_ROWS = 2_000_000
"""Rows of a side to look at, about: whole row groups, spread evenly over its files."""


def direct_summary(join: DirectJoin, tally: JoinTally) -> JoinSummary:
    """What a join by the direct way did, and, if it found nothing, why."""
    tables = join.tables
    left, right = tables.as_asked((tally.left, tally.right))
    own, other = tables.as_asked(called(join))
    return JoinSummary(
        left, None if tables.spec.is_one_stream else right, tally.counters, None, "files",
        tables.tick, _no_pairs(join, tally), sides=(own, other),
    )  # fmt: skip


def called(join: DirectJoin) -> tuple[str, str]:
    """What messages call the sides."""
    left, right = (each.files.side for each in join.files)
    return left, right


def _no_pairs(join: DirectJoin, tally: JoinTally) -> NoPairs | None:
    """Why a join found nothing; None if it found something, or if the files cannot be read again."""
    if tally.counters.pairs:
        return None
    try:
        sides = [_sampled(join, side) for side in (LEFT, RIGHT)]
    except (CoincideError, OSError):
        return None
    both = [
        (events, replace(found, events=counts.rows - counts.unmatchable - counts.dropped))
        for (events, found), counts in zip(sides, (tally.left, tally.right), strict=True)
    ]
    is_all = all(found.is_all for _, found in both)
    (left, own), (right, others) = join.tables.as_asked(both)
    tables, keys = join.tables.explained, None
    if not tables.spec.is_one_stream:
        keys = tables.key_overlap(left, right, is_all)
    nearest = tables.nearest(left, right, is_all)
    return explain_emptiness(own, others, tables.spec, keys, nearest)


def _sampled(join: DirectJoin, side: int) -> tuple[Side, Evidence]:
    """Events of row groups of the left (0) or right (1) files, and what is known of all."""
    tables = replace(join.tables, invalid="drop", payload=([], []), tested=([], []))
    places = (join.plan.slices.left, join.plan.right)[side]
    every = max(1, -(-int(places.rows.sum()) // _MOST_ROWS))
    # The last one too: files mostly lie in time order, so that first and last times are those of all rows.
    spread = np.union1d(np.arange(0, len(places), every), max(len(places) - 1, 0))
    parts = Parts.whole(places.take(spread[: len(places)]))
    events, _ = tables.read(side, join.files[side].read(parts, tables.columns(side), threads=True))
    found = evidence_of(events, tables.times[side].scales[0])
    return events, replace(found, is_all=every == 1)


class LocalFilesJoin:
    """A join of Parquet files, batch by batch, in memory bounded by ``options.slice_rows``.

    Used like `coincide.engine.join.join.TableJoin`. Two slices are in memory at a time.
    """

    def __init__(
        self,
        left: Given,
        right: Given | None,
        arguments: JoinArguments,
        say: Callable[[int, int], None] = lambda number, count: None,
    ) -> None:
        join = plan_files(left, right, arguments, parallelism=1)
        self._join = replace(join, tables=join.tables.by_rows.in_order)
        self._say = say
        self.schema: pa.Schema = self._join.tables.schema
        self.plan = self._join.plan
        self.limit = PairLimit(arguments.options.max_pairs)
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` is there when the last batch was taken."""
        started = time.perf_counter()
        tally = JoinTally()
        for number, (join, rows) in enumerate(self._slices()):
            emission = join_slice(join, rows)
            if join is self._join and not self.limit.is_all:
                self._expect(number, rows, emission.expected)
            yield from emission
            if join is self._join:
                tally += JoinTally(*rows.counts, emission.counters)
        seconds = time.perf_counter() - started
        self.summary = replace(direct_summary(self._join, tally), seconds=seconds)

    def _expect(self, number: int, rows: SliceRows, expected: Expected | None) -> None:
        """Count the pairs of a slice, and if they are many those of all that follow."""
        others = range(number + 1, self._join.count)
        self.limit.expect(expected, is_last=not others)
        if expected is None or expected.pairs <= _MANY * (len(rows.left) + len(rows.right)):
            return
        # They take far longer to be written than all slices to be read and counted.
        for each in others:
            share = counted_slice(self._join, each) / expected.pairs
            part = (round(of * share) for of in (expected.pairs, expected.rows, expected.size))
            self.limit.expect(Expected(*part), is_last=each == others[-1])

    def _slices(self) -> Iterator[tuple[DirectJoin, SliceRows]]:
        joins = [join for join in (self._join, self._join.alone) if join is not None]
        slices = [(join, number) for join in joins for number in range(join.count)]
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(read_slice, *slices[0], True)
            for number, (join, _) in enumerate(slices, 1):
                rows = coming.result()
                if number < len(slices):
                    coming = pool.submit(read_slice, *slices[number], True)
                self._say(number, len(slices))
                yield join, rows
