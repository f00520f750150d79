"""INT96, and the calendar before Gregory's, by both engines."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import DataError
from coincide.command_line import run
from tests.helpers.engine_cases import assert_same, join_words, write_times
from tests.helpers.input_files import MICROS, UTC_MICROS, read


@pytest.mark.spark
@pytest.mark.parametrize("files", [["int96"], ["int96", "utc"], ["utc", "int96"]], ids=" ".join)
def test_int96_is_an_instant(tmp_path, command_spark, files):
    for i, kind in enumerate(files):
        path = tmp_path / "events" / f"{i}.parquet"
        write_times(path, UTC_MICROS, use_deprecated_int96_timestamps=kind == "int96")
    write_times(tmp_path / "utc.parquet", UTC_MICROS)
    assert_same(command_spark, tmp_path / "events")
    assert read(tmp_path / "events").schema.field("min_time").type == UTC_MICROS
    words = join_words(tmp_path, tmp_path / "events", tmp_path / "utc.parquet", "--overwrite")
    for engine in ("local", "spark"):
        assert run([*words, "--engine", engine]) == 0
        assert ds.dataset(tmp_path / "out").to_table().num_rows == 2 * len(files)


@pytest.mark.spark
def test_int96_below_partitions(tmp_path, command_spark):
    for day in (1, 2):
        path = tmp_path / "events" / f"day={day}" / "a.parquet"
        path.parent.mkdir(parents=True)
        write_times(path, UTC_MICROS, use_deprecated_int96_timestamps=True)
    assert_same(command_spark, tmp_path / "events")
    assert sorted(read(tmp_path / "events")["day"].to_pylist()) == [1, 1, 2, 2]


def test_int96_keeps_its_nanoseconds(tmp_path):
    times = pa.table(
        {"t": pa.array([-3_999_932, 0, None, 1_700_000_000_000_000_123], pa.timestamp("ns"))}
    )
    path = tmp_path / "a.parquet"
    pq.write_table(times, path, use_deprecated_int96_timestamps=True)
    assert read(path)["t"].cast(pa.int64()).to_pylist() == [
        -3_999_932,
        0,
        None,
        1_700_000_000_000_000_123,
    ]


def test_int96_of_years_and_digits_that_no_type_holds_together(tmp_path):
    far = pa.table({"t": pa.array([253_402_300_799_000_000], pa.timestamp("us"))})
    near = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    for name, table in (("a", far), ("b", near)):
        pq.write_table(table, tmp_path / f"{name}.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(DataError, match=r"left: t, which is INT96, has times finer"):
        read(tmp_path)


@pytest.mark.parametrize("mark", ["legacyDateTime", "legacyINT96", "version"])
def test_the_old_calendar_is_left_to_spark(tmp_path, mark):
    told = {f"org.apache.spark.{mark}": "2.4.8" if mark == "version" else ""}
    for year, name in ((1850, "old"), (1950, "new")):
        table = pa.table({"t": pa.array([datetime(year, 1, 1)], MICROS)})
        pq.write_table(table.replace_schema_metadata(told), tmp_path / f"{name}.parquet")
    assert read(tmp_path / "new.parquet").num_rows == 1
    with pytest.raises(DataError, match=r"left: t has times before 1900 .*Join with Spark"):
        read(tmp_path / "old.parquet")


def test_int96_far_from_1970(tmp_path):
    far = pa.array([datetime(9999, 1, 1)]).cast(UTC_MICROS)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": far}), path, use_deprecated_int96_timestamps=True)
    assert read(path)["t"].to_pylist() == [datetime(9999, 1, 1, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(UTC_MICROS), [[datetime(1850, 1, 1, tzinfo=UTC)], None]),
        (pa.struct([("at", UTC_MICROS)]), [{"at": datetime(1850, 1, 1, tzinfo=UTC)}, None]),
        (pa.map_(pa.string(), UTC_MICROS), [[("at", datetime(1850, 1, 1, tzinfo=UTC))], None]),
    ],
    ids=["list", "struct", "map"],
)
def test_times_within_lists_and_structs(tmp_path, kind, values):
    table = pa.table({"t": pa.array(values, kind)})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert read(tmp_path / "a.parquet")["t"].to_pylist() == values
    told = {"org.apache.spark.legacyDateTime": ""}
    pq.write_table(table.replace_schema_metadata(told), tmp_path / "b.parquet")
    with pytest.raises(DataError, match="left: t has times before 1900"):
        read(tmp_path / "b.parquet")


def test_times_of_the_day_are_of_no_calendar(tmp_path):
    table = pa.table({"t": pa.array([0, 1], pa.time64("us"))})
    told = {"org.apache.spark.legacyDateTime": ""}
    pq.write_table(table.replace_schema_metadata(told), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet").num_rows == 2
