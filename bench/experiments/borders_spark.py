"""Border crossings and transitions of Parquet in no order on Spark: packed where read, next to SQL."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.borders import BorderLoad
from bench.experiment import Bench, Experiment
from bench.sessions import any_frame, consume, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOAD = BorderLoad(queries=40, width=0.02, fluctuation=2e-3, streams=2000, readings=1000)
"""Few queries: hand-written SQL compares each move with all of them."""
BY_SPARK = "Coincide, rows by Spark"
WITHIN = "20ms"
_GROUP_ROWS = 1 << 18
_FILES = 4


def run(bench: Bench) -> None:
    """Compare and time crossings of readings, and transitions of the crossings."""
    load = replace(
        LOAD, streams=bench.pick(LOAD.streams, 20), readings=bench.pick(LOAD.readings, 200)
    )
    with (
        spark_session(bench) as spark,
        tempfile.TemporaryDirectory(prefix="coincide-bench-") as place,
    ):
        bench.say(f"writing {load.size:,} readings in no order")
        readings = _written(spark, Path(place, "readings"), _readings(load))
        ranges = load.ranges()
        queries = pa.table({
            "query_id": np.arange(load.queries), "lower": ranges.lower[:, 0],
            "upper": ranges.upper[:, 0],
        })  # fmt: skip
        _crossings(bench, spark, readings, queries)
        found = _found(readings, queries).toArrow()
        _transitions(bench, _written(spark, Path(place, "events"), found))


def _readings(load: BorderLoad) -> pa.Table:
    """A reading of each stream each millisecond, shifted by stream."""
    streams = np.repeat(np.arange(load.streams), load.readings)
    times = np.tile(np.arange(load.readings) * 1000, load.streams) + streams % 1000
    return pa.table({
        "stream_id": streams, "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "value": load.walks().values[:, 0],
    })  # fmt: skip


def _written(spark: SparkSession, folder: Path, table: pa.Table) -> DataFrame:
    """Files of the rows in no order."""
    folder.mkdir()
    shuffled = table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))
    rows = -(-table.num_rows // _FILES)
    for i in range(_FILES):
        path = folder / f"{i}.parquet"
        part = shuffled.slice(i * rows, rows)
        pq.write_table(part, path, row_group_size=_GROUP_ROWS, compression="zstd")
    return spark.read.parquet(str(folder))


def _found(readings: DataFrame, queries: pa.Table) -> DataFrame:
    from coincide import border_crossings

    return border_crossings(readings, queries)


def _in_sql(readings: DataFrame, queries: DataFrame) -> DataFrame:
    """A window for the reading before, and a join of moves and ranges; of times that differ."""
    return readings.sparkSession.sql(
        """WITH moves AS (
            SELECT *, lag(value) OVER each AS was, lag(time) OVER each AS min_time
            FROM {readings} WINDOW each AS (PARTITION BY stream_id ORDER BY time)
        ) SELECT query_id, stream_id, IF(value >= lower AND value < upper, 'I', 'O') AS event,
            min_time, time AS max_time
        FROM moves JOIN {queries} ON (was >= lower AND was < upper)
            <> (value >= lower AND value < upper)""",
        readings=readings, queries=queries,
    )  # fmt: skip


def _crossings(bench: Bench, spark: SparkSession, readings: DataFrame, queries: pa.Table) -> None:
    from pyspark.sql import functions as F

    rows, table = any_frame(readings), F.broadcast(spark.createDataFrame(queries))
    answers = {
        "Coincide": _sums(_found(readings, queries)),
        BY_SPARK: _sums(_found(rows, queries)),
        "Spark SQL": _sums(_in_sql(readings, table)),
    }
    bench.check_equal("crossings", answers)
    ours, by_rows, sql = bench.alternate(
        "crossings",
        {
            "Coincide": lambda: consume(_found(readings, queries)),
            BY_SPARK: lambda: consume(_found(rows, queries)),
            "Spark SQL": lambda: consume(_in_sql(readings, table)),
        },
        rounds=3, warmups=1,
    ).values()  # fmt: skip
    bench.ratio(f"crossings: {BY_SPARK} / Coincide", by_rows, ours)
    bench.ratio("crossings: Spark SQL / Coincide", sql, ours)


def _transitions(bench: Bench, events: DataFrame) -> None:
    from coincide import transitions

    found = partial(transitions, within=WITHIN, confidence=0.9)
    rows = any_frame(events)
    bench.check_equal(
        "transitions", {"Coincide": _sums(found(events)), BY_SPARK: _sums(found(rows))}
    )
    ours, by_rows = bench.alternate(
        "transitions",
        {"Coincide": lambda: consume(found(events)), BY_SPARK: lambda: consume(found(rows))},
        rounds=3, warmups=1,
    ).values()  # fmt: skip
    bench.ratio(f"transitions: {BY_SPARK} / Coincide", by_rows, ours)


def _sums(found: DataFrame) -> tuple[int, ...]:
    """How many rows there are, and a hash of all, whatever their order."""
    columns = ", ".join(f"`{name}`" for name in found.columns)
    row = found.selectExpr("count(1)", f"sum(xxhash64({columns}) % 1000000007)").collect()[0]
    return tuple(int(each or 0) for each in row)


ABOUT = """\
`local[2]`, one session, readings in no order of stream or time in, to the noop sink, planning included.
Hand-written Spark SQL takes the reading before from a window, and joins moves with ranges that are
broadcast. *Rows by Spark* is the same search of a DataFrame that is more than a read: its rows go through
the JVM into Python. Without `until`, transitions of such rows need a job that looks for the last event.
"""

EXPERIMENT = Experiment(
    summary="border crossings of Parquet in no order on Spark, next to hand-written SQL",
    run=run,
    title="Crossings of files in no order",
    about=ABOUT,
    needs="Java",
)
