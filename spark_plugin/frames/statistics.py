"""One pass over both sides: how many events, when, how long, how dense, and which rows are invalid.

A query makes it of any rows. Where sides only read files, threads of the driver look at these.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.invalid_rows import SideCounts, example_row
from coincide.engine.events.sides import read_side
from coincide.engine.events.time_columns import INVALID_REASONS, LACKING
from coincide.engine.events.timestamps import describe_invalid
from coincide.engine.files.footers import Footer
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, places_of
from coincide.model.errors import DataError
from coincide.model.key_hashes import hashes_of
from coincide.model.threads import all_cores
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames.columns import quoted, text, wire_bytes
from spark_plugin.frames.estimates import about_bytes, row_bytes
from spark_plugin.frames.events import REASONS, EventFrame
from spark_plugin.frames.plain_files import deals_of, files_of, rows_of, spark_schema
from spark_plugin.frames.queries import note_query
from spark_plugin.tasks.samples import Sample

_log = logging.getLogger("coincide")
_SAMPLE_TIERS = ((256, 1), (1 << 12, 16), (1 << 16, 128), (1 << 20, 1024))
"""Rows of a partition up to a position are sampled at this stride: few rows whole, many rows thinly."""
_LAST_STRIDE = 8192
_OF_EVENTS = (("low", "first"), ("high", "last"), ("rounded", "rounded"))
_LATE_PARTITION = 128
"""From this partition on strides are twice as long, from the doubled one on four times, and so on: so
that many partitions give little more of a sample than some, though no task knows how many there are."""
_DOUBLINGS = 18
_FIRST_DOUBLINGS = 4
"""Doublings of the stride of first rows, so that a late small partition still shows when its events are."""
_SPREAD = 13
"""Bits that numbers of samples have in common, at the end: those of the last stride."""
_ROWS_AT_ONCE = 1 << 20
"""Rows of files that a thread of the driver looks at at once, about."""
_ROW_BITS = 33
_ROW_MASK = (1 << _ROW_BITS) - 1
"""Bits of `monotonically_increasing_id` that count the rows of a partition; those above number it."""


@dataclass(frozen=True, eq=False)
class SideStatistics:
    """What is known of one side before slices are cut."""

    counts: SideCounts
    shortest: int
    longest: int
    midpoints: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray
    partitions: np.ndarray
    shapes: np.ndarray
    longest_of_group: np.ndarray
    row_bytes: float = 0.0
    own_bytes: int = 0
    first: int = 0
    last: int = 0

    @property
    def matchable(self) -> int:
        """Events that can match."""
        return self.counts.rows - self.counts.unmatchable - self.counts.dropped

    def sample(self, *, with_unmatchable: bool = False) -> Sample:
        """The sample that plans are made of, for this many rows."""
        rows = self.matchable + (self.counts.unmatchable if with_unmatchable else 0)
        return Sample(self.midpoints, self.weights, self.hashes, rows, self.shapes)


JobStatistics = tuple[SideStatistics | None, SideStatistics | None]
"""What is known of both sides: None for one that no job has read."""
NO_JOB: JobStatistics = (None, None)


def measure(
    left: EventFrame, right: EventFrame, is_one_stream: bool = False
) -> tuple[SideStatistics, SideStatistics]:
    """Statistics of both sides by one query that reads each row once, also of one stream."""
    if is_one_stream:  # its rows go to workers with the output columns of both roles
        left = right = replace(left, payload=left.identity, tested=[])
    found = measure_streams((left,) if is_one_stream else (left, right))
    return found[0], found[-1]


def measure_streams(streams: Sequence[EventFrame]) -> list[SideStatistics]:
    """The same of some streams."""
    return _of_files(streams) or _of_query(streams)


def _of_query(streams: Sequence[EventFrame]) -> list[SideStatistics]:
    # A group is a reason, or a sampled row with those it stands for: a bigint, in it the stream.
    count = len(streams)
    sizes = [about_bytes(events) for events in streams]
    lacked = [why for why in LACKING if any(why in events.lacks for events in streams)]
    wanted = _wanted(streams, lacked, has_own_bytes=any(own for _, own in sizes))
    # Grouped before the union, which would have every row written and read between two stages.
    grouped = at_once(
        streams[0].spark,
        [
            partial(_grouped, events, (side, count), wanted, lacked)
            for side, events in enumerate(streams)
        ],
    )
    note_query(f"{' and '.join(events.called for events in streams)} looked at")
    with spark_errors_as_ours():
        table = reduce(DataFrame.unionAll, grouped).toArrow()
    return [
        _of_side(table, (side, count), least_bytes, events.longest_match)
        for side, (events, (least_bytes, _)) in enumerate(zip(streams, sizes, strict=True))
    ]


def _wanted(
    streams: Sequence[EventFrame], lacked: Sequence[str], *, has_own_bytes: bool
) -> list[Column]:
    """The question about each group of rows; nothing that is the same of all."""
    wanted = ["count(1) AS rows", "min(length) AS shortest", "max(length) AS longest"]
    wanted += ["min(first) AS first", "max(last) AS last", "max(midpoint) AS midpoint"]
    wanted += ["max(shape) AS shape"]
    wanted += ["max(rounded) AS rounded"] if any(each.has_floats for each in streams) else []
    can_be_too_long = any(each.longest_match is not None for each in streams)
    wanted += ["count_if(is_too_long) AS too_long"] if can_be_too_long else []
    wanted += [f"count_if({why}) AS {why}" for why in lacked]
    wanted += ["max(hash) AS hash"] if streams[0].by else []
    wanted += ["max(bytes) AS bytes", "sum(own_bytes) AS own_bytes"] if has_own_bytes else []
    return list(map(F.expr, wanted))


def _grouped(
    events: EventFrame, side: tuple[int, int], wanted: Sequence[Column], lacked: Sequence[str]
) -> DataFrame:
    return _keyed(events, side, lacked).groupBy("code").agg(*wanted)


def _keyed(events: EventFrame, side: tuple[int, int], lacked: Sequence[str]) -> DataFrame:
    """Per row its group, its length, and if it is in the sample its midpoint and its keys' hash."""
    own_bytes = f"CAST({about_bytes(events)[1] or '0'} AS BIGINT) AS own_bytes"
    number = "monotonically_increasing_id() AS number"
    rounded = f"{events.rounding} AS rounded"
    lacks = (f"({events.lacks.get(why, 'false')}) AS {why}" for why in lacked)
    numbered = events.source.selectExpr(*events.columns, own_bytes, number, rounded, *lacks)
    beyond = f"{_beyond_sample('number')} AS beyond"
    rows = numbered.selectExpr("*", beyond, f"({events.is_ok}) AS is_ok")
    sampled = _spread("(number - beyond)")
    group = f"CASE WHEN is_ok THEN {sampled} + {len(REASONS)} ELSE {events.reason} END"
    return rows.selectExpr(
        f"({group}) * {side[1]} + {side[0]} AS code",
        # Rows that are not valid have groups of their own, where only rows and bytes count.
        "high - low AS length",
        f"(is_ok AND {events.is_too_long}) AS is_too_long",
        *(f"({events.is_lacking(why)}) AS {why}" for why in lacked),
        *(f"{name} AS {alias}" for name, alias in _OF_EVENTS),
        f"CASE WHEN is_ok AND beyond = 0 THEN {events.midpoint} END AS midpoint",
        f"CASE WHEN is_ok AND beyond = 0 THEN {events.shape} END AS shape",
        "CASE WHEN is_ok AND beyond = 0 THEN key_hash END AS hash",
        "CASE WHEN is_ok AND beyond = 0 THEN own_bytes END AS bytes",
        # It takes too long to tell of every row of nested columns.
        "own_bytes" if row_bytes(events) else "NULL AS own_bytes",
    )


