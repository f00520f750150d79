"""What statistics tell of times bounds every row, however times are stored, and the join finds all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.sides import read_side
from coincide.engine.events.time_columns import TimeColumn, resolve_tick, scale_of
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.files import planning
from coincide.engine.files.finding import find_files
from coincide.engine.files.footers import (
    ONLY_NULLS,
    Stored,
    chunk_range,
    range_ticks,
    ranges,
    read_footers,
)
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import read_slice
from coincide.engine.files.slices import RowGroups, row_groups
from coincide.model.errors import DataError
from tests.helpers.joins import local_files_join, plan_files, plan_tables, table_join

pytestmark = pytest.mark.usefixtures("any_order")

TIMES = ("min_time", "max_time")
GROUP = 5
EXACT = TimingCondition(within(0, 0), 1.0)
NEAR = TimingCondition(within(-1, 1), 1.0)


def side_table(kind: pa.DataType, low: Sequence[Any], high: Sequence[Any]) -> pa.Table:
    columns = {name: _as(kind, values) for name, values in zip(TIMES, (low, high), strict=True)}
    return pa.table({"id": pa.array(range(len(low))), **columns})


def _as(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array(values, pa.float64()).cast(kind)
    return pa.array(values, pa.int64()).cast(kind)


def planned(path: Path, unit: str | None) -> tuple[RowGroups, TimestampColumns]:
    files = find_files("left", path)
    footers = read_footers(files, TIMES)
    schema = footers[0].schema
    options = CorrelateOptions(unit=unit)
    plan = plan_tables(schema, schema, EXACT, options=options)
    return row_groups(footers, plan.times[0]), plan.times[0]


def assert_bounded(path: Path, unit: str | None) -> None:
    """What the footer tells of each row group is from its first event to its last one."""
    groups, times = planned(path, unit)
    assert groups.is_known.all()
    assert not groups.is_open.any()
    for number in range(len(groups.places)):
        table = pq.ParquetFile(path).read_row_group(int(groups.places.index[number]))
        events, counts = read_side(table, times, [], [], "raise")
        assert not counts.unmatchable
        first, last = (int(end[number]) for end in (groups.spans.first, groups.spans.last))
        assert (first, last) == (events.min_time.min(), events.max_time.max())


def joined(
    left: Path, right: Path, condition: TimingCondition = EXACT, **options: Any
) -> tuple[list[tuple[int, int]], SideCounts, SideCounts]:
    """Pairs and counts of the direct way, compared with those in memory."""
    settings = CorrelateOptions(slices=4, **options)
    direct = local_files_join(left, right, condition, options=settings)
    found = pa.Table.from_batches(direct.batches(), direct.schema)
    whole = table_join(pq.read_table(left), pq.read_table(right), condition, options=settings)
    want = pa.Table.from_batches(whole.batches(), whole.schema)
    pairs = [sorted(zip(*(t[n].to_pylist() for n in t.column_names))) for t in (found, want)]  # noqa: B905
    assert pairs[0] == pairs[1]
    assert (direct.summary.left, direct.summary.right) == (whole.summary.left, whole.summary.right)
    return pairs[0], direct.summary.left, direct.summary.right


def _spread(least: int, most: int, seed: int = 0) -> list[int]:
    """Values of a range: its ends, what surprises a signed reader, and some between; in order."""
    random = np.random.default_rng(seed)
    edges = [0, -1, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, least, most]
    chosen = random.integers(least, most, 20, np.int64, endpoint=True).tolist()
    return sorted(v for v in {*edges, *chosen} if least <= v <= most)


INTEGERS = {
    pa.int8(): (-(2**7), 2**7 - 1), pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (1 - 2**61, 2**61 - 1),
    pa.uint8(): (0, 2**8 - 1), pa.uint16(): (0, 2**16 - 1), pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**61 - 1),
}  # fmt: skip
ZONES = (None, "UTC", "Asia/Tokyo")
FLOATS = [pa.float32(), pa.float64()]
WRITERS: dict[str, dict[str, Any]] = {
    "1.0": {"version": "1.0"},
    "2.4": {"version": "2.4"},
    "2.6": {"version": "2.6"},
    "no schema": {"store_schema": False},
    "milliseconds": {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
    "microseconds": {"coerce_timestamps": "us", "allow_truncated_timestamps": True},
    "pages": {"data_page_version": "2.0", "write_page_index": True},
}


STORED = [
    *((n, writer) for n in (*INTEGERS, *FLOATS) for writer in ("1.0", "2.6", "no schema", "pages")),
    *(
        (pa.timestamp(unit, ZONES[(i + j) % 3]), writer)
        for i, unit in enumerate(("s", "ms", "us", "ns"))
        for j, writer in enumerate(WRITERS)
    ),
]
"""What no writer but some treat differently, and any two of a unit, a zone and a writer."""


@pytest.mark.parametrize(("kind", "writer"), STORED, ids=str)
def test_every_stored_time(tmp_path: Path, kind: pa.DataType, writer: str) -> None:
    path, unit = tmp_path / "a.parquet", None
    if kind in INTEGERS:
        values: list[Any] = _spread(*INTEGERS[kind])
    elif kind in FLOATS:
        unit = "s"
        values = [-3.5e6, -1.0, -0.0, 0.0, 0.1234567, 1 / 3, 16_777_217.0, 1.7e9 + 1 / 7]
    else:
        step = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        # Whole microseconds, which is what timestamps are counted in.
        values = [v * max(1, step // 10**6) for v in _spread(-(10**9), 2 * 10**9)]
    pq.write_table(side_table(kind, values, values), path, row_group_size=GROUP, **WRITERS[writer])
    assert_bounded(path, unit)
    pairs, _, _ = joined(path, path, unit=unit)
    assert {(i, i) for i in range(len(values))} <= set(pairs)


def test_nanoseconds_that_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = _spread(1 - 2**61, 2**61 - 1)
    pq.write_table(side_table(pa.timestamp("ns"), values, values), path, row_group_size=GROUP)
    assert_bounded(path, "ns")
    assert len(joined(path, path, unit="ns")[0]) == len(values)


def test_large_unsigned_numbers(tmp_path: Path) -> None:
    """Above 2^31 an unsigned number is stored as a negative one."""
    path, values = tmp_path / "a.parquet", range(3_000_000_000, 3_000_001_000)
    pq.write_table(side_table(pa.uint32(), values, values), path, row_group_size=100)
    assert len(joined(path, path)[0]) == 1000


def test_floats_beyond_2_to_the_53_ticks(tmp_path: Path) -> None:
    """Rows and bounds are rounded alike, so that ties stay ties."""
    random = np.random.default_rng(1)
    values = np.sort(random.uniform(1e7, 2e9, 250)).tolist()
    path = tmp_path / "a.parquet"
    pq.write_table(side_table(pa.float64(), values, values), path, row_group_size=1)
    assert_bounded(path, "s")
    assert len(joined(path, path, unit="s")[0]) == 250


@given(
    st.lists(st.floats(allow_nan=False), min_size=1, max_size=9),
    st.sampled_from(["ns", "us", "ms", "s", "min", "h", "d"]),
)
def test_the_range_of_floats_is_that_of_their_ticks(values: list[float], unit: str) -> None:
    column = TimeColumn("left", "min_time", "float")
    options = CorrelateOptions(unit=unit)
    scale = scale_of(column, resolve_tick([column], options), options)
    table = pa.table({"min_time": values, "max_time": values})
    events, counts = read_side(table, IntervalColumns((scale, scale)), [], [], "drop")
    (low,), (high,) = range_ticks(Stored("float"), [(min(values), max(values))], scale)
    if len(events):
        assert low <= events.min_time.min() <= events.max_time.max() <= high
    if not counts.dropped:
        assert (low, high) == (events.min_time.min(), events.max_time.max())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("stored", "written"),
    [
        *(("TIMESTAMP_MICROS", number) for number in (
            "cast(id * 1000003 - 2000000000 as int)", "cast(id - 40 as tinyint)",
            "cast(id * 700 - 30000 as smallint)", "id * 1000000007000 - 5",
        )),
        *((f"TIMESTAMP_{unit}", instant) for unit in ("MICROS", "MILLIS") for instant in (
            "timestamp_micros(id * 77 - 300)", "timestamp_millis(id * 77 - 300)",
        )),
        ("TIMESTAMP_MILLIS", "cast(timestamp_micros(id * 99 - 700) as timestamp_ntz)"),
    ],
)  # fmt: skip
def test_what_spark_writes(spark: SparkSession, tmp_path: Path, stored: str, written: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", stored)
    frame = spark.range(0, 80, 1, 1).selectExpr(
        "id", f"{written} AS min_time", f"{written} AS max_time"
    )
    frame.write.option("maxRecordsPerFile", 20).parquet(f"file://{tmp_path}/side")
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    paths = sorted((tmp_path / "side").glob("*.parquet"))
    assert len(paths) == 4
    for path in paths:
        assert_bounded(path, None)
    pairs, _, _ = joined(tmp_path / "side", tmp_path / "side")
    assert {(i, i) for i in range(80)} <= set(pairs)


# Statistics that tell little, or nothing


class Chunk:
    """A column chunk as a writer of other habits leaves it."""

    is_stats_set = True

    def __init__(self, low: Any, high: Any, nulls: int | None = 0, values: int = 3) -> None:
        self.statistics, self.num_values = self, values
        self.has_min_max, self.min_raw, self.max_raw = low is not None, low, high
        self.has_null_count, self.null_count = nulls is not None, nulls


UINT8 = Stored("integer", 0, 255)
UINT32 = Stored("integer", 0, 2**32 - 1)
FLOAT = Stored("float")
NAN = math.nan


@pytest.mark.parametrize(
    ("stored", "chunk", "range_"),
    [
        (UINT32, Chunk(5, -1), (5, 2**32 - 1)),
        # In signed order, as if the writer had not known better.
        (UINT32, Chunk(-(2**31), 2**31 - 1), (None, None)),
        (UINT8, Chunk(5, -1), (5, None)),
        (UINT8, Chunk(5, 255), (5, 255)),
        (Stored("integer", -128, 127), Chunk(-129, 4), (None, 4)),
        (FLOAT, Chunk(NAN, 1.0), (None, 1.0)),
        (FLOAT, Chunk(0.0, -0.0), (0.0, -0.0)),
        (FLOAT, Chunk(-math.inf, math.inf), (-math.inf, math.inf)),
        (FLOAT, Chunk(None, None, 0), (None, None)),
        (FLOAT, Chunk(None, None, None), None),
        (FLOAT, Chunk(None, None, 3), ONLY_NULLS),
        (UINT32, Chunk(None, None, 0), None),
        (UINT32, Chunk(None, None, 3), ONLY_NULLS),
    ],
)
def test_ranges_by_other_writers(stored: Stored, chunk: Chunk, range_: Any) -> None:
    assert chunk_range(chunk, stored) == range_  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2], pa.float64()).cast(pa.float16()),
        pa.array([1, 2], pa.int64()).cast(pa.decimal128(19)),
        pa.array([1, 2], pa.int32()).cast(pa.decimal128(10)).cast(pa.decimal128(9)),
        pa.array([1, 2], pa.time64("us")), pa.array([None, None]), pa.array([b"1", b"2"]),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_statistics_that_are_no_times_tell_nothing(tmp_path: Path, values: pa.Array) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": values}), path, store_decimal_as_integer=True)
    assert ranges(pq.read_metadata(path), "a") == (None, [None])


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_are_told_as_their_bytes(tmp_path: Path, kind: pa.DataType) -> None:
    # UTF-8 is in order of characters; UTF-16, by which Java compares, is not.
    values = pa.array(["\ufb01", "z", "\U0001d11e"]).cast(kind)
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet")
    stored, found = ranges(pq.read_metadata(tmp_path / "a.parquet"), "a")
    assert stored == Stored("text")
    assert found == [(b"z", "\U0001d11e".encode())]


def test_a_name_that_two_columns_share_tells_nothing(tmp_path: Path) -> None:
    table = pa.table({"a": [{"b": 1}], "a.b": [2]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert ranges(pq.read_metadata(tmp_path / "a.parquet"), "a.b") == (None, [None])


# Times out of range, NaN and infinity: dropped and counted, or refused, whatever the side

INF = math.inf
WILD = {
    "late": (pa.int64(), 2**63 - 1, None),
    "early": (pa.int64(), -(2**63), None),
    "first too large": (pa.int64(), 2**61, None),
    "last too early": (pa.int64(), -(2**61), None),
    "largest in range": (pa.int64(), 2**61 - 1, None),
    "year 9999 in ns": (pa.timestamp("us"), 253_402_300_799_000_000, "ns"),
    "NaN": (pa.float64(), NAN, "s"),
    "infinity": (pa.float64(), INF, "s"),
    "minus infinity": (pa.float64(), -INF, "s"),
    "huge": (pa.float64(), 1e300, "s"),
}


PLACES = ("one", "a whole row group", "all")
WILD_CASES = [
    (wild, column, PLACES[(i + j + k) % 3], side)
    for i, wild in enumerate(WILD)
    for j, column in enumerate(("min_time", "max_time", "both"))
    for k, side in enumerate(("left", "right"))
]
"""Any two of a kind of time, a column, a place and a side."""


@pytest.mark.parametrize(("wild", "column", "place", "side"), WILD_CASES)
def test_wild_times(tmp_path: Path, wild: str, column: str, place: str, side: str) -> None:
    kind, value, unit = WILD[wild]
    good = [100.0 * i for i in range(40)] if kind == pa.float64() else list(range(0, 4000, 100))
    rows = {"one": [12], "a whole row group": range(10, 15), "all": range(40)}[place]
    low, high = list(good), list(good)
    for row in rows:
        if column != "max_time":
            low[row] = value
        if column != "min_time":
            high[row] = value
    paths = {name: tmp_path / f"{name}.parquet" for name in ("left", "right")}
    for name, path in paths.items():
        times = (low, high) if name == side else (good, good)
        pq.write_table(side_table(kind, *times), path, row_group_size=GROUP)
    step = "1ns" if unit in ("s", "ns") else "1us"
    near = NEAR if pa.types.is_integer(kind) else TimingCondition(within(f"-{step}", step), 1.0)
    pairs, left, right = joined(**paths, condition=near, unit=unit, invalid="drop")
    counts = left if side == "left" else right
    valid = wild == "largest in range" and column != "min_time"
    assert counts.dropped == (0 if valid else len(rows))
    assert len(pairs) == 40 - len(rows)
    if not valid:
        with pytest.raises(DataError, match=f"{side}: "):
            joined(**paths, condition=near, unit=unit)


def ordered(path: Path, count: int, wild: dict[int, int], column: str = "max_time") -> Path:
    """Row groups of 10 rows in order of time; some hold a wild time."""
    times = np.arange(count * 10) * 10
    table = {"id": times, "min_time": times, "max_time": times + 5}
    for group, value in wild.items():
        table[column] = table[column].copy()
        table[column][group * 10 + 5] = value
    pq.write_table(pa.table(table), path, row_group_size=10)
    return path


@pytest.mark.parametrize(
    ("column", "value"), [("max_time", 2**63 - 1), ("min_time", -(2**63)), ("max_time", 2**61)]
)
def test_a_wild_time_in_each_left_row_group_costs_no_reading(
    tmp_path: Path, column: str, value: int
) -> None:
    wild = dict.fromkeys(range(100), value)
    left = ordered(tmp_path / "left.parquet", 100, wild, column)
    right = ordered(tmp_path / "right.parquet", 100, {})
    options = CorrelateOptions(slices=10, invalid="drop")
    job = local_files_join(left, right, TimingCondition(within(0, 50), 0.5), options=options)
    assert len(job.plan.slices) == 10
    assert job.plan.reads < 1.3


def test_some_wild_times_on_the_right_cost_some_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = ordered(tmp_path / "left.parquet", 100, {})
    condition, options = TimingCondition(within(0, 50), 1e-12), CorrelateOptions(slices=20)
    right = ordered(tmp_path / "right.parquet", 100, {3: 2**63 - 1, 50: 2**63 - 1})
    plan = plan_files(left, right, condition, parallelism=1, options=options).plan
    assert 1.1 < plan.reads < 1.5
    right = ordered(tmp_path / "right.parquet", 100, dict.fromkeys(range(100), 2**63 - 1))
    monkeypatch.setattr(planning, "MOST_READS", 4.0)
    with pytest.raises(
        NotDirect,
        match=r"right: 100 of 100 row groups hold NaN, .* read \d+\.\d times .*Correct such",
    ):
        plan_files(left, right, condition, parallelism=1, options=options)


@pytest.mark.parametrize("side", ["left", "right"])
def test_events_too_long_for_a_pair_cost_no_reading(tmp_path: Path, side: str) -> None:
    """Neither by what footers tell of their row groups, nor by what the rows themselves do."""
    wild = dict.fromkeys(range(100), 10**6)
    left, right = (
        ordered(tmp_path / f"{name}.parquet", 100, wild if name == side else {})
        for name in ("left", "right")
    )
    condition, options = TimingCondition(within(0, 50), 0.5), CorrelateOptions(slices=20)
    job = plan_files(left, right, condition, parallelism=1, options=options)
    assert job.plan.reads < 1.2
    rows = [read_slice(job, number) for number in range(len(job.plan.slices))]
    assert sum(len(each.right) for each in rows) < 1.2 * job.plan.right.rows.sum()
