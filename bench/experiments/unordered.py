"""Parquet in no order on Spark: tasks read and pack it, next to Spark SQL and to Spark's own reading."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import spark_join
from bench.processes import peak_memory
from bench.sessions import any_frame, consume, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.model.options import Emit

SPARSE, HALF, DENSE = "4 M sparse", "4 M sparse, half in order", "200 k dense"
COLD = "4 M sparse, files from disk"
CASES: dict[str, tuple[Load, Load, dict[Emit, float]]] = {
    SPARSE: (Load(4_000_000, 4.0), Load(4_000, 4.0), {"pairs": 2.8, "counts": 5.0}),
    HALF: (Load(4_000_000, 4.0), Load(4_000, 4.0), {"pairs": 8.0, "counts": 8.0}),
    COLD: (Load(4_000_000, 4.0), Load(4_000, 4.0), {"pairs": 2.8}),
    DENSE: (Load(200_000, 100.0), Load(2_000, 100.0), {"pairs": 1.2}),
}
"""A load, that of quick runs, and the bars."""
BY_SPARK = "Coincide, rows by Spark"
GROWTH = (1_000_000, 4_000_000, 16_000_000)
"""Events a side."""
GROWTH_BAR, MEMORY_BAR = 1.2, 1.3
"""Time of a row, and memory of the largest worker, of the most events next to the fewest."""
PLANNED_FILES, QUICK_PLANNED_FILES, PLANNING_BAR_S = 1_000, 10, 0.15
"""Files of both sides together."""
_PLANNED_ROWS = 1_000
_GROUP_ROWS = 1 << 18


def run(bench: Bench) -> None:
    """Compare and time all cases."""
    with spark_session(bench) as spark:
        for name, (load, quick, bars) in CASES.items():
            with _files(bench, spark, bench.pick(load, quick), is_half=name == HALF) as frames:
                for emit, bar in bars.items():
                    _compare(bench, f"{name}, {emit}", frames, emit, bar, is_cold=name == COLD)
        _grow(bench, spark, bench.pick(GROWTH, ()))
        _plan(bench, spark, bench.pick(PLANNED_FILES, QUICK_PLANNED_FILES))


@contextmanager
def _files(
    bench: Bench, spark: SparkSession, load: Load, *, is_half: bool = False
) -> Iterator[list[DataFrame]]:
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        bench.say(f"writing {load.events:,} events a side in no order")
        frames = []
        for i, table in enumerate(load.tables(timestamps=True)):
            order = np.random.default_rng(i).permutation(table.num_rows)
            if is_half:  # the table is in order of time, and so is the first half of the file
                middle = table.num_rows // 2
                order = np.concatenate([np.arange(middle), order[order >= middle]])
            path = Path(folder) / f"{i}.parquet"
            shuffled = table.take(pa.array(order))
            pq.write_table(shuffled, path, row_group_size=_GROUP_ROWS, compression="zstd")
            frames.append(spark.read.parquet(str(path)))
        yield frames


def _from_disk(frames: list[DataFrame], work: Callable[[], None]) -> None:
    """Work on files that the system's cache holds no longer."""
    for frame in frames:
        for uri in frame.inputFiles():
            file = os.open(uri.removeprefix("file://"), os.O_RDONLY)
            try:
                os.fsync(file)  # what is not written yet would stay
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)
    work()


def _grow(bench: Bench, spark: SparkSession, sizes: tuple[int, ...]) -> None:
    """Time of a row, and memory of a worker, as the files grow."""
    of_row, of_worker = [], []
    for events in sizes:
        with _files(bench, spark, Load(events, 4.0)) as frames, peak_memory() as peak:
            (timing,) = bench.alternate(
                f"{events:,} rows a side",
                {"counts": partial(_consumed, *frames, "counts")}, rounds=3, warmups=1,
            ).values()  # fmt: skip
        of_row.append(timing.median / events)
        of_worker.append(peak.worker)
        bench.figure(f"{events:,} rows a side: largest worker", peak.worker / 1e9, "GB")
    if not sizes:
        return
    for name, values, bar in (
        ("time of a row", of_row, GROWTH_BAR), ("largest worker", of_worker, MEMORY_BAR),
    ):  # fmt: skip
        bench.figure(
            f"{name}, {sizes[-1]:,} rows a side / {sizes[0]:,}", values[-1] / values[0], "x", bar,
            at_least=False,
        )  # fmt: skip