def _spread(number: str) -> str:
    """A number, its higher bits in the lower ones, too: SQL."""
    # Spark's fastest aggregate finds a group by its last bits, which multiples of a stride have in common.
    return f"({number} ^ shiftright({number}, {_SPREAD}))"


def _gathered(numbers: np.ndarray) -> np.ndarray:
    """What `_spread` was given: int64 array, of numbers that are not negative."""
    for shift in (_SPREAD, 2 * _SPREAD, 4 * _SPREAD):  # those after it leave nothing of 63 bits
        numbers = numbers ^ (numbers >> shift)
    return numbers


def _beyond_sample(number: str) -> str:
    """How far a row is from the one in the sample that stands for it: SQL, 0 for that one itself."""
    # Strides are powers of two, later ones multiples of earlier: what stands for a row is in the sample.
    row, partition = f"({number} & {_ROW_MASK}L)", f"shiftright({number}, {_ROW_BITS})"
    tiers = [f"WHEN {row} < {limit} THEN {stride}L" for limit, stride in _SAMPLE_TIERS]
    # As it is rounded, of a power of two it may be one less: which, all rows of a partition agree on.
    late = f"CAST(log2({partition} div {_LATE_PARTITION // 2}) AS INT)"
    late = f"if({partition} < {_LATE_PARTITION}L, 0, {late})"
    most = f"if({row} < {_SAMPLE_TIERS[0][0]}, {_FIRST_DOUBLINGS}, {_DOUBLINGS})"
    stride = f"CASE {' '.join(tiers)} ELSE {_LAST_STRIDE}L END"
    doublings = f"least({late}, {most})"
    return f"({row} & (shiftleft({stride}, {doublings}) - 1L))"


