"""Tables of Delta as files on Spark: tasks read what their logs name, and what they tell of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    DataError,
    JoinReport,
    TimingCondition,
    correlate_files,
    correlate_tables,
    within,
)
from coincide.command_line import run
from spark_plugin.frames.delta_reads import refuse_elsewhere
from tests.engine.test_lake_tables import delta, events
from tests.helpers.rows import in_order

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-20, 60), 0.4)


@pytest.mark.parametrize("by", [(), ("day", "name")])
def test_tasks_read_what_the_log_names(
    spark: SparkSession, tmp_path: Path, by: tuple[str, ...]
) -> None:
    rows = [delta(tmp_path / str(seed), seed, *by).to_pyarrow_table() for seed in (1, 2)]
    paths = [str(tmp_path / str(seed)) for seed in (1, 2)]
    asked: dict[str, Any] = {"by": ["name"], "left_columns": ["id", "day"]}
    expected = in_order(correlate_tables(*rows, CONDITION, **asked))
    report = JoinReport()
    found = correlate_files(spark, *paths, CONDITION, **asked, report=report)
    assert in_order(found.toArrow()) == expected
    assert report.summary().way == "files"
    exchanged = CorrelateOptions(way="exchange")
    if by:
        with pytest.raises(DataError, match="left: only the table's log tells name and day"):
            correlate_files(spark, *paths, CONDITION, **asked, options=exchanged)
    else:
        found = correlate_files(spark, *paths, CONDITION, **asked, options=exchanged)
        assert in_order(found.toArrow()) == expected


def test_the_command_reads_a_delta_table_on_spark(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark
    for seed in (1, 2):
        write_deltalake(tmp_path / str(seed), events(seed), partition_by=["name"])
    words = ["join", str(tmp_path / "1"), str(tmp_path / "2"), "-o", str(tmp_path / "out")]
    words += ["--within", "-20", "60", "--confidence", "0.4", "--by", "name"]
    assert run([*words, "--engine", "spark"]) == 0
    assert "slice of row groups" in capsys.readouterr().out
    assert run([*words, "--engine", "spark", "--way", "exchange", "--overwrite"]) == 2
    assert "only the table's log tells name" in capsys.readouterr().err


@pytest.mark.spark
def test_a_delta_table_elsewhere_is_not_read_as_its_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "files").mkdir()
    for uri in (f"file://{tmp_path}/t", f"file://{tmp_path}/t/"):
        with pytest.raises(
            DataError, match=r"left: file:.* is a Delta table, and only those of this"
        ):
            refuse_elsewhere(spark, "left", uri)
    refuse_elsewhere(spark, "left", f"file://{tmp_path}/files")
    refuse_elsewhere(spark, "left", "nowhere://bucket/t")  # no file system: Spark says so
