"""Files given by name whose folders tell columns: `correlate_files` takes these as `correlate` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    DataError,
    JoinReport,
    SchemaError,
    correlate,
    correlate_files,
)
from coincide.engine.files.planning import NotDirect
from tests.helpers.rows import lists_in_order
from tests.spark_plugin.ways.files.test_folder_columns import events, written

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]
ASKED: dict[str, Any] = {"within": (-40, 40), "confidence": 0.4, "by": ["site", "part"]}


@pytest.fixture
def lake(tmp_path: Path) -> list[Path]:
    sides = []
    for number in (0, 1):
        table = events(number)
        site = pa.array([("north", "south", "José")[i % 3] for i in range(len(table))])
        written(tmp_path / f"{number}", table.append_column("site", site), "site")
        sides.append(tmp_path / f"{number}")
    return sides


def test_columns_that_folders_name(spark: SparkSession, lake: list[Path]) -> None:
    report = JoinReport()
    found = correlate_files(spark, *lake, **ASKED, report=report)
    frames = [spark.read.parquet(str(folder)) for folder in lake]
    rows = lists_in_order(found.toArrow())
    assert rows == lists_in_order(correlate(*frames, **ASKED).toArrow())
    assert rows
    summary = report.summary()
    assert [summary.left.rows, summary.right.rows] == [frame.count() for frame in frames]


def test_they_are_written(spark: SparkSession, lake: list[Path], tmp_path: Path) -> None:
    done = correlate_files(spark, *lake, **ASKED, output=tmp_path / "pairs")
    assert done.rows == spark.read.parquet(str(tmp_path / "pairs")).count() > 0
    assert "folders name 'site' of left" in done.why
    with pytest.raises(NotDirect, match="folders name 'site' of left"):
        correlate_files(spark, *lake, **ASKED, options=CorrelateOptions(way="files"))


AT: dict[str, Any] = {"within": (0, 0), "left_time": "t", "right_time": "t"}


def test_folders_above_name_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """And what folders below name goes before what files hold, as in Spark."""
    inside = tmp_path / "sensor=1" / "day=3"
    inside.mkdir(parents=True)
    rows = pa.table({"t": [5, 6], "sensor": [7, 8], "day": [0, 1]})
    pq.write_table(rows, inside / "p.parquet")
    asked: dict[str, Any] = {**AT, "left_columns": ["sensor", "day"], "right_columns": "t"}
    found = correlate_files(spark, tmp_path / "sensor=1", tmp_path / "sensor=1", **asked)
    assert sorted(map(tuple, found.collect())) == [(7, 3, 5), (8, 3, 6)]
    by_files = CorrelateOptions(way="files")  # no folder below names anything
    found = correlate_files(spark, inside, inside, **asked, options=by_files)
    assert sorted(map(tuple, found.collect())) == [(7, 0, 5), (8, 1, 6)]


def test_names_of_folders_are_no_patterns(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("b*", "ba", "bb", "a[1]"):
        inside = tmp_path / "lake" / f"s%25={quote(name, safe='*[]')}"
        inside.mkdir(parents=True)
        pq.write_table(pa.table({"t": [5]}), inside / "p.parquet")
    lake = tmp_path / "lake"
    found = correlate_files(spark, lake, lake, **AT, by="s%", left_columns=[], right_columns="t")
    assert sorted(map(tuple, found.collect())) == [(s, 5) for s in ("a[1]", "b*", "ba", "bb")]


def test_what_is_refused(spark: SparkSession, lake: list[Path]) -> None:
    with pytest.raises(SchemaError, match="no column 'place'"):
        correlate_files(spark, *lake, **{**ASKED, "by": ["site", "place"]})
    with pytest.raises(SchemaError, match="no column 'site'"):
        correlate_files(spark, [lake[0] / "site=north"], lake[1], **ASKED)
    pq.write_table(pa.table({"min_time": [5], "max_time": [5]}), lake[0] / "stray.parquet")
    with pytest.raises(DataError, match=r"stray\.parquet do not name 'site'.* Move the file"):
        correlate_files(spark, *lake, **ASKED)