def _of_side(
    table: pa.Table, side: tuple[int, int], least_bytes: int, longest_match: int | None
) -> SideStatistics:
    """Statistics of one side; each of its rows has `least_bytes` and some of its own."""
    data = {name: _numbers(table, name) for name in table.column_names}
    data["is_chosen"] = table.column("midpoint").is_valid().to_numpy()
    number, count = side
    mine = data["code"] % count == number
    data = {name: values[mine] for name, values in data.items()}
    group = data["code"] // count
    sampled = group >= len(REASONS)
    reasons = np.where(sampled, REASONS.index("ok"), group)
    rows = np.zeros(len(REASONS), np.int64)
    np.add.at(rows, reasons, data["rows"])
    of_reason = dict(zip(REASONS, rows.tolist(), strict=True))
    numbers = _gathered(group - len(REASONS))
    chosen, weights = _weighted(numbers, sampled, data["is_chosen"], data["rows"])
    order = np.argsort(data["midpoint"][chosen], kind="stable")
    chosen, weights = chosen[order], weights[order]
    own = (
        float(data["bytes"][chosen] @ weights / weights.sum())
        if "bytes" in data and chosen.size
        else 0
    )
    too_long = int(data["too_long"].sum()) if "too_long" in data else 0
    return SideStatistics(
        SideCounts(
            rows=sum(of_reason.values()),
            unmatchable=of_reason["null"],
            invalid={reason: of_reason[reason] for reason in INVALID_REASONS if of_reason[reason]},
            rounded=float(data["rounded"][sampled].max(initial=0.0)) if "rounded" in data else 0.0,
            too_long=too_long,
            longest_match=(longest_match or 0) if too_long else 0,
            lacking={
                why: count for why in LACKING if why in data and (count := int(data[why].sum()))
            },
        ),
        shortest=int(data["shortest"][sampled].min()) if sampled.any() else 0,
        longest=int(data["longest"][sampled].max(initial=0)),
        midpoints=data["midpoint"][chosen],
        weights=weights,
        hashes=data["hash"][chosen] if "hash" in data else np.zeros(chosen.size, np.int64),
        partitions=numbers[chosen] >> _ROW_BITS,
        shapes=data["shape"][chosen],
        longest_of_group=data["longest"][sampled],
        row_bytes=least_bytes + own,
        own_bytes=int(data["own_bytes"].sum()) if "own_bytes" in data else 0,
        first=int(data["first"][sampled].min()) if sampled.any() else 0,
        last=int(data["last"][sampled].max()) if sampled.any() else 0,
    )


