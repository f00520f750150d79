"""From Parquet to Parquet: the direct way, the exchange, Spark SQL and DuckDB, by how files lie."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from bench.events import Condition, Load
from bench.experiment import Bench, Experiment
from bench.joins import timing_condition
from bench.pipe_steps import PipeSteps
from bench.sessions import consume, spark_session
from bench.timing import Timing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coincide.model.options import Emit

DIRECT, EXCHANGE, SQL = "files", "exchange", "Spark SQL"
LOCAL, DUCKDB = "one process", "DuckDB COPY"
SPARSE = Load(4_000_000, 4.0)
DENSE = Load(200_000, 100.0)
ROWS_IN_GROUP = 100_000
ORDERS: dict[str, tuple[Emit, ...]] = {
    "ordered": ("pairs", "counts", "lists"),
    "half ordered": ("counts",),
    "shuffled": ("counts",),
}
"""How files lie, and what is computed of them."""
_QUICK_ORDERS: dict[str, tuple[Emit, ...]] = {
    "ordered": ("pairs", "lists"),
    "half ordered": ("counts",),
}
BARS = {
    ("pairs", "files"): 4.0,
    ("counts", "files"): 5.0,
    ("pairs", "noop"): 2.8,
    ("counts", "noop"): 4.0,
}
"""Spark SQL over the direct way, on ordered files."""
LOCAL_BARS = {"sparse": 3.0, "dense": 4.0}
"""DuckDB over one process, pairs."""


@dataclass(frozen=True)
class Place:
    """Files of both sides, and where results go."""

    left: Path
    right: Path
    out: Path


def run(bench: Bench) -> None:
    """Time Spark on files of three orders, then one process against DuckDB."""
    sparse = bench.pick(SPARSE, Load(4_000, 4.0))
    dense = bench.pick(DENSE, Load(2_000, 100.0))
    bench.note(sparse=sparse.events, dense=dense.events, rows_in_group=ROWS_IN_GROUP)
    with spark_session(bench) as spark:
        for order, emits in bench.pick(ORDERS, _QUICK_ORDERS).items():
            with parquet_files(bench, sparse, order) as place:
                for emit in emits:
                    _spark(bench, spark, place, order, emit)
                if order == "ordered":
                    _steps(bench, spark, place, sparse)
    for name, load in (("sparse", sparse), ("dense", dense)):
        with parquet_files(bench, load, "ordered") as place:
            _one_process(bench, place, name)


@contextmanager
def parquet_files(bench: Bench, load: Load, order: str) -> Iterator[Place]:
    """Both streams of a load as files: by time, in shuffled blocks, or shuffled."""
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        root = Path(folder)
        place = Place(root / "left.parquet", root / "right.parquet", root / "out")
        bench.say(f"writing {load.events:,} events a side, {order}")
        random = np.random.default_rng(0)
        for path, table in zip(
            (place.left, place.right), load.tables(timestamps=True), strict=True
        ):
            n = table.num_rows
            if order == "half ordered":
                # As a log of several hours, each written by many hands.
                block = max(1, n // 16)
                rows = np.concatenate(
                    [a + random.permutation(min(block, n - a)) for a in range(0, n, block)]
                )
                table = table.take(rows)
            elif order == "shuffled":
                table = table.take(random.permutation(n))
            pq.write_table(table, path, row_group_size=ROWS_IN_GROUP, compression="zstd")
        yield place


def _spark(bench: Bench, spark: SparkSession, place: Place, order: str, emit: Emit) -> None:
    from bench.peers.spark_join import sql_join, variants
    from coincide import CorrelateOptions, correlate_files

    frames = [spark.read.parquet(str(path)) for path in (place.left, place.right)]
    names = variants(broadcast=False)
    hint = bench.fastest(
        f"Spark SQL, {order}, {emit}",
        {
            name: lambda name=name: consume(sql_join(*frames, emit, name))  # type: ignore[misc]
            for name in bench.pick(names, names[:1])
        },
        rounds=0,
    )
    condition = timing_condition(Condition())
    out = str(place.out)

    def files(way: str) -> int:
        done = correlate_files(
            spark, place.left, place.right, condition, emit=emit, output=out, overwrite=True,
            options=CorrelateOptions(way=way),  # type: ignore[arg-type]
        )  # fmt: skip
        return done.counters.pairs  # type: ignore[union-attr]

    def noop(way: str) -> None:
        options = CorrelateOptions(way=way)  # type: ignore[arg-type]
        given = {"emit": emit, "options": options}
        consume(correlate_files(spark, place.left, place.right, condition, **given))

    def sql_files() -> int:
        sql_join(*frames, emit, hint).write.mode("overwrite").parquet(out)
        return _pairs(out, emit)

    def sql_noop() -> None:
        consume(sql_join(*frames, emit, hint))

    ways = (DIRECT, EXCHANGE) if order == "ordered" else ("auto", EXCHANGE)
    targets: dict[str, dict[str, Callable[[], Any]]] = {
        "files": {way: lambda way=way: files(way) for way in ways} | {SQL: sql_files},  # type: ignore[misc]
        "noop": {way: lambda way=way: noop(way) for way in ways} | {SQL: sql_noop},  # type: ignore[misc]
    }
    for target, contestants in targets.items():
        if target == "noop" and (order != "ordered" or emit == "lists"):
            continue
        label = f"{order}, {emit} to {target}"
        timings = bench.alternate(label, contestants, rounds=3 if order == "ordered" else 2)
        if target == "files":
            bench.check_equal(label, {name: timings[name].answer for name in contestants})
        for way in ways:
            bar = BARS.get((emit, target)) if way == DIRECT else None
            bench.ratio(f"{label}: Spark SQL / {way}", timings[SQL], timings[way], bar)


def _steps(bench: Bench, spark: SparkSession, place: Place, load: Load) -> None:
    """Where the seconds of the pairs to files go, by what was timed above and by runs that stop early."""
    from coincide import CorrelateOptions, correlate_files

    frames = spark.read.parquet(str(place.left)), spark.read.parquet(str(place.right))
    timings = bench.report.timings
    to = {
        target: {
            way: timings[f"ordered, pairs to {target}: {way}"] for way in (DIRECT, EXCHANGE, SQL)
        }
        for target in ("files", "noop")
    }
    done = correlate_files(
        spark, place.left, place.right, timing_condition(Condition()),
        options=CorrelateOptions(way="files"), output=str(place.out), overwrite=True,
    )  # fmt: skip
    steps = PipeSteps(bench)
    steps.direct(DIRECT, done, to["files"][DIRECT])  # type: ignore[arg-type]
    steps.exchange(EXCHANGE, frames, load, to["noop"][EXCHANGE], to["files"][EXCHANGE])
    steps.sql(SQL, frames, to["noop"][SQL], to["files"][SQL])
    steps.chart("Pairs to Parquet files, ordered")


def _pairs(folder: str, emit: str) -> int:
    import pyarrow.compute as pc

    if emit == "pairs":
        return sum(pq.read_metadata(p).num_rows for p in Path(folder).glob("*.parquet"))
    if emit == "lists":
        return pc.sum(pc.list_value_length(pq.read_table(folder)["right_id"])).as_py()
    return pc.sum(pq.read_table(folder, columns=["matches"])["matches"]).as_py()


def _one_process(bench: Bench, place: Place, name: str) -> None:
    from pyarrow import fs

    from bench.peers.duckdb_join import DuckDBFiles
    from coincide import CorrelateOptions
    from coincide.engine.files.planning import LocalFilesJoin
    from coincide.engine.files.result_rows import ParquetRows
    from coincide.engine.join.arguments import JoinArguments

    duck = DuckDBFiles(place.left, place.right, bench.cores)
    out = str(place.out) + ".parquet"
    plan = bench.fastest(
        f"{name}, DuckDB",
        {variant: lambda variant=variant: duck.copy(variant, out) for variant in duck.variants},  # type: ignore[misc]
    )

    def ours() -> int:
        options = CorrelateOptions(threads=bench.cores)
        job = LocalFilesJoin(
            place.left, place.right, JoinArguments(timing_condition(Condition()), options=options)
        )
        with ParquetRows(
            out, lambda: fs.LocalFileSystem().open_output_stream(out), job.schema
        ) as rows:
            for batch in job.batches():
                rows.write(batch)
        return rows.rows

    timings: dict[str, Timing] = bench.compared(
        f"{name}, Parquet to Parquet", {LOCAL: ours, DUCKDB: lambda: duck.copy(plan, out)}, rounds=5
    )
    bench.ratio(f"{name}: {DUCKDB} / {LOCAL}", timings[DUCKDB], timings[LOCAL], LOCAL_BARS[name])


ABOUT = """\
4 million events a side at 4 a second (sparse), or 200,000 at 100 a second (dense), ±500 ms, confidence 0.8,
in Parquet files with row groups of 100,000. On Spark (`local[2]`) *direct* tasks read their own row groups,
*exchange* shuffles DataFrames, and *auto* chooses. Spark SQL has its best hint. Results go to Parquet files
or to nothing. Files lie in time order, in order of sixteen blocks, or shuffled. In one process Coincide
joins slice by slice against DuckDB's fastest COPY. The chart shows seconds by step: measured inside the
tasks of the direct way, and as differences of shortened runs of the others.
"""

EXPERIMENT = Experiment(
    summary="Parquet to Parquet: the direct way, the exchange, Spark SQL and DuckDB",
    run=run,
    title="The pipe",
    about=ABOUT,
    needs="duckdb, Java",
)
