"""What footers tell of times, in every way Parquet stores them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.files import footers
from coincide.engine.files.finding import find_files
from coincide.engine.files.footers import read_footers
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slices import row_groups
from coincide.model.errors import DataError, SchemaError
from tests.helpers.joins import plan_files, plan_tables

CONDITION = TimingCondition(within("-1s", "1s"), 0.5)


def table(kind: pa.DataType, low: list[Any], high: list[Any]) -> pa.Table:
    columns = {"min_time": pa.array(low, kind), "max_time": pa.array(high, kind)}
    return pa.table({"id": pa.array(range(len(low))), **columns})


def write(path: Path, data: pa.Table, **how: Any) -> Path:
    pq.write_table(data, path, row_group_size=2, **how)
    return path


def spans(path: Path, unit: str | None = None) -> list[tuple[int, int] | None]:
    """When the events of each row group are; None: there are no events."""
    read = read_footers(find_files("left", path), ["min_time", "max_time"])
    schema = read[0].schema
    plan = plan_tables(schema, schema, CONDITION, options=CorrelateOptions(unit=unit))
    groups = row_groups(read, plan.times[0])
    assert groups.is_known.all()
    ends = zip(groups.spans.first.tolist(), groups.spans.last.tolist(), strict=True)
    return [None if first > last else (first, last) for first, last in ends]


@pytest.mark.parametrize("stored", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Zurich"])
def test_timestamps_of_any_unit(tmp_path: Path, stored: str, zone: str | None) -> None:
    step = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[stored]
    data = table(
        pa.timestamp(stored, zone), [5 * step, 3 * step, 9 * step], [7 * step, 8 * step, 9 * step]
    )
    second = 10**6
    assert spans(write(tmp_path / "a.parquet", data)) == [
        (3 * second, 8 * second),
        (9 * second, 9 * second),
    ]


def test_nanoseconds_round_outwards(tmp_path: Path) -> None:
    data = table(pa.timestamp("ns"), [1999, 5000], [3000, 4001])
    assert spans(write(tmp_path / "a.parquet", data)) == [(1, 5)]


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.int8()])
def test_integers(tmp_path: Path, kind: pa.DataType) -> None:
    data = table(kind, [-5, 3], [7, 4])
    assert spans(write(tmp_path / "a.parquet", data), "ms") == [(-5, 7)]


def test_floats_round_as_rows_do(tmp_path: Path) -> None:
    data = table(pa.float64(), [0.1234567, 3.0], [4.0, 3.5000001])
    assert spans(write(tmp_path / "a.parquet", data), "us") == [(123, 4_000)]


def test_nulls_and_groups_of_nulls(tmp_path: Path) -> None:
    data = table(pa.int64(), [None, 4, None, None], [3, 5, 6, 7])
    found = spans(write(tmp_path / "a.parquet", data), "us")
    assert found == [(4, 5), None]


def test_groups_of_nans_are_no_groups_of_nulls(tmp_path: Path) -> None:
    """Their rows are invalid, so they must be read and counted."""
    times = [1.0, 2.0, math.nan, math.nan]
    known, unknown = spans(write(tmp_path / "a.parquet", table(pa.float64(), times, times)), "us")
    assert known == (1_000, 2_000)
    assert unknown is not None


def test_no_statistics(tmp_path: Path) -> None:
    data = table(pa.int64(), [1, 2, 3], [1, 2, 3])
    good, bad = write(tmp_path / "a.parquet", data), tmp_path / "b.parquet"
    write(bad, data, write_statistics=False)
    condition = TimingCondition(within(0, 1), 0.5)
    with pytest.raises(
        NotDirect, match=r"right: .*b\.parquet has no statistics of min_time and max_time"
    ):
        plan_files(good, bad, condition, parallelism=1)


def test_little_order(tmp_path: Path) -> None:
    times = [i * 37 % 100 for i in range(100)]
    files = [write(tmp_path / f"{n}.parquet", table(pa.int64(), times, times)) for n in "ab"]
    options = CorrelateOptions(slices=50)
    with pytest.raises(
        NotDirect, match=r"read 2\d\.\d times on average, .* df\.sort\(\"min_time\"\)"
    ):
        plan_files(*files, TimingCondition(within(0, 1), 0.5), parallelism=1, options=options)


def test_files_that_differ(tmp_path: Path) -> None:
    folder = tmp_path / "side"
    folder.mkdir()
    good = write(folder / "a.parquet", table(pa.int64(), [1], [1]))
    condition = TimingCondition(within(0, 1), 0.5)
    for other, words in (
        (
            table(pa.int32(), [1], [1]),
            "'min_time' must have one type .*found int32 in .*b.parquet and int64 in .*a.parquet",
        ),
        (
            table(pa.int64(), [1], [1]).drop(["id"]),
            "b.parquet has no column 'id', which other files have",
        ),
    ):
        write(folder / "b.parquet", other)
        with pytest.raises(SchemaError, match=words):
            plan_files(folder, good, condition, parallelism=1)


def test_what_is_no_parquet_is_named(tmp_path: Path) -> None:
    good = write(tmp_path / "a.parquet", table(pa.int64(), [1], [1]))
    bad = tmp_path / "b.parquet"
    condition = TimingCondition(within(0, 1), 0.5)
    for content in (b"", b"PAR1", good.read_bytes()[:-9]):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"left: cannot read .*b\.parquet as Parquet"):
            plan_files(bad, good, condition, parallelism=1)


OLD_TIMES = {"use_deprecated_int96_timestamps": True}


@pytest.mark.parametrize("name", ["min_time", "seen", "visits"])
def test_int96_is_left_to_dataframes(tmp_path: Path, name: str) -> None:
    """It counts years that PyArrow's nanoseconds do not, also where it is only an output column."""
    data = table(pa.int64(), [1, 2], [1, 2])
    times = pa.array([0, 1], pa.timestamp("us", "UTC"))
    if name == "min_time":
        data = table(times.type, [0, 1], [0, 1])
    elif name == "seen":
        data = data.append_column("seen", times)
    else:
        data = data.append_column("visits", pa.array([[0], [1]], pa.list_(times.type)))
    path, condition = tmp_path / "a.parquet", TimingCondition(within("-1s", "1s"), 0.5)
    options = CorrelateOptions(unit=None if name == "min_time" else "us")
    write(path, data, **OLD_TIMES)
    with pytest.raises(NotDirect, match=rf"left: .*a\.parquet has .*{name}.* INT96.*TIMESTAMP_MIC"):
        plan_files(path, path, condition, parallelism=1, left_columns=["id", name], options=options)