def _weighted(
    numbers: np.ndarray, sampled: np.ndarray, is_chosen: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where the samples are, in order of their numbers, and the rows that each represents."""
    # Rows whose sample cannot match itself are those of the one before.
    places = np.flatnonzero(sampled)
    places = places[np.argsort(numbers[places])]
    found = is_chosen[places]
    if not found.any():
        return places[:0], np.empty(0)
    stands_for = np.maximum(np.cumsum(found) - 1, 0)
    return places[found], np.bincount(stands_for, rows[places].astype(np.float64))


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)


_MOST_READ = 1 << 25
"""Rows of all files together that the driver reads: of more, a query has many machines look."""
_SAMPLED = 1 << 13
"""Rows of a side of files that are in its sample, at most about."""
_WEIGHED, _WEIGHED_ROWS = 16, 1 << 10
"""Row groups, and rows of each, that tell how long texts are."""


def are_read_here(streams: Sequence[EventFrame]) -> bool:
    """Whether no query is needed: all streams only read files, of not too many rows."""
    if is_accelerated(streams[0].spark):
        return False
    # Keys are hashed in another way than by a query, so it is all streams or none.
    found = [files_of(events) for events in streams]
    return all(found) and sum(rows_of(each[1]) for each in found if each) <= _MOST_READ


def _of_files(streams: Sequence[EventFrame]) -> list[SideStatistics] | None:
    """The statistics of streams that are read here; None of others."""
    if not are_read_here(streams):
        return None
    spark, found = streams[0].spark, [files_of(events) for events in streams]
    _log.info(
        "correlate: the driver reads the times of %s", " and ".join(e.called for e in streams)
    )
    tasks = parallelism(spark)
    try:
        return [
            _of_side_of_files(events, files, footers, tasks)
            for events, (files, footers) in zip(streams, filter(None, found), strict=True)
        ]
    except pa.ArrowInvalid as closed:  # times that Spark's microseconds do not hold
        _log.debug("correlate: a query reads the times: %s", closed)
        return None


@dataclass(frozen=True, eq=False)
class _Run:
    """What some row groups of a partition hold: of events, arrays of one entry a sampled one."""

    counts: SideCounts
    ends: tuple[int, int, int, int] | None
    midpoints: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray
    partitions: np.ndarray
    shapes: np.ndarray
    longest: np.ndarray


def _of_side_of_files(
    events: EventFrame, files: PlannedFiles, footers: Sequence[Footer], tasks: int
) -> SideStatistics:
    """Statistics of one side, its times and keys read by threads."""
    names = list(dict.fromkeys([*events.times.columns, *events.by]))
    schema, stride = spark_schema(events, names), 1 + rows_of(footers) // _SAMPLED

    def looked_at(number: int, parts: Parts) -> _Run:
        table = files.read(parts, names, threads=False)
        return _looked_at(events, table.cast(schema), number, stride)

    # About as Spark deals row groups to partitions.
    runs = [
        (number, run)
        for number, parts in enumerate(deals_of(places_of(footers), tasks))
        for run in parts.in_runs(_ROWS_AT_ONCE)
    ]
    with ThreadPoolExecutor(all_cores()) as pool:
        found = list(pool.map(lambda run: looked_at(*run), runs))
    of = {
        each.name: np.concatenate(
            [np.empty(0, np.int64), *(getattr(run, each.name) for run in found)]
        )
        for each in fields(_Run)[2:]
    }
    order = np.argsort(of["midpoints"], kind="stable")
    counts = sum((run.counts for run in found), SideCounts())
    ends = [run.ends for run in found if run.ends is not None]
    shortest, longest, first, last = zip(*ends, strict=True) if ends else ((0,), (0,), (0,), (0,))
    alike, own = about_bytes(events)
    each_own = _own_bytes(events, files, footers) if own else 0.0
    return SideStatistics(
        counts,
        shortest=min(shortest),
        longest=max(longest),
        midpoints=of["midpoints"][order],
        weights=of["weights"][order].astype(np.float64),
        hashes=of["hashes"][order],
        partitions=of["partitions"][order],
        shapes=of["shapes"][order],
        longest_of_group=of["longest"],
        row_bytes=alike + each_own,
        own_bytes=int(each_own * counts.rows) if row_bytes(events) else 0,
        first=min(first),
        last=max(last),
    )


def _looked_at(events: EventFrame, table: pa.Table, number: int, stride: int) -> _Run:
    """What the rows of a run are; each sampled event stands for those up to the next."""
    side, counts = read_side(table, events.times, events.by, [], "drop", events.longest_match)
    able = np.arange(len(side)) if side.matchable is None else np.flatnonzero(side.matchable)
    starts = np.arange(0, able.size, stride)
    if not able.size:
        none = np.empty(0, np.int64)
        return _Run(counts, None, none, none, none, none, none, none)
    lengths, chosen = side.lengths[able], side.rows(able[starts])
    ends = lengths.min(), lengths.max(), side.min_time[able].min(), side.max_time[able].max()
    shortest, longest, first, last = map(int, ends)
    return _Run(
        counts,
        (shortest, longest, first, last),
        chosen.sort_keys,
        np.diff(starts, append=able.size),
        hashes_of(chosen.keys) if chosen.keys else np.zeros(starts.size, np.int64),
        np.full(starts.size, number),
        chosen.shapes,
        np.maximum.reduceat(lengths, starts),
    )


def _own_bytes(events: EventFrame, files: PlannedFiles, footers: Sequence[Footer]) -> float:
    """Bytes of a row in columns that differ in size from row to row, by some row groups."""
    wanted = (*events.by, *events.payload, *events.tested)
    names = [name for name in wanted if _has_own_size(events, name)]
    places = places_of(footers)
    if not len(places):
        return 0.0
    some = np.linspace(0, len(places) - 1, min(len(places), _WEIGHED)).astype(np.int64)
    read = list(dict.fromkeys(names))
    first = [
        next(files.batches(places.take(some[i : i + 1]), read, _WEIGHED_ROWS))
        for i in range(some.size)
    ]
    size = sum(table.column(name).nbytes for table in first for name in names)
    return size / sum(table.num_rows for table in first)


def _has_own_size(events: EventFrame, name: str) -> bool:
    return not isinstance(wire_bytes(quoted(name), events.kind_of(name)), int)


def refuse_invalid(sides: Sequence[EventFrame], statistics: Sequence[SideStatistics]) -> None:
    """Raise if rows are invalid, with the count and one example."""
    messages = []
    for events, found in zip(sides, statistics, strict=True):
        for reason, count in found.counts.invalid.items():
            rows = events.rows_of(reason).limit(1).collect()
            example = example_row(rows[0].asDict()) if rows else "none"
            messages.append(describe_invalid(events.times, reason, count, example))
    if messages:
        raise DataError(" ".join(messages))


def example(columns: Sequence[tuple[str, T.StructField]]) -> str:
    """SQL of a row's values with their names, as ``name=value, name=value``."""
    parts = [f"{text(field.name + '=')}, {_shown(value, field)}" for value, field in columns]
    between = text(", ")
    return f"concat({f', {between}, '.join(parts)})"


def _shown(value: str, field: T.StructField) -> str:
    # Bytes may be no text.
    plain = f"hex({value})" if isinstance(field.dataType, T.BinaryType) else value
    return f"coalesce(CAST({plain} AS STRING), 'None')"
