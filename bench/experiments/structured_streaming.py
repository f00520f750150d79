"""Structured Streaming: `correlate_streams` against Spark's own stream-stream join, and one process."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.events import LONGEST_US, Condition, stream, with_timestamps
from bench.experiment import Bench, Experiment
from bench.joins import local_join, timing_condition
from bench.processes import CpuClock
from bench.sessions import spark_session
from bench.timing import timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONDITION = Condition(deadline_us=100_000)
DELAY_US = 2_000_000
STREAMING = {
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.sql.shuffle.partitions": "2",
}
OURS, SPARK = "correlate_streams", "Spark's stream-stream join"
SCHEMA = "id BIGINT, min_time TIMESTAMP, max_time TIMESTAMP, key BIGINT"


@dataclass(frozen=True)
class Streams:
    """Two streams of equal size, and how many events of a side a trigger takes."""

    events: int
    rate: float
    keys: int
    trigger: int

    @property
    def by(self) -> list[str]:
        """The keys of the join."""
        return ["key"] if self.keys else []

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Left and right, in order of time."""
        left, right = (self._side(seed) for seed in (1, 2))
        return left, right

    def _side(self, seed: int) -> pa.Table:
        table = stream(self.events, self.rate, seed)
        keys = np.random.default_rng(seed + 10).integers(0, max(1, self.keys), self.events)
        return table.append_column("key", pa.array(keys))

    def write(self, folder: Path) -> None:
        """A file a side and trigger; the last ones lie far behind all others, and close all slices."""
        for name, table in zip(("left", "right"), self.tables(), strict=True):
            (folder / name).mkdir(parents=True)
            end = np.int64(table["max_time"].to_numpy().max()) + 3_600_000_000
            last = {"id": [-1], "min_time": [end], "max_time": [end], "key": [0]}
            starts = range(0, self.events, self.trigger)
            parts = [table.slice(start, self.trigger) for start in starts]
            for i, part in enumerate([*parts, pa.table(last, table.schema)]):
                path = folder / name / f"{i:06d}.parquet"
                pq.write_table(with_keys(part), path)
                os.utime(path, (i, i))  # the order in which Spark reads them


def with_keys(table: pa.Table) -> pa.Table:
    """Times as timestamps, and the keys."""
    return with_timestamps(table).append_column("key", table["key"])


KEYED = Streams(1_000_000, 1_000.0, 200, 50_000)
UNKEYED = Streams(1_000_000, 10.0, 0, 50_000)
OF_SPARK = Streams(200_000, 1_000.0, 200, 50_000)
"""What Spark's own join is given: it would take ten minutes of all."""
SMALL = Streams(6_000, 1_000.0, 200, 100)


@dataclass(frozen=True)
class Ran:
    """What a run took and found."""

    seconds: float
    cpu_seconds: float
    answer: tuple[int, ...]
    reports: list[dict[str, Any]]

    def triggers(self) -> list[float]:
        """Seconds of the triggers that took events, without the first three, which warm up."""
        each = [
            r["durationMs"]["triggerExecution"] / 1000
            for r in self.reports
            if r["numInputRows"] > 2
        ]
        return each[3:] or each

    def state(self, what: str) -> list[int]:
        """A number of the state after each trigger."""
        return [sum(o[what] for o in r["stateOperators"]) for r in self.reports]

    def metric(self, name: str) -> int:
        """The sum over all triggers of one of RocksDB's own numbers."""
        return sum(
            o["customMetrics"].get(name, 0) for r in self.reports for o in r["stateOperators"]
        )


def run(bench: Bench) -> None:
    """Run all streams through both joins."""
    from spark_plugin.ways.streaming.arguments import STATE_STORE

    quick = Streams(600, 100.0, 5, 300)
    with spark_session(bench, STATE_STORE | STREAMING) as spark:
        # First the small one: the session is warm for those whose whole run is a figure.
        small = _run(bench, spark, bench.pick(SMALL, Streams(20, 100.0, 5, 10)), _correlated)
        keyed = _ours(bench, spark, "200 keys", bench.pick(KEYED, quick), 100_000)
        # Quick runs of both have the same streams.
        ours = bench.pick(lambda: _run(bench, spark, OF_SPARK, _correlated), lambda: keyed)()
        _shared(bench, spark, bench.pick(OF_SPARK, quick), ours)
        _ours(bench, spark, "no keys", bench.pick(UNKEYED, Streams(600, 10.0, 0, 300)), 50_000)
    bench.figure(
        "a trigger of 200 events",
        median(small.triggers()),
        "s",
        1.0,
        at_least=False,
        spread=small.triggers(),
    )
    _state(bench, keyed, bench.pick(KEYED, quick))
    _one_process(bench, bench.pick(KEYED, quick))


def _ours(bench: Bench, spark: SparkSession, label: str, streams: Streams, bar: float) -> Ran:
    """Time `correlate_streams`, whose rows must be those of a join of tables."""
    ran = _run(bench, spark, streams, _correlated)
    pairs = local_join(*streams.tables(), "pairs", bench.cores, CONDITION, streams.by)
    bench.check_equal(label, {OURS: ran.answer, "correlate_tables": _answer(pairs)})
    bench.figure(f"{label}: {OURS}", 2 * streams.events / ran.seconds, "events/s", bar)
    each = [2 * streams.trigger / seconds for seconds in ran.triggers()]
    bench.figure(f"{label}: {OURS}, a warm trigger", median(each), "events/s", spread=each)
    return ran