@pytest.mark.parametrize("mark", ["legacyDateTime", "legacyINT96"])
def test_the_old_calendar_is_left_to_dataframes(tmp_path: Path, mark: str) -> None:
    """Spark reads times before 1900 of such files differently from all others."""
    data = table(pa.timestamp("us"), [0, 1], [0, 1])
    days = pa.array([{"on": 0}, {"on": 1}], pa.struct([("on", pa.date32())]))
    other = table(pa.int64(), [0, 1], [0, 1]).append_column("seen", days)
    told = {f"org.apache.spark.{mark}": ""}
    path = write(tmp_path / "a.parquet", data.replace_schema_metadata(told))
    with pytest.raises(
        NotDirect, match=r"left: .*a\.parquet has max_time and min_time in .*CORRECTED"
    ):
        plan_files(path, path, CONDITION, parallelism=1)
    path = write(tmp_path / "b.parquet", other.replace_schema_metadata(told))
    condition = TimingCondition(within(0, 1), 0.5)
    assert len(plan_files(path, path, condition, parallelism=1).plan.slices) == 1
    with pytest.raises(NotDirect, match=r"left: .*b\.parquet has seen in"):
        plan_files(path, path, condition, parallelism=1, left_columns=["id", "seen"])


def test_int96_that_nobody_needs_is_no_matter(tmp_path: Path) -> None:
    data = table(pa.int64(), [1, 2], [1, 2]).append_column(
        "seen", pa.array([0, 1], pa.timestamp("us", "UTC"))
    )
    path = write(tmp_path / "a.parquet", data, **OLD_TIMES)
    plan = plan_files(path, path, TimingCondition(within(0, 1), 0.5), parallelism=1).plan
    assert len(plan.slices) == 1


def test_a_column_of_instants_is_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_files: list[str] = []

    def noted(footer: pq.FileMetaData, name: str) -> Any:
        given_files.append(name)
        return place(footer, name)

    place = footers._place
    monkeypatch.setattr(footers, "_place", noted)
    path = write(tmp_path / "a.parquet", table(pa.int64(), [1, 2, 3], [4, 5, 6]))
    plan_files(path, path, TimingCondition(within(-1, 1), 0.5), left_time="min_time", parallelism=1)
    assert given_files == ["min_time", "min_time", "max_time"]


def test_row_groups_larger_than_slices(tmp_path: Path) -> None:
    """Order is not what these files lack; what the message advises opens the way."""
    data = table(pa.int64(), list(range(400)), list(range(400)))
    path, condition = tmp_path / "a.parquet", TimingCondition(within(0, 1), 0.5)
    options = CorrelateOptions(slices=20)
    pq.write_table(data, path)
    with pytest.raises(NotDirect, match=r"up to 400 rows where a slice has about 40,") as raised:
        plan_files(path, path, condition, parallelism=1, options=options)
    assert "not in order of time" not in str(raised.value)
    assert "row_group_size=10)" in str(raised.value)
    pq.write_table(data.sort_by("min_time"), path, row_group_size=10)
    assert plan_files(path, path, condition, parallelism=1, options=options).plan.reads < 2


@pytest.mark.usefixtures("any_order")
def test_slices_are_bounded_by_the_bytes_of_the_columns_that_are_read(tmp_path: Path) -> None:
    data = table(pa.int64(), list(range(64)), list(range(64)))
    text = pa.array([f"{i:03}" * 1000 for i in range(64)])
    path = tmp_path / "a.parquet"
    pq.write_table(data.append_column("note", text), path)

    def slices(columns: tuple[str, ...]) -> int:
        options = CorrelateOptions(slice_bytes=120_000)
        found = plan_files(
            path, path, TimingCondition(within(0, 0), 0.5), parallelism=1,
            left_columns=columns, options=options,
        )  # fmt: skip
        return len(found.plan.slices)

    # 64 rows of 3,000 bytes, and as many of 24 on both sides.
    assert slices(("id",)) == 1
    assert slices(("id", "note")) == 2
