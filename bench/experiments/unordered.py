"""Parquet in no order on Spark: tasks read and pack it, next to Spark SQL and to Spark's own reading."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
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
from bench.sessions import any_frame, consume, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.model.options import Emit

SPARSE, HALF, DENSE = "4 M sparse", "4 M sparse, half in order", "200 k dense"
CASES: dict[str, tuple[Load, Load, dict[Emit, float]]] = {
    SPARSE: (Load(4_000_000, 4.0), Load(4_000, 4.0), {"pairs": 2.8, "counts": 5.0}),
    HALF: (Load(4_000_000, 4.0), Load(4_000, 4.0), {"pairs": 8.0, "counts": 8.0}),
    DENSE: (Load(200_000, 100.0), Load(2_000, 100.0), {"pairs": 1.2}),
}
"""A load, that of quick runs, and the bars."""
BY_SPARK = "Coincide, rows by Spark"
GROWTH = (1_000_000, 4_000_000)
"""Events a side: the time for each row is to stay within a fifth."""
_GROUP_ROWS = 1 << 18


def run(bench: Bench) -> None:
    """Compare and time all cases."""
    with spark_session(bench) as spark:
        for name, (load, quick, bars) in CASES.items():
            with _files(bench, spark, bench.pick(load, quick), is_half=name == HALF) as frames:
                for emit, bar in bars.items():
                    _compare(bench, f"{name}, {emit}", frames, emit, bar)
        for events in bench.pick(GROWTH, ()):
            with _files(bench, spark, Load(events, 4.0)) as frames:
                bench.alternate(
                    f"{events:,} rows a side",
                    {"counts": partial(_consumed, *frames, "counts")}, rounds=3, warmups=1,
                )  # fmt: skip


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


def _compare(bench: Bench, label: str, frames: list[DataFrame], emit: Emit, bar: float) -> None:
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
    ours, rows, sql = bench.alternate(
        label,
        {
            "Coincide": partial(_consumed, *frames, emit),
            BY_SPARK: partial(_consumed, *others, emit),
            f"Spark SQL, {best}": partial(_in_sql, *frames, emit, best),
        },
        rounds=5, warmups=2,
    ).values()  # fmt: skip
    bench.ratio(f"{label}: best Spark SQL / Coincide", sql, ours, bar)
    bench.ratio(f"{label}: {BY_SPARK} / Coincide", rows, ours)


def _consumed(left: DataFrame, right: DataFrame, emit: Emit) -> None:
    consume(spark_join(left, right, emit))


def _in_sql(left: DataFrame, right: DataFrame, emit: Emit, variant: str) -> None:
    from bench.peers.spark_join import sql_join

    consume(sql_join(left, right, emit, variant))


ABOUT = """\
`local[2]`, one session, Parquet in no order of time in, to the noop sink, planning included. Of files that
are half in order the first half of the time is in its order. Spark SQL is that of the page on Spark, with
the best of its hints. *Rows by Spark* is the same join of DataFrames that are more than a read, whose rows
go through the JVM into Python.
"""

EXPERIMENT = Experiment(
    summary="Parquet in no order on Spark, against the best hand-written Spark SQL",
    run=run,
    title="Files in no order",
    about=ABOUT,
    needs="Java",
)
