"""Files given by name whose folders tell columns: `correlate_files` takes these as `correlate` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, JoinReport, SchemaError, correlate, correlate_files
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


@pytest.mark.parametrize(
    ("given", "of_site"),
    [("{}", "true"), ("{}/*", "true"), ("{}/site=north", "site = 'north'")],
)
def test_columns_that_folders_name(
    spark: SparkSession, lake: list[Path], given: str, of_site: str
) -> None:
    report = JoinReport()
    words = [given.format(folder) for folder in lake]
    found = correlate_files(spark, *words, **ASKED, report=report)
    frames = [spark.read.parquet(str(folder)).where(of_site) for folder in lake]
    rows = lists_in_order(found.toArrow())
    assert rows == lists_in_order(correlate(*frames, **ASKED).toArrow())
    assert rows
    summary = report.summary()
    assert [summary.left.rows, summary.right.rows] == [frame.count() for frame in frames]


def test_they_are_written(spark: SparkSession, lake: list[Path], tmp_path: Path) -> None:
    done = correlate_files(spark, *map(str, lake), **ASKED, output=tmp_path / "pairs")
    assert done.rows == spark.read.parquet(str(tmp_path / "pairs")).count() > 0
    assert "not by files" not in done.why


def test_columns_that_nothing_names(spark: SparkSession, lake: list[Path]) -> None:
    options = CorrelateOptions(way="files")
    with pytest.raises(SchemaError, match="no column 'place'"):
        correlate_files(
            spark, *map(str, lake), **{**ASKED, "by": ["site", "place"]}, options=options
        )
