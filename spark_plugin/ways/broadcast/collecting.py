"""Both sides to the driver, where they are small: then no job reads them a second time."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import narrow_type
from coincide.engine.events.sides import Side, grouped_events, read_side
from coincide.engine.files.footers import Footer
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import places_of
from coincide.engine.join.timing import JoinSpec
from coincide.model.errors import SchemaError, argument
from coincide.model.options import Way
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.spark_errors import SPARK_ERRORS, spark_errors_as_ours
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_schema, field_of, quoted, wire_bytes, wire_kind
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_files import Files, files_of, rows_of
from spark_plugin.frames.queries import note_query
from spark_plugin.frames.statistics import SideStatistics
from spark_plugin.tasks.wire import CODED, TIME, UNMATCHED, WireLayout, on_the_wire

_log = logging.getLogger("coincide")
_ROWS_READ, _TEXTS_READ = 1 << 16, 1 << 10
"""Rows of files that are read at once: of values that are all as long, and of others."""
_STRANGE = "the driver cannot send on the column {!r}"
_TOO_LARGE = "there are more than {1:,} rows a side or {0:,} bytes"


@dataclass(frozen=True, eq=False)
class CollectedSide:
    """A side in memory."""

    events: Side
    statistics: SideStatistics


def collected_sides(
    sides: Sequence[EventFrame],
    spec: JoinSpec,
    most: tuple[int, int] | None,
    *,
    are_many: bool = False,
) -> list[CollectedSide] | None:
    """One side or both, read once; None if they have more bytes together, or one more rows, than `most`."""
    # `are_many`: Spark's estimate of their bytes is so large that rows are counted first.
    streams = sides[:1] if spec.is_one_stream else sides
    needed = [side.needed for side in streams]
    if spec.is_one_stream:
        needed = [list(dict.fromkeys(sides[0].needed + sides[-1].needed))]
    wanted = [
        Wanted(side.plain, names, side.called, side.is_computed, _files(side, names))
        for side, names in zip(streams, needed, strict=True)
    ]
    tables = _all_collected(wanted, most, are_many=are_many)
    if tables is None:
        return None
    of_sides = list(zip(sides, tables * 2, strict=False))
    return _read(of_sides, spec) if _can_travel(of_sides, wanted, most, "broadcast-both") else None


def collected_streams(
    streams: Sequence[EventFrame], most: tuple[int, int] | None
) -> list[CollectedSide] | None:
    """The same of streams other than two sides, which all tasks get."""
    wanted = [
        Wanted(each.plain, each.needed, each.called, each.is_computed, files_of(each))
        for each in streams
    ]
    tables = _all_collected(wanted, most)
    if tables is None:
        return None
    of_streams = list(zip(streams, tables, strict=True))
    if not _can_travel(of_streams, wanted, most, "broadcast"):
        return None
    found = []
    for stream, table in of_streams:
        events, counts = _events(stream, table)
        found.append(CollectedSide(_matchable(events), _statistics(events, counts, None, table)))
    return found


def _can_travel(
    of_sides: Sequence[tuple[EventFrame, pa.Table]],
    wanted: Sequence[Wanted],
    most: tuple[int, int] | None,
    way: Way,
) -> bool:
    """Whether the driver can send on all columns; an error where that was asked for."""
    strange = [name for side, table in of_sides for name in _strange(side, table)]
    if strange and most is None:
        raise SchemaError(
            f"{argument('way', way)} cannot take the column {strange[0]!r} along."
            f" Remove {argument('way')} or the column."
        )
    if strange:
        _log_unused_job(wanted, "collected", _STRANGE.format(strange[0]))
    return not strange


def _files(side: EventFrame, names: Sequence[str]) -> Files | None:
    """The files that hold some columns of a side, if it only reads such."""
    return files_of(replace(side, payload=list(names), tested=[]))


def _all_collected(
    wanted: Sequence[Wanted], most: tuple[int, int] | None, *, are_many: bool = False
) -> list[pa.Table] | None:
    """Columns of all rows, those of files read by this process; None as `_collected`."""
    rows = [rows_of(each.files[1]) for each in wanted if each.files is not None]
    if most is not None and any(each > most[1] for each in rows):
        _log_too_large(most)
        return None
    read = [None if each.files is None else read_rows(each, *each.files, most) for each in wanted]
    if most is not None and _are_too_large(_sizes(filter(None, read)), most):
        _log_too_large(most)
        return None
    others = [each for each, table in zip(wanted, read, strict=True) if table is None]
    collected = _collected(others, most, are_many=are_many) if others else []
    if collected is None:
        return None
    rest = iter(collected)
    tables = [next(rest) if table is None else table for table in read]
    if most is not None and _are_too_large(_sizes(tables), most):
        _log_too_large(most)
        return None
    return tables


def _sizes(tables: Iterable[pa.Table]) -> list[tuple[int, int]]:
    return [(table.nbytes, table.num_rows) for table in tables]


def _log_too_large(most: tuple[int, int]) -> None:
    _log.info("correlate: not collected: %s", _TOO_LARGE.format(*most))


def _collected(
    wanted: Sequence[Wanted], most: tuple[int, int] | None, *, are_many: bool
) -> list[pa.Table] | None:
    """Columns of all rows of DataFrames; None if all have more bytes than `most`, or one more rows."""
    if most is None:
        return _whole(wanted, None)
    uncertain = [
        each for each in wanted if must_be_counted(each) or (are_many and not each.is_computed)
    ]
    if _are_counted_too_large(uncertain, most, wanted):
        return None
    try:
        tables = _whole(wanted, most)
        if tables is None:
            if _are_counted_too_large(wanted, most, wanted):
                return None
            tables = _whole(wanted, None)
    except SPARK_ERRORS as error:
        # That of what Spark has taken for small: its driver has a bound of its own.
        if "maxResultSize" not in str(error):
            raise
        why = "spark.driver.maxResultSize limits what the driver takes"
        _log_unused_job(wanted, "collected", why)
        return None
    if tables is None or _are_too_large(_sizes(tables), most):
        _log_unused_job(wanted, "collected", _TOO_LARGE.format(*most))
        return None
    return tables


def _whole(wanted: Sequence[Wanted], most: tuple[int, int] | None) -> list[pa.Table] | None:
    """All rows, up to bounds of each partition if there are any; None if texts are withheld by these."""
    for each in wanted:
        note_query(f"{each.called} collected")
    jobs = [partial(collected_rows, each, most) for each in wanted]
    found = at_once(wanted[0].frame.sparkSession, jobs)
    tables = [table for table in found if table is not None]
    return tables if len(tables) == len(found) else None


def _are_counted_too_large(
    uncertain: Sequence[Wanted], most: tuple[int, int], wanted: Sequence[Wanted]
) -> bool:
    for each in uncertain:
        note_query(f"{each.called} counted")
    jobs = [partial(counted, each) for each in uncertain]
    if not jobs or not _are_too_large(at_once(uncertain[0].frame.sparkSession, jobs), most):
        return False
    _log_unused_job(wanted, "counted", _TOO_LARGE.format(*most))
    return True


def _are_too_large(sizes: Sequence[tuple[int, int]], most: tuple[int, int]) -> bool:
    """Whether all have more bytes than `most`, or one more rows."""
    return sum(size for size, _ in sizes) > most[0] or any(rows > most[1] for _, rows in sizes)


def _log_unused_job(wanted: Sequence[Wanted], done: str, why: str) -> None:
    _log.info(
        "correlate: %s %s %s without use: Spark estimates few bytes, but %s. Name a way to avoid"
        " this",
        " and ".join(each.called for each in wanted),
        "were" if len(wanted) > 1 else "was",
        done,
        why,
    )


def _strange(side: EventFrame, table: pa.Table) -> list[str]:
    """Columns that come in other types than those in which tasks would get them."""
    return [
        name
        for name, kind in _kinds(side)
        if not frames.crosses_as_int64(kind)
        and narrow_type(table.column(name).type) != wire_kind(kind)
    ]


def _kinds(side: EventFrame) -> list[tuple[str, T.DataType]]:
    names = (*side.by, *side.payload, *side.tested)
    return [(name, field_of(side.plain, side.called, name).dataType) for name in names]


def _read(of_sides: Sequence[tuple[EventFrame, pa.Table]], spec: JoinSpec) -> list[CollectedSide]:
    read = [_events(side, table, is_one_stream=spec.is_one_stream) for side, table in of_sides]
    groups: list[np.ndarray | None] = [None]
    if len(read) > 1:
        grouped = grouped_events(read[0][0], read[1][0])
        groups = [getattr(events, "group", None) for events in grouped]
    found = []
    for (side, table), (events, counts), group in zip(of_sides, read, groups, strict=True):
        statistics = _statistics(events, counts, group, table)
        is_whole = side.side == "left" and spec.keeps_unmatched
        found.append(CollectedSide(events if is_whole else _matchable(events), statistics))
    return found


def _events(
    side: EventFrame, table: pa.Table, *, is_one_stream: bool = False
) -> tuple[Side, SideCounts]:
    names = [*side.payload, *side.tested]
    if is_one_stream:
        numbers = pa.array(np.arange(table.num_rows))
        table = table.append_column(_NUMBER, numbers)
        names.append(_NUMBER)
    events, counts = read_side(table, side.times, side.by, names, "drop", side.longest_match)
    kinds = iter(_kinds(side))
    keys, columns = (
        [
            on_the_wire(name, column, wire_kind(kind))
            for column, (name, kind) in zip(each, kinds, strict=False)
        ]
        for each in (events.keys, events.payload[: len(side.payload) + len(side.tested)])
    )
    identity = events.payload[len(columns) :] * 2
    rest = iter(columns)
    payload, tested = (list(islice(rest, len(n))) for n in (side.payload, side.tested))
    events = replace(events, keys=keys, payload=payload, tested=tested, identity=identity)
    return events, counts


_NUMBER = "\0row"


def _matchable(events: Side) -> Side:
    if events.matchable is None:
        return events
    return replace(events.rows(np.flatnonzero(events.matchable)), matchable=None)


def _statistics(
    events: Side, counts: SideCounts, group: np.ndarray | None, table: pa.Table
) -> SideStatistics:
    rows = slice(None) if events.matchable is None else np.flatnonzero(events.matchable)
    midpoints, lengths, shapes = events.sort_keys[rows], events.lengths[rows], events.shapes[rows]
    first, last = events.min_time[rows], events.max_time[rows]
    hashes = np.zeros(midpoints.size, np.int64) if group is None else group[rows]
    if (midpoints[1:] < midpoints[:-1]).any():
        order = np.argsort(midpoints, kind="stable")
        midpoints, hashes, shapes = midpoints[order], hashes[order], shapes[order]
    has_events = bool(midpoints.size)
    return SideStatistics(
        counts,
        shortest=int(lengths.min()) if has_events else 0,
        longest=int(lengths.max(initial=0)),
        midpoints=midpoints,
        weights=np.ones(midpoints.size),
        hashes=hashes,
        partitions=np.zeros(midpoints.size, np.int64),
        shapes=shapes,
        longest_of_group=lengths,
        row_bytes=table.nbytes / max(1, table.num_rows),
        own_bytes=table.nbytes,
        first=int(first.min()) if has_events else 0,
        last=int(last.max()) if has_events else 0,
    )


def wire_table(events: Side, side: EventFrame, layout: WireLayout) -> pa.Table:
    """Events in the columns of the wire that their side has."""
    coded = events.shapes if side.side == "left" else -1 - events.shapes
    if events.matchable is not None:
        coded = np.where(events.matchable, coded, UNMATCHED)
    columns = {TIME: pa.array(events.max_time), CODED: pa.array(coded)}
    for names, arrays in (
        (layout.keys, events.keys),
        (layout.identity, events.identity),
        (layout.payload(side.side), events.payload),
        (layout.tested(side.side), events.tested),
    ):
        columns.update(zip(names, arrays, strict=True))
    return pa.table(columns)


# --- rows on their way to the driver ---
# A task is one partition, and what it finds is in memory as a whole, several times over. So each stops at a
# bound of its own, and what could come from any number of partitions is counted first.

_ROW_OF_PARTITION = "(monotonically_increasing_id() & ((1L << 33) - 1L))"


@dataclass(frozen=True, eq=False)
class Wanted:
    """Columns of a DataFrame."""

    frame: DataFrame
    names: list[str]
    called: str = ""
    is_computed: bool = False
    files: Files | None = None

    @property
    def widths(self) -> dict[str, int | str | None]:
        """Bytes of the values of each: alike, in SQL, or None of nested ones."""
        kinds = {name: field_of(self.frame, "", name).dataType for name in self.names}
        return {name: wire_bytes(quoted(name), kind) for name, kind in kinds.items()}


def must_be_counted(wanted: Wanted) -> bool:
    """Whether no bound on rows bounds what the driver takes: of nested columns no row tells its size."""
    return None in wanted.widths.values()


def counted(wanted: Wanted) -> tuple[int, int]:
    """Bytes and number of the rows, nested columns as long as their text would be. Runs a job."""
    nested = "coalesce(octet_length(to_json(struct({}))), 0)"
    widths = [
        str(nested.format(quoted(name)) if width is None else width)
        for name, width in wanted.widths.items()
    ]
    size = f"coalesce(sum({' + '.join(widths)}), 0)"
    with spark_errors_as_ours():
        (found,) = wanted.frame.selectExpr(f"{size} AS bytes", "count(1) AS rows").collect()
    return int(found["bytes"]), found["rows"]


def read_rows(
    wanted: Wanted, files: PlannedFiles, footers: Sequence[Footer], most: tuple[int, int] | None
) -> pa.Table | None:
    """All rows of files; some where they have more bytes than `most`. None: Spark must read them."""
    kinds = [field_of(wanted.frame, wanted.called, name) for name in wanted.names]
    try:
        schema = arrow_schema(T.StructType(kinds))
        tables, size = [schema.empty_table()], 0
        # Texts take any room, so few of them are read at once.
        are_alike = all(isinstance(width, int) for width in wanted.widths.values())
        rows = _ROWS_READ if are_alike else _TEXTS_READ
        for table in files.batches(places_of(footers), wanted.names, rows):
            tables.append(table.cast(schema))
            size += table.nbytes
            if most is not None and size > most[0]:
                break
    except (pa.ArrowException, SchemaError) as closed:
        _log.debug("correlate: Spark reads the files of %s: %s", wanted.called, closed)
        return None
    return pa.concat_tables(tables)


def collected_rows(wanted: Wanted, most: tuple[int, int] | None) -> pa.Table | None:
    """All rows; where there are more than `most`, some that are more. None if texts are too long."""
    frame = wanted.frame
    # Always a plan of its own: that of the user's DataFrame may have been run before, and Spark would take
    # again what it shuffled then, and the hour that it was.
    if most is None or sorted(frame.columns) != sorted(wanted.names):
        frame = frame.selectExpr(*map(quoted, wanted.names))
    texts = {name: width for name, width in wanted.widths.items() if isinstance(width, str)}
    if most is not None and wanted.is_computed:
        # Spark leaves out a limit that it knows to be kept, and with it the one partition.
        frame = frame.limit(most[1] + 1).coalesce(1)
    if most is not None:
        frame = frame.where(f"{_ROW_OF_PARTITION} <= {most[1]}L")
    if most is None or not texts:
        return _arrow(frame)
    withheld = max(wanted.names, key=len) + "_"  # which no other column is called
    own = " + ".join(texts.values())
    frame = frame.selectExpr(
        "*", f"{_ROW_OF_PARTITION} * ({own}) > {most[0]}L AS {quoted(withheld)}"
    )
    kept = {name: quoted(name) for name in frame.columns}
    for name in texts:
        kept[name] = f"if({quoted(withheld)}, NULL, {quoted(name)}) AS {quoted(name)}"
    table = _arrow(frame.selectExpr(*kept.values()))
    is_withheld = pc.any(table.column(withheld)).as_py()
    return None if is_withheld else table.drop_columns(withheld)


def _arrow(frame: DataFrame) -> pa.Table:
    with spark_errors_as_ours():
        return frame.toArrow()
