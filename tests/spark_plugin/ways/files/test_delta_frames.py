"""DataFrames that only read a Delta table are files, too. Fetches Delta (9 MB) from Maven Central."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from tests.helpers.places import ROOT
from tests.helpers.spark_process import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RELEASES = {"4.1": "io.delta:delta-spark_4.1_2.13:4.1.0"}
"""The release of Delta, by that of Spark."""
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
}
NOT_NEEDED = (
    "org.slf4j:slf4j-api", "io.unitycatalog:unitycatalog-client", "com.google.code.findbugs:jsr305",
    *(f"org.apache.logging.log4j:log4j-{name}" for name in ("slf4j2-impl", "api", "core")),
)  # fmt: skip
NO_JAR = 77
"""What the program below ends with if Delta cannot be fetched."""


def test_reads_of_delta_tables(java_home: str, tmp_path: Path) -> None:
    release = RELEASES.get(".".join(pyspark.__version__.split(".")[:2]))
    if release is None:
        pytest.skip(f"no Delta is named for Spark {pyspark.__version__}")
    env = spark_environment(JAVA_HOME=java_home)
    given = " ".join(f"--conf {name}={value}" for name, value in SETTINGS.items())
    fetched = f"--packages {release} --exclude-packages {','.join(NOT_NEEDED)}"
    env["PYSPARK_SUBMIT_ARGS"] = f"{fetched} {given} {env['PYSPARK_SUBMIT_ARGS']}"
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark_plugin.ways.files.test_delta_frames", str(tmp_path)],
        cwd=ROOT, env=env, check=False, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    if done.returncode == NO_JAR:
        pytest.skip("Delta's jars cannot be fetched")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    assert done.stdout.splitlines()[-1] == "all is as it should be"


def checked(spark: SparkSession, folder: Path) -> None:
    """Joins of tables that Spark has written, by their rows and without Spark's scan."""
    from coincide import CorrelateOptions, correlate, correlate_tables
    from spark_plugin.frames.plain_reads import plain_read
    from tests.engine.test_lake_tables import QUESTIONS, WITHIN, events
    from tests.helpers.rows import in_order

    def read(place: str, **options: Any) -> Any:
        return spark.read.format("delta").options(**options).load(str(folder / place))

    for seed, by in ((1, ["day", "name"]), (2, [])):
        given = spark.createDataFrame(events(seed))
        writer = given.repartition(3).write.format("delta").partitionBy(*by)
        writer.save(str(folder / f"{seed} x"))
        spark.sql(f"DELETE FROM delta.`{folder}/{seed} x` WHERE id % 7 = 3")
    for version in ("0", "1"):
        frames = [read(f"{seed} x", versionAsOf=version) for seed in (1, 2)]
        if version == "1":
            frames = [read(f"{seed} x") for seed in (1, 2)]
        rows = [frame.toArrow() for frame in frames]
        assert len(rows[0]) == 300 - (version == "1") * len(range(3, 300, 7))
        for asked in QUESTIONS.values():
            if "filename" in asked.get("left_columns", ()):
                continue
            options = CorrelateOptions(way="exchange", slices=3)
            found = correlate(*frames, **WITHIN, **asked, options=options)
            assert "parquet" not in found._jdf.queryExecution().optimizedPlan().toString()
            expected = correlate_tables(*rows, **WITHIN, **asked)
            table = found.toArrow()
            assert table.num_rows
            assert in_order(table) == in_order(expected.cast(table.schema))
    needed = ["id", "day", "name"]
    assert plain_read(frames[0], needed) is not None
    assert plain_read(frames[0].where("day = '2026-01-01'"), needed) is None

    for place, settings in (
        ("vectors", {"delta.enableDeletionVectors": "true"}),
        ("mapped", {"delta.columnMapping.mode": "name"}),
    ):
        given = spark.createDataFrame(events(3)).coalesce(1)
        given.write.format("delta").options(**settings).save(str(folder / place))
        frame = read(place)
        assert (plain_read(frame, needed) is None) == (place == "mapped")
        spark.sql(f"DELETE FROM delta.`{folder}/{place}` WHERE id = 3010")
        frame = read(place)
        assert plain_read(frame, needed) is None
        found = correlate(frame, frames[1], **WITHIN).toArrow()
        expected = correlate_tables(frame.toArrow(), rows[1], **WITHIN)
        assert 3010 not in frame.toArrow()["id"].to_pylist()
        assert in_order(found) == in_order(expected)
    every_way(spark, folder)
    print("all is as it should be")


def every_way(spark: SparkSession, folder: Path) -> None:
    """A lake whose folders name columns, with a Delta table: the same rows by each way."""
    from coincide import CorrelateOptions, JoinReport, correlate, correlate_tables
    from spark_plugin.frames.plain_reads import plain_read
    from tests.engine.test_lake_tables import QUESTIONS, WITHIN, events
    from tests.helpers.rows import in_order

    for seed, kind, by in ((4, "parquet", ["day", "name"]), (5, "delta", ["day"])):
        given = spark.createDataFrame(events(seed)).coalesce(1)
        ordered = given.sortWithinPartitions(*by, "min_time")
        ordered.write.format(kind).partitionBy(*by).save(str(folder / kind))
    lake = spark.read.parquet(str(folder / "parquet"))
    right = spark.read.format("delta").load(str(folder / "delta"))
    some = lake.where("day IN ('2026-01-01', '2026-01-03') AND name IS NOT NULL")
    for left in (lake, some):
        assert plain_read(left, ["id", "name"]) is not None
        rows = left.toArrow(), right.toArrow()
        assert (len(rows[0]) == 300) == (left is lake)
        for asked in QUESTIONS.values():
            if "filename" in asked.get("left_columns", ()):
                continue
            expected = correlate_tables(*rows, **WITHIN, **asked)
            assert expected.num_rows
            for way in ("files", "exchange", "broadcast-both", "broadcast-left", "broadcast-right"):
                options, report = CorrelateOptions(way=way), JoinReport()
                found = correlate(left, right, **WITHIN, **asked, options=options, report=report)
                table = found.toArrow()
                assert in_order(table) == in_order(expected.cast(table.schema)), (way, asked)
                assert str(report.summary().way).startswith(way.partition("-")[0]), way


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.builder.master("local[2]").getOrCreate()
    except Exception:
        os._exit(NO_JAR)
    checked(session, Path(sys.argv[1]))
