"""How long a tick is, one unit a side, and what rounding loses: alike on Arrow data and on Spark."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    SchemaError,
    TimingCondition,
    around,
    correlate,
    correlate_tables,
    within,
)
from coincide.command_line.problems import in_options
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.schemas import arrow_time_column
from coincide.engine.events.sides import read_side
from coincide.engine.events.ticks import rounding as rounding_of
from coincide.engine.events.time_columns import (
    TimeColumn,
    TimeScale,
    range_hint,
    resolve_tick,
    scale_of,
)
from coincide.model.decimal_ticks import EXACT, MOST_PLACES
from coincide.model.errors import Words
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, Tick
from cpu_fallback.reference.decision import decimal_of, float_ticks
from spark_plugin.frames.columns import field_of, rounding, spark_time_column
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.float_ticks import with_ticks
from spark_plugin.frames.statistics import measure
from spark_plugin.frames.timestamps import with_timestamps
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.places import ROOT
from tests.helpers.rows import pair_ids
from tests.helpers.spark_cases import frame

UNITS = list(NANOSECONDS_PER_UNIT)
AT = {"left_time": "t", "right_time": "t"}


def at(values: list[Any], kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"t": pa.array(values, kind), "id": range(len(values))})


def pairs(
    left: pa.Table, right: pa.Table, lo: Any, hi: Any, **options: Any
) -> list[tuple[int, int]]:
    condition = TimingCondition(within(lo, hi), 1.0)
    found = correlate_tables(left, right, condition, **AT, options=CorrelateOptions(**options))
    return pair_ids(found)


def columns(left: str, right: str) -> list[TimeColumn]:
    step = {"timestamp": 1000}
    return [
        TimeColumn(side, "t", kind, step.get(kind))  # type: ignore[arg-type]
        for side, kind in (("left", left), ("right", right))
    ]


@pytest.mark.parametrize(
    ("kinds", "options", "tick"),
    [
        (("float", "float"), {"unit": "s"}, "ns"),
        (("float", "float"), {"unit": "s", "tick": "us"}, "us"),
        (("float", "integer"), {"unit": "ms"}, "ns"),
        (("integer", "integer"), {}, None),
        (("integer", "integer"), {"unit": "s"}, "s"),
        (("integer", "integer"), {"unit": "s", "tick": "ms"}, "ms"),
        (("integer", "integer"), {"left_unit": "s", "right_unit": "ms"}, "ms"),
        (("integer", "integer"), {"unit": "s", "right_unit": "us"}, "us"),
        (("integer", "float"), {"left_unit": "ms", "right_unit": "s"}, "ns"),
        (("timestamp", "timestamp"), {}, "us"),
        (("timestamp", "timestamp"), {"tick": "ns"}, "ns"),
        (("timestamp", "timestamp"), {"unit": "ns"}, "ns"),
    ],
)  # fmt: skip
def test_the_tick_loses_nothing_unless_it_is_named(
    kinds: tuple[str, str], options: dict[str, str], tick: str | None
) -> None:
    assert resolve_tick(columns(*kinds), CorrelateOptions(**options)).unit == tick


@pytest.mark.parametrize(
    ("kinds", "options", "error", "words"),
    [
        (("integer", "integer"), {"left_unit": "s"}, SchemaError, "right.t.*right_unit='s'"),
        (("integer", "integer"), {"right_unit": "s"}, SchemaError, "left.t.*left_unit='s'"),
        (("integer", "float"), {"left_unit": "s"}, SchemaError, "need a unit .found none for right.t"),
        (("integer", "integer"), {"tick": "us"}, ConditionError, "needs the unit of the numbers in the"),
        (("integer", "integer"), {"unit": "ms", "tick": "s"}, ConditionError, "tick='ms'"),
        (("float", "integer"), {"unit": "ms", "tick": "s"}, ConditionError, "right.t counts ms"),
        (("timestamp", "timestamp"), {"tick": "ms"}, ConditionError, "Remove the tick"),
        (("timestamp", "timestamp"), {"left_unit": "s"}, ConditionError, "Remove the unit"),
    ],
)  # fmt: skip
def test_units_and_ticks_that_make_no_sense(
    kinds: tuple[str, str], options: dict[str, str], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        resolve_tick(columns(*kinds), CorrelateOptions(**options))


def test_a_fraction_of_a_microsecond_counts() -> None:
    """Instants 1.0000004 s apart are not within a second, however a microsecond would round them."""
    left, right = at([0.0, 10.0]), at([1.0000004, 11.0])
    assert pairs(left, right, "0s", "1s", unit="s") == [(1, 1)]
    assert pairs(left, right, "0s", "1s", unit="s", tick="us") == [(0, 0), (1, 1)]


def test_seconds_on_one_side_and_milliseconds_on_the_other() -> None:
    left, right = at([1_700_000_000, 1_700_000_001]), at([1_700_000_000_999, 1_700_000_002_000])
    units = {"left_unit": "s", "right_unit": "ms"}
    assert pairs(left, right, "0s", "999ms", **units) == [(0, 0)]
    assert pairs(left, right, "0s", "1s", **units) == [(0, 0), (1, 1)]
    assert pairs(right, left, "-999ms", "0s", left_unit="ms", unit="s") == [(0, 0)]


def test_where_nanoseconds_do_not_reach_the_error_names_the_remedy() -> None:
    far = at([4e9, 5.0])
    with pytest.raises(DataError, match=r"left: times that reach 2\^61.*1 ns.*tick='us'"):
        pairs(far, far, "0s", "1s", unit="s")
    assert pairs(far, far, "0s", "1s", unit="s", tick="us") == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        ([1.0, 2.5], {"unit": "s"}, "3 has no unit: the times count s, and a tick is 1 ns here"),
        ([1, 2], {"left_unit": "s", "right_unit": "ms"}, "Write '3s'. For ticks write '3ms'"),
    ],
)
def test_a_bare_number_of_another_unit_is_refused(
    times: list[Any], options: dict[str, Any], message: str
) -> None:
    """One missing value makes whole seconds of pandas decimals, whose tick is a nanosecond."""
    table = pa.table({"id": [1, 2], "t": times})
    given: dict[str, Any] = {"left_time": "t", "right_time": "t"}
    with pytest.raises(ConditionError, match=message):
        correlate_tables(table, table, within=(0, 3), options=CorrelateOptions(**options), **given)
    for window in ((0, "3s"), (0, 0)):
        asked = CorrelateOptions(**options)
        correlate_tables(table, table, within=window, options=asked, **given)
    asked = CorrelateOptions(tick="ms", **options)
    correlate_tables(table, table, within=(0, 3), options=asked, **given)


# --- the same ticks on Spark ---

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e10, 1e10),
    st.integers(-(10**6), 10**6).map(lambda n: n / 2),
    st.integers(-(10**9), 10**9).map(lambda n: (2 * n + 1) / 2000),
)


def scale_for(kind: pa.DataType, unit: str, tick: str | None) -> TimeScale:
    column = arrow_time_column("left", "t", kind)
    options = CorrelateOptions(unit=unit, tick=tick)
    return scale_of(column, resolve_tick([column], options), options)


@given(st.lists(NUMBERS, min_size=1), st.sampled_from(UNITS), st.sampled_from(UNITS))
@example([0.5, 1.5, 2.5, -0.5, -1.5], "us", "us")
@example([500.0, 1500.0, 2500.0, 4500.0, 35.0], "ns", "us")
@example([1.45e10, 3.05e10], "ns", "s")
@example([5.296374612009987e16], "s", "min")
def test_floats_are_rounded_once_half_to_even(values: list[float], unit: str, tick: str) -> None:
    """Each is the shortest decimal that reads as it; else, or from 2^51 on, a tick or float off."""
    scale = scale_for(pa.float64(), unit, tick)
    side, _ = read_side(at(values), IntervalColumns((scale, scale)), [], [], "drop")
    exact = [(decimal_of(v), float_ticks(v, scale.factor)) for v in values]
    expected = [(each, ticks) for each, ticks in exact if abs(ticks) < TIME_LIMIT]
    for found, (decimal, ticks) in zip(side.min_time.tolist(), expected, strict=True):
        is_exact = (decimal * 10**MOST_PLACES).denominator == 1 and abs(decimal) < EXACT
        assert abs(found - ticks) <= (0 if is_exact else max(1.0, math.ulp(ticks)))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("unit", ["ms", "s", "min", "h"])
def test_floats_are_the_decimals_that_they_are_printed_as(unit: str, kind: pa.DataType) -> None:
    """Epochs with up to nine places, floats of any size, and neighbours of both."""
    rng, is_single = np.random.default_rng(5), kind == pa.float32()
    scale = scale_for(kind, unit, "ns")
    epoch = 1.7e18 / float(scale.factor)
    values = [round(epoch + 1e5 * rng.random(), int(n)) for n in rng.integers(0, 10, 3000)]
    values += [round(float(v), int(n)) for v, n in zip(
        10.0 ** rng.uniform(-9, 5, 3000), rng.integers(0, 10, 3000), strict=True
    )]  # fmt: skip
    dtype = np.float32 if is_single else np.float64
    floats = np.array(values, dtype)
    floats = np.concatenate([floats, np.nextafter(floats, dtype(0)), -floats])
    side, _ = read_side(at(floats, kind), IntervalColumns((scale, scale)), [], [], "drop")
    expected = [float_ticks(float(v), scale.factor, is_single=is_single) for v in floats]
    expected = [ticks for ticks in expected if abs(ticks) < TIME_LIMIT]
    off = np.abs(side.min_time - np.array(expected))
    assert off.max() <= 1
    assert np.count_nonzero(off) < 5
    assert (np.diff(np.sort(side.min_time)) >= 0).all()


@pytest.mark.parametrize("base", [0.0, 1.7e9])
@pytest.mark.parametrize("time", ["t", around("t", column="half"), around("t", "1ms")])
def test_float_seconds_keep_exact_ties(base: float, time: Any) -> None:
    """2,000 pairs exactly 5 ms apart, where a double at 1.7e9 stands for 240 ns."""
    ms = np.arange(2000) * 1000 + np.random.default_rng(1).integers(0, 900, 2000)
    left, right = (
        pa.table({
            "t": np.round(base + t / 1000, 3), "half": np.full(2000, 0.001), "id": np.arange(2000)
        })
        for t in (ms, ms + 5)
    )  # fmt: skip
    wide = "5ms" if time == "t" else "7ms"
    found = correlate_tables(
        left, right, TimingCondition(within("-" + wide, wide), 1.0), left_time=time, right_time=time,
        options=CorrelateOptions(unit="s"),
    )  # fmt: skip
    assert found.num_rows == 2000


@pytest.mark.spark
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_spark_gives_the_same_ticks(spark: SparkSession, kind: pa.DataType) -> None:
    rng = np.random.default_rng(22)
    n = 4000
    values = np.concatenate([
        rng.integers(-(10**6), 10**6, n) / 2,
        (2 * rng.integers(-(10**9), 10**9, n) + 1) / 2000,
        rng.standard_normal(n) * 10.0 ** rng.integers(-9, 20, n),
        1.7e9 + rng.random(n),
        np.round(1.7e9 + rng.random(n), 3),
        np.array([0.0, -0.0, 1e-40, 2.0**61, -(2.0**61), 2.0**53 + 1, 3e38]),
    ]).astype(np.float32 if kind == pa.float32() else float)  # fmt: skip
    table = at(values.tolist(), kind)
    source = frame(spark, table)
    scales = [
        scale_for(kind, unit, tick)
        for unit, tick in (
            ("s", None), ("s", "us"), ("ns", "us"), ("ns", "d"), ("d", None), ("ms", "s"), ("us", "us")
        )
    ]  # fmt: skip
    texts = [f"{rounding(scale)} AS r{i}" for i, scale in enumerate(scales)]
    made = with_ticks(source, {f"t{i}": scale for i, scale in enumerate(scales)})
    found = made.drop("t").join(source.selectExpr("id", *texts), "id").toArrow().sort_by("id")
    for i, scale in enumerate(scales):
        there = found[f"t{i}"].to_numpy()
        valid = np.abs(there) < TIME_LIMIT
        side, counts = read_side(table, IntervalColumns((scale, scale)), [], [], "drop")
        assert np.array_equal(there[valid], side.min_time)
        assert counts.rounded == found[f"r{i}"].to_numpy()[valid].max()


# --- what rounding loses is reported ---

ROUNDED = {
    "grid": ([0.1, 0.2, 0.3, 1e6 + 0.7, 1.7e9 + 0.123456], pa.float64(), "s", None, 0.0),
    "noise": ([12.3 - 0.1 - 0.2 - 12.0], pa.float64(), "s", None, 0.0),
    "finer than ns": ([1.5e-9 + 2.5e-10, 1.0], pa.float64(), "s", None, 0.25),
    "named": ([1.0000004, 2.0, None], pa.float64(), "s", "us", 0.4),
    "single": ([0.1, 1.25, 0.7], pa.float32(), "s", None, 0.0),
    "single named": ([0.1, 1.25], pa.float32(), "s", "d", 1.25 / 86400),
    "single whole": ([16_777_215.0, 16_777_216.0, 999_999.0, 1.7e9], pa.float32(), "s", None, 0.0),
    "single of a day": ([0.5, 86_399.987, 40_000.1234], pa.float32(), "s", None, 3_906_250),
    "single since 1970": ([1.7e9, 1.7e9 + 200], pa.float32(), "s", None, 64e9),
    "single before 1970": ([-1.7e9, -1.7e9 - 200], pa.float32(), "s", "s", 64.0),
    "double since 1970": ([1.7e9, 1.7e9 + 200], pa.float64(), "s", None, 0.0),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_the_largest_change_is_counted(name: str) -> None:
    values, kind, unit, tick, change = ROUNDED[name]
    scale = scale_for(kind, unit, tick)
    _, counts = read_side(at(values, kind), IntervalColumns((scale, scale)), [], [], "drop")
    assert counts.rounded == pytest.approx(change, rel=1e-5)


def test_invalid_rows_do_not_count_as_rounded() -> None:
    scale = scale_for(pa.float64(), "s", "s")
    table = pa.table({"t": [0.0, 5.4], "u": [1.0, 3.0]})
    options = CorrelateOptions(unit="s", tick="s")
    upper = scale_of(TimeColumn("left", "u", "float"), scale.tick, options)
    _, counts = read_side(table, IntervalColumns((scale, upper)), [], [], "drop")
    assert (counts.rounded, counts.invalid) == (0.0, {"order": 1})


@pytest.mark.spark
def test_the_look_counts_the_same_change(spark: SparkSession) -> None:
    scale = scale_for(pa.float64(), "s", "us")
    table = at([0.0, 1.0000003, float("nan"), 1e300, None, 5.0000001])
    _, expected = read_side(table, IntervalColumns((scale, scale)), [], [], "drop")
    source, times = frame(spark, table), IntervalColumns((scale, scale))
    left, right = (
        EventFrame(s, with_timestamps(times, source), times, [], []) for s in ("left", "right")
    )
    found, _ = measure(left, right)
    assert found.counts == expected
    assert expected.rounded == pytest.approx(0.3, rel=1e-5)
    assert (found.first, found.last) == (0, 5_000_000)


@pytest.mark.spark
def test_the_look_counts_the_same_steps_of_32_bit_floats(spark: SparkSession) -> None:
    random = np.random.default_rng(3)
    powers = 2.0 ** np.arange(-20, 31)
    values = [powers, np.nextafter(powers.astype(np.float32), np.float32(0)), -powers * 1.1, [0.0]]
    values += [random.uniform(-1, 1, 300) * 10.0 ** random.integers(-9, 10, 300)]
    values += [np.round(random.uniform(-1e6, 1e6, 300)) * 10.0 ** random.integers(-6, 4, 300)]
    each = np.concatenate(values).astype(np.float32)
    scale = scale_for(pa.float32(), "s", "us")
    found = (
        frame(spark, pa.table({"t": each, "id": range(each.size)}))
        .selectExpr(f"{rounding(scale)} AS r")
        .toArrow()
    )
    assert found["r"].to_pylist() == rounding_of(each.astype(float), scale).tolist()
    assert 0 < sum(value > 0.5 for value in found["r"].to_pylist()) < each.size


@pytest.mark.spark
def test_units_of_each_side_on_spark(spark: SparkSession) -> None:
    left, right = at([1_700_000_000]), at([1_700_000_000_999, 1_700_000_001_000])
    assert spark_time_column("left", field_of(frame(spark, left), "left", "t")).family == "integer"
    options = CorrelateOptions(left_unit="s", right_unit="ms")
    found = correlate(
        frame(spark, left), frame(spark, right), TimingCondition(within("0s", "999ms"), 1.0), **AT,
        options=options,
    ).collect()  # fmt: skip
    assert [tuple(row) for row in found] == [(0, 0)]


def test_units_and_ticks_of_the_command_line(work) -> None:
    work.write("right.parquet", pa.table({"id": [7], "min_time": [20_500], "max_time": [20_500]}))
    options = (
        "--within",
        "0s",
        "1s",
        "--confidence",
        "0.1",
        "--left-unit",
        "s",
        "--right-unit",
        "ms",
    )
    code, out, err = work.join(*options, "--left-time", "min_time", "--json")
    assert (code, err, work.result().to_pydict()) == (0, "", {"left_id": [2], "right_id": [7]})
    assert json.loads(out)["tick"] == "ms"
    out = work.join(*options, "--left-time", "min_time", "--tick", "us", "--json", "--overwrite")[1]
    assert json.loads(out)["tick"] == "us"
    assert "Use --tick s " in work.refused(*options, "--tick", "min", "--overwrite")


@pytest.mark.spark
def test_units_and_ticks_of_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("left.parquet", "right.parquet")]
    for path, times in zip(paths, ([1.0, 2.0], [1000.4, 3000.0]), strict=True):
        pq.write_table(at(times), path)
    spark.dataSource.register(CoincideSource)
    reader = spark.read.format("coincide").options(
        left=paths[0], right=paths[1], left_time="t", right_time="t", within="0s,0s",
        confidence="1", left_unit="s", right_unit="ms",
    )  # fmt: skip
    assert reader.load().collect() == []
    assert [tuple(row) for row in reader.option("tick", "ms").load().collect()] == [(0, 0)]


# --- messages ---


def test_kinds_that_do_not_go_together_say_what_makes_them_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    instants = pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))
    clocks = pa.array([3_600_000_000, 7_200_000_000], pa.timestamp("us"))
    table = pa.table({"min_time": clocks, "max_time": clocks, "id": [7, 8]})
    other = pa.table({"min_time": instants, "max_time": instants, "id": [5, 6]})
    condition = TimingCondition(within("0s", "0s"), 1.0)
    mended, said = rewritten(table, other, condition)
    assert "Give the time zone of the clocks of right.min_time and right.max_time" in said
    assert correlate_tables(other, mended, condition).num_rows == 2
    assert mended["id"].equals(table["id"])
    numbers = pa.table({"min_time": [0.0], "max_time": [0.0], "id": [9]})
    with pytest.raises(
        SchemaError, match="Give with left_unit='s' what a number of left"
    ) as refused:
        correlate_tables(numbers, other, condition)
    assert "Give with --left-unit s what a number of left" in in_options(refused.value)
    options = CorrelateOptions(left_unit="s")
    assert correlate_tables(numbers, other, condition, options=options).num_rows == 1


def rewritten(table: pa.Table, other: pa.Table, condition: TimingCondition) -> tuple[pa.Table, str]:
    """A table as the page makes it that the message for a join with another one names; the message."""
    pq.write_table(table, "in.parquet")
    with pytest.raises(SchemaError, match="must all be instants") as refused:
        correlate_tables(other, table, condition)
    assert "a line of docs/files.md" in str(refused.value)
    assert len(str(refused.value)) < 560
    page = (ROOT / "docs" / "files.md").read_text("utf-8")
    found = re.search(r'^python -c "(.*?)"$', page, flags=re.MULTILINE | re.DOTALL)
    assert found is not None
    code = found[1].replace("['t', 'u']", "['min_time', 'max_time']")
    subprocess.run([sys.executable, "-c", code], check=True)
    return pq.read_table("out.parquet"), str(refused.value)


END = 2**63 - 1


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_placeholders_in_nanoseconds_are_shown(zone: str | None) -> None:
    values = [5_000, None, END, 7_000, END]
    table = at(values, pa.timestamp("ns", zone))
    condition = TimingCondition(within(0, 0), 1.0)
    times: dict[str, Any] = {"left_time": "t", "right_time": "t"}
    with pytest.raises(DataError, match="finer than 1 us") as refused:
        correlate_tables(table, table, condition, **times, options=CorrelateOptions(invalid="drop"))
    shown = "2262-04-11 23:47:16.854775807" + "Z" * (zone is not None)
    assert f"left.t has timestamps finer than 1 us in 2 rows (found {shown})" in str(refused.value)
    said = in_options(refused.value)
    assert said.endswith("--invalid drop then skips 2 of them, which are out of range.")
    with pytest.raises(DataError, match="reach 2\\^61") as refused:
        correlate_tables(table, table, condition, **times, options=CorrelateOptions(unit="ns"))
    # Ticks of 1 us would be refused again.
    assert "a tick is 1 ns, which reaches 73 years. Fix the data" in str(refused.value)
    assert "tick='us'" not in str(refused.value)
    options = CorrelateOptions(unit="ns", invalid="drop")
    with pytest.warns(DroppedRowsWarning):
        assert correlate_tables(table, table, condition, **times, options=options).num_rows == 2


def test_fine_times_that_are_no_placeholders() -> None:
    table = at([1_000, 1_001, 1_002], pa.timestamp("ns"))
    with pytest.raises(DataError, match=r"in 2 rows .found 1970-01-01 00:00:00.000001001."):
        correlate_tables(
            table, table, TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t"
        )
    with pytest.raises(DataError, match=r"in 1 row .*unit='ns'\)\.$"):
        correlate_tables(
            table.slice(0, 2), table, TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t"
        )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "unit", "proposes"),
    [
        (pa.timestamp("ns"), None, False), (pa.timestamp("us"), None, True), (pa.int64(), "ns", False),
        (pa.int64(), "s", True), (pa.float64(), "ns", True),
    ],
)  # fmt: skip
def test_coarser_ticks_are_proposed_where_they_round_nothing(
    kind: pa.DataType, unit: str | None, proposes: bool
) -> None:
    column = arrow_time_column("left", "t", kind)
    scale = scale_of(column, Tick("ns"), CorrelateOptions(unit=unit))
    said = Words(range_hint(Tick("ns"), [scale]))
    assert ("CorrelateOptions(tick='us')" in said) == proposes
    assert "73 years" in said
    assert range_hint(Tick("us"), [scale]) == ""