def _shared(bench: Bench, spark: SparkSession, streams: Streams, ours: Ran) -> None:
    """Both joins on the same events."""
    runs = {OURS: ours, SPARK: _run(bench, spark, streams, _stream_join)}
    bench.check_equal("both joins", {name: ran.answer for name, ran in runs.items()})
    for name, ran in runs.items():
        bench.figure(f"both: {name}", 2 * streams.events / ran.seconds, "events/s")
        bench.figure(f"both: {name}, CPU", 2 * streams.events / ran.cpu_seconds, "events/s")
    ratio = runs[SPARK].cpu_seconds / runs[OURS].cpu_seconds
    bench.figure(f"CPU seconds: {SPARK} / {OURS}", ratio, "x", 10.0)


def _run(
    bench: Bench,
    spark: SparkSession,
    streams: Streams,
    joined: Callable[[DataFrame, DataFrame, Streams], DataFrame],
) -> Ran:
    """Read, join and drop the rows, a file a side and trigger."""
    from pyspark.sql import functions as F

    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as name:
        folder = Path(name)
        streams.write(folder)
        bench.say(f"{streams}, {joined.__name__.strip('_')}")
        left, right = (_read(spark, folder / side) for side in ("left", "right"))
        product = F.col("left_id") * F.col("right_id")
        counts = [F.count("*"), F.sum("left_id"), F.sum("right_id"), F.sum(product)]
        found = joined(left, right, streams).observe(
            "answer", *(count.alias(str(i)) for i, count in enumerate(counts))
        )
        writer = found.writeStream.format("noop").trigger(availableNow=True)
        clock = CpuClock()
        seconds, query = timed(lambda: _done(writer, folder / "checkpoint"))
        reports = [json.loads(report.json) for report in query.recentProgress]
    answers = [report["observedMetrics"].get("answer", {}) for report in reports]
    answer = tuple(sum(each.get(str(i)) or 0 for each in answers) for i in range(len(counts)))
    return Ran(seconds, clock.seconds(), answer, reports)


def _done(writer: Any, checkpoint: Path) -> Any:
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination()
    return query


def _read(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def _correlated(left: DataFrame, right: DataFrame, streams: Streams) -> DataFrame:
    from coincide import CorrelateOptions, correlate_streams

    longest = f"{LONGEST_US}us"
    options = CorrelateOptions(left_longest=longest, right_longest=longest)
    pairs = correlate_streams(
        left, right, timing_condition(CONDITION), by=streams.by, left_delay=f"{DELAY_US}us",
        right_delay=f"{DELAY_US}us", options=options,
    )  # fmt: skip
    return pairs.where("left_id >= 0 AND right_id >= 0")


def _stream_join(left: DataFrame, right: DataFrame, streams: Streams) -> DataFrame:
    """As someone would write it in SQL: by key, within reach, then the closed form."""
    from bench.peers.spark_join import sql_stream_join

    return sql_stream_join(left, right, DELAY_US, CONDITION).where("left_id >= 0 AND right_id >= 0")


def _state(bench: Bench, ran: Ran, streams: Streams) -> None:
    """What the state takes, and whether it grows."""
    bench.note(state=ran.reports[len(ran.reports) // 2]["stateOperators"])
    written = ran.metric("rocksdbTotalBytesWritten")
    bench.figure(
        "bytes written to the state",
        written / (2 * streams.events),
        "bytes/event",
        40.0,
        at_least=False,
    )
    rows = ran.state("numRowsTotal")
    first, last = rows[len(rows) // 4], rows[-3]
    bench.figure("state rows, last / first quarter", last / max(1, first), "x", 1.1, at_least=False)


def _one_process(bench: Bench, streams: Streams) -> None:
    """The same through `stream_tables`."""
    from coincide import CorrelateOptions, stream_tables

    left, right = streams.tables()
    longest = f"{LONGEST_US}us"

    def pushed() -> int:
        joined = stream_tables(
            timing_condition(CONDITION), by=streams.by, left_delay=f"{DELAY_US}us",
            right_delay=f"{DELAY_US}us", backend="cpu",
            options=CorrelateOptions(unit="us", left_longest=longest, right_longest=longest),
        )  # fmt: skip
        pairs = 0
        for start in range(0, streams.events, streams.trigger):
            for side, table in (("left", left), ("right", right)):
                pairs += joined.push(side, table.slice(start, streams.trigger)).num_rows
        return pairs + joined.flush().num_rows

    timing = bench.alternate("one process", {"stream_tables": pushed}, rounds=3)["stream_tables"]
    bench.rate("one process: stream_tables", 2 * streams.events, timing, "events/s")


def _answer(pairs: pa.Table) -> tuple[int, ...]:
    from bench.fingerprints import fingerprint_of_table

    return fingerprint_of_table(pairs.select(["left_id", "right_id"]))


ABOUT = """\
Two streams, one million events each, come as Parquet files; a trigger takes 50,000 events of each. d = 100
ms, ct 0.8, lengths of 20 to 200 ms. With 200 keys there are 1,000 events a second and side, without keys
10. Delays are 2 s. Rows go to the noop sink. Spark's own stream-stream join compares keys, a range of
times, and then the closed form in SQL. Both keep their state in RocksDB. It gets 200,000 events a side.
CPU seconds are those of the driver, its JVM and all workers, from the start of the query to its end.
"""

EXPERIMENT = Experiment(
    summary="streams on Spark: correlate_streams against Spark's stream-stream join",
    run=run,
    title="Structured Streaming",
    about=ABOUT,
    needs="psutil, Java",
)