def _plan(bench: Bench, spark: SparkSession, count: int) -> None:
    """Plan joins of many small files: what it takes, and that Spark has run nothing."""
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        frames = []
        for i, table in enumerate(Load(_PLANNED_ROWS * count // 2, 4.0).tables(timestamps=True)):
            side = Path(folder) / str(i)
            side.mkdir()
            order = np.random.default_rng(i).permutation(table.num_rows)
            shuffled = table.take(pa.array(order))
            for file in range(count // 2):
                part = shuffled.slice(file * _PLANNED_ROWS, _PLANNED_ROWS)
                pq.write_table(part, side / f"{file}.parquet")
            frames.append(spark.read.parquet(str(side)))
        label, group = f"{count:,} files, planned", "planning of files"
        spark.sparkContext.setJobGroup(group, group)
        (timing,) = bench.alternate(
            label, {"exchange": partial(spark_join, *frames, "counts", way="exchange")},
            rounds=5, warmups=3,
        ).values()  # fmt: skip
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    bench.seconds(label, timing, PLANNING_BAR_S)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    bench.check_equal(f"{label}: jobs", {"Spark ran": len(jobs), "none": 0})


def _compare(
    bench: Bench, label: str, frames: list[DataFrame], emit: Emit, bar: float, *, is_cold: bool
) -> None:
    from bench.peers.spark_join import sql_join, variants

    names = variants(broadcast=label.startswith(DENSE))
    works = {name: partial(_in_sql, *frames, emit, name) for name in bench.pick(names, names[:1])}
    best = bench.fastest(f"Spark SQL, {label}", works, rounds=1)
    others = [any_frame(frame) for frame in frames]
    bench.check_equal(
        label,
        {
            "Coincide": rows_and_pairs(spark_join(*frames, emit), emit),
            BY_SPARK: rows_and_pairs(spark_join(*others, emit), emit),
            "Spark SQL": rows_and_pairs(sql_join(*frames, emit, best), emit),
        },
    )
    contestants: dict[str, Callable[[], None]] = {
        "Coincide": partial(_consumed, *frames, emit),
        BY_SPARK: partial(_consumed, *others, emit),
        f"Spark SQL, {best}": partial(_in_sql, *frames, emit, best),
    }
    if is_cold:
        contestants = {
            name: partial(_from_disk, frames, work) for name, work in contestants.items()
        }
    ours, rows, sql = bench.alternate(label, contestants, rounds=5, warmups=2).values()
    bench.ratio(f"{label}: best Spark SQL / Coincide", sql, ours, bar)
    bench.ratio(f"{label}: {BY_SPARK} / Coincide", rows, ours)


def _consumed(left: DataFrame, right: DataFrame, emit: Emit) -> None:
    consume(spark_join(left, right, emit))


def _in_sql(left: DataFrame, right: DataFrame, emit: Emit, variant: str) -> None:
    from bench.peers.spark_join import sql_join

    consume(sql_join(left, right, emit, variant))


ABOUT = """\
`local[2]`, one session, Parquet in no order of time in, to the noop sink, planning included. Files that are
half in order have the first half of the time in its order. Spark SQL is that of the page on Spark, with
the best of its hints. *Files from disk* are dropped from the system's cache before each round. *Rows by
Spark* is the same join of DataFrames that are more than a read, whose rows go through the JVM into Python.
"""

EXPERIMENT = Experiment(
    summary="Parquet in no order on Spark, against the best hand-written Spark SQL",
    run=run,
    title="Files in no order",
    about=ABOUT,
    needs="Java",
)
