"""One pass over both sides: how many events, when, how long, how dense, and which rows are invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.invalid_rows import SideCounts, example_row
from coincide.engine.events.time_columns import INVALID_REASONS, LACKING
from coincide.engine.events.timestamps import describe_invalid
from coincide.model.errors import DataError
from spark_plugin.cluster.jobs import at_once
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames.columns import text
from spark_plugin.frames.estimates import about_bytes, row_bytes
from spark_plugin.frames.events import REASONS, EventFrame
from spark_plugin.frames.queries import note_query
from spark_plugin.tasks.samples import Sample

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
