"""The data source `coincide`, from Python and from SQL."""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import os
import re
import sys
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition

from coincide import (
    BackendError,
    DataError,
    TimingCondition,
    correlate_files,
    register_source,
    within,
)
from coincide.model.errors import CoincideError
from spark_plugin.ways.files import source
from spark_plugin.ways.files.source import CoincideSource
from tests.spark_plugin.ways.files.test_direct_join import stream

pytestmark = pytest.mark.spark


@pytest.fixture
def sides(tmp_path: Path, spark: SparkSession) -> tuple[Path, Path]:
    spark.dataSource.register(CoincideSource)
    paths = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for seed, path in enumerate(paths):
        table = stream(3000, seed)
        days = [
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=i % 50) for i in range(3000)
        ]
        table = table.append_column("at", pa.array(days, pa.timestamp("us", "UTC")))
        pq.write_table(
            table.append_column("door", pa.array(["a", "b", "c"] * 1000)), path, row_group_size=300
        )
    return paths


@pytest.mark.parametrize(
    "shape",
    [
        *({"emit": emit} for emit in ("pairs", "lists", "counts", "best")),
        {"emit": "best", "prefer": "first", "k": 2},
    ],
    ids=lambda shape: " ".join(map(str, shape.values())),
)
def test_as_correlate_files(
    spark: SparkSession, sides: tuple[Path, Path], shape: dict[str, Any]
) -> None:
    columns = ["id", "at"]
    options = {
        "left": sides[0], "right": sides[1], "within": "-300,100", "confidence": "0.7", "by": "door",
        "left_columns": "id,at", "right_columns": "id,at", "slices": "3", **shape,
    }  # fmt: skip
    found = spark.read.format("coincide").options(**options).load()
    want = correlate_files(
        spark, *sides, TimingCondition(within(-300, 100), 0.7), by="door", left_columns=columns,
        right_columns=columns, **shape,
    )  # fmt: skip
    assert found.rdd.getNumPartitions() == 3
    assert found.dtypes == want.dtypes
    # Lists are in no promised order.
    rows = [sorted(map(str, _flat(frame))) for frame in (found, want)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 100


def _flat(frame):  # type: ignore[no-untyped-def]
    for row in frame.collect():
        yield [sorted(v, key=str) if isinstance(v, list) else v for v in row]


def test_a_matching_is_refused_with_what_does_it(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    options = {"left": sides[0], "right": sides[1], "within": "-300,100", "confidence": "0.7"}
    frame = spark.read.format("coincide").options(**options, matching="mutual")
    with pytest.raises((AnalysisException, PySparkException), match="coincide join --matching"):
        frame.load()


def test_one_duration_is_the_window_about_zero(
    spark: SparkSession, sides: tuple[Path, Path]
) -> None:
    both = {"left": sides[0], "right": sides[1], "confidence": "0.9"}
    counts = [
        spark.read.format("coincide").options(**both, within=window).load().count()
        for window in ("200", "-200,200")
    ]
    assert counts[0] == counts[1] > 100


def test_from_sql(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    spark.sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW joined USING coincide OPTIONS (
            left '{sides[0]}', right '{sides[1]}', mutual_deadline '200', confidence '0.9',
            probability 'true'
        )"""
    )
    row = spark.sql("SELECT count(*) AS n, min(probability) AS p FROM joined").head()
    condition = TimingCondition(within(-200, 200), 0.9)
    assert row["n"] == correlate_files(spark, *sides, condition).count() > 100
    assert row["p"] >= 0.9


WRONG: list[tuple[dict[str, str | None], str]] = [
    ({"left": None}, "the option 'left' is missing"),
    ({"confidence": "high"}, "'confidence' must be a number"),
    ({"within": "1,2,3"}, "'within' takes LO,HI"),
    ({"probability": "yes"}, "must be true or false"),
    ({"emit": "all"}, "emit"),
    ({"within": None}, "one of within and mutual_deadline .found neither"),
    ({"confidence": None}, "confidence is missing, which says how probable a pair must be"),
    ({"left_time": "a,b,c"}, "left_time takes the columns MIN,MAX"),
    ({"left": "/nowhere.parquet"}, "/nowhere.parquet does not exist"),
    ({"right": "db.`badges`"}, r"createOrReplaceTempView\('pairs'\) joins one for SQL"),
    ({"by": ""}, "by has an empty entry"),
    ({"by": ","}, "by has an empty entry"),
    ({"right_columns": "id,,at"}, "right_columns has an empty entry"),
    ({"within": "0,,5"}, "the option within has an empty entry"),
    ({"left": "a.parquet,"}, "the option left has an empty entry"),
    ({"slices": "9" * 5000}, "the option 'slices' must be a number .found '999"),
    ({"slices": "9" * 30}, "slices must be at most 1,000,000"),
    ({"confidence": "1e400"}, "must lie in"),
]


def test_wrong_options(sides: tuple[Path, Path]) -> None:
    left, right = map(str, sides)
    for changes, words in WRONG:
        options = {"left": left, "right": right, "within": "0,5", "confidence": "0.5", **changes}
        given = {name: value for name, value in options.items() if value is not None}
        with pytest.raises(CoincideError, match=words) as raised:
            CoincideSource(given).schema()
        said = str(raised.value)
        assert not re.search("--(within|confidence|left-time)", said)
        assert "\n" not in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "there is no option 'colour'"),
        (
            {"left": "badges"},
            r"left: badges does not exist. .*does not name a file, .* correlate\(spark.table",
        ),
        ({"left_columns": "name"}, "left has no column 'name'"),
    ],
)
def test_what_spark_says_of_wrong_options(
    spark: SparkSession, sides: tuple[Path, Path], changes: dict[str, str], words: str
) -> None:
    options = {"left": sides[0], "right": sides[1], "within": "0,5", "confidence": "0.5", **changes}
    with pytest.raises((AnalysisException, PySparkException), match=words) as raised:
        spark.read.format("coincide").options(**options).load()
    said = str(raised.value)
    # One line of ours, and Spark's number for it.
    assert "Traceback" not in said
    assert [line for line in said.splitlines()[1:] if not line.startswith(" SQLSTATE")] == []
    assert "SPARK_HIDE_TRACEBACK" not in os.environ


def test_workers_that_cannot_run_it_are_refused_before_it_is_registered(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(BackendError, match=f"PYSPARK_PYTHON={sys.executable}") as raised:
        register_source(spark)
    assert "\n" not in str(raised.value)
    monkeypatch.undo()
    register_source(spark)
    with pytest.raises(AnalysisException, match="'left' is missing"):
        spark.read.format("coincide").load()


@pytest.mark.parametrize("name", ["events.txt", "events", "events.parquet"])
def test_what_never_was_parquet(
    spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    other = tmp_path / name
    other.write_text("id,min_time,max_time\n1,0,5\n" * 10)
    options = {"left": sides[0], "right": other, "within": "0,5", "confidence": "0.5"}
    with pytest.raises(AnalysisException) as raised:
        spark.read.format("coincide").options(**options).load()
    said = str(raised.value)
    is_named_parquet = name.endswith(".parquet")
    assert (
        f"right: the data source reads Parquet only (found another format in {other}" in said
    ) == (not is_named_parquet)
    assert ("Convert it to Parquet, for example by: python -c 'import" in said) == (
        not is_named_parquet
    )
    assert ("cannot read" in said) == is_named_parquet


def test_parquet_of_any_name_that_is_corrupt(sides: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "events").write_bytes(sides[1].read_bytes()[:1000])
    options = {"left": f"{sides[0]}", "right": f"{tmp_path / 'events'}", "within": "0,5"}
    with pytest.raises(DataError, match="events as Parquet"):
        CoincideSource({**options, "confidence": "0.5"}).schema()


@pytest.mark.parametrize(("invalid", "lines"), [("drop", 1), ("raise", 0)])
def test_dropping_without_counting_is_told(
    sides: tuple[Path, Path], caplog: pytest.LogCaptureFixture, invalid: str, lines: int
) -> None:
    left, right = map(str, sides)
    options = {"left": left, "right": right, "within": "0,5", "confidence": "0.5"}
    asked = CoincideSource({**options, "invalid": invalid})
    with caplog.at_level(logging.WARNING):
        asked.reader(asked.schema())
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == lines
    assert all("report=JoinReport()" in text for text in told)


def test_a_slice_that_cannot_be_read(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    options = {"left": sides[0], "right": sides[1], "within": "0,5", "confidence": "0.5"}
    frame = spark.read.format("coincide").options(**options).load()
    table = pq.read_table(sides[0])
    wrong = pa.array([10**6, *table["min_time"].to_pylist()[1:]])
    at = table.schema.get_field_index("min_time")
    pq.write_table(table.set_column(at, "min_time", wrong), sides[0], row_group_size=300)
    with pytest.raises(PySparkException, match=r"invalid 'drop'|changed") as raised:
        frame.collect()
    assert str(raised.value).count("Traceback") == 0


@pytest.mark.parametrize("batches", [1, 1000])
def test_a_slice_gives_the_gpu_back(
    sides: tuple[Path, Path], batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is done, and also when the rest of it is not read."""
    released = []
    monkeypatch.setattr(source, "release_gpu", lambda: released.append(True))
    options = {
        "left": f"{sides[0]}", "right": f"{sides[1]}", "within": "-300,100", "confidence": "0.7",
        "batch_pairs": "50", "slices": "1",
    }  # fmt: skip
    asked = CoincideSource(options)
    read = asked.reader(asked.schema()).read(InputPartition(0))
    assert len(list(itertools.islice(read, batches))) > 0
    read.close()
    assert released == [True]
