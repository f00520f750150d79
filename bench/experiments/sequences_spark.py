"""Sequences and coincidences on Spark, next to SQL that joins bins of time, one join after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.experiment import Bench, Experiment
from bench.experiments.sequences import GAP, MATCHES, NAMES
from bench.sessions import consume, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HINTS = {
    "planner's choice": None,
    "shuffled hash joins": "shuffle_hash",
    "sort-merge joins": "merge",
}
"""The hints that Spark is given."""
BAR = 3.0
WINDOW = MATCHES * GAP
OURS = "Coincide"


def run(bench: Bench) -> None:
    """Compare and time all sequences and their numbers, of files in no order of time and in it."""
    events = bench.pick(1_000_000, 2_000)
    rng = np.random.default_rng(3)
    tables = [_stream(rng, events) for _ in NAMES]
    with spark_session(bench) as spark:
        for order, given in (("", tables), (", in time order", [t.sort_by("t") for t in tables])):
            with _files(spark, given) as frames:
                _compare(bench, f"all sequences{order}", frames, in_sql, ours, BAR)
                counts = partial(ours, emit="counts")
                _compare(bench, f"counts{order}", frames, counts_in_sql, counts, None)


def _stream(rng: np.random.Generator, events: int) -> pa.Table:
    return pa.table({"id": np.arange(events), "t": rng.integers(0, events * GAP, events)})


@contextmanager
def _files(spark: SparkSession, tables: list[pa.Table]) -> Iterator[list[DataFrame]]:
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        paths = [Path(folder) / f"{name}.parquet" for name in NAMES]
        for path, table in zip(paths, tables, strict=True):
            pq.write_table(table, path, row_group_size=1 << 17)
        yield [spark.read.parquet(str(path)) for path in paths]


def ours(frames: list[DataFrame], **more: Any) -> DataFrame:
    """The sequences of three streams, or what else is asked for."""
    from coincide import sequences

    return sequences(frames, [(0, WINDOW)] * 2, time="t", **more)


def in_sql(frames: list[DataFrame], hint: str | None) -> DataFrame:
    """The same in SQL: an event is in its own bin, and one that follows in the bin before, too."""
    from pyspark.sql import functions as F

    first, second, third = frames
    own, before = f"t div {WINDOW}", f"explode(array(t div {WINDOW}, t div {WINDOW} - 1))"
    a = first.selectExpr("id AS a_id", "t AS a_t", f"{own} AS bin")
    b = second.selectExpr("id AS b_id", "t AS b_t", f"{own} AS own", f"{before} AS bin")
    c = third.selectExpr("id AS c_id", "t AS c_t", f"{before} AS own")
    if hint is not None:
        b, c = b.hint(hint), c.hint(hint)
    pairs = a.join(b, "bin").where(F.expr(f"b_t BETWEEN a_t AND a_t + {WINDOW}"))
    found = pairs.join(c, "own").where(F.expr(f"c_t BETWEEN b_t AND b_t + {WINDOW}"))
    return found.select("a_id", "b_id", "c_id")


def counts_in_sql(frames: list[DataFrame], hint: str | None) -> DataFrame:
    """How many sequences begin at each event."""
    from pyspark.sql import functions as F

    return in_sql(frames, hint).groupBy("a_id").agg(F.count("*").alias("sequences"))


def _compare(
    bench: Bench,
    label: str,
    frames: list[DataFrame],
    theirs: Callable[..., DataFrame],
    mine: Callable[..., DataFrame],
    bar: float | None,
) -> None:
    hints = bench.pick(list(HINTS), list(HINTS)[:1])
    works = {name: partial(_consumed, partial(theirs, frames, HINTS[name])) for name in hints}
    best = bench.fastest(f"{label}, Spark SQL", works, rounds=1)
    joins = {
        OURS: partial(mine, frames),
        f"Spark SQL, {best}": partial(theirs, frames, HINTS[best]),
    }
    bench.check_equal(label, {name: in_short(join()) for name, join in joins.items()})
    own, sql = bench.alternate(
        label, {name: partial(_consumed, join) for name, join in joins.items()}, rounds=5, warmups=1
    ).values()
    bench.ratio(f"{label}: best Spark SQL / {OURS}", sql, own, bar)


def _consumed(join: Callable[[], DataFrame]) -> None:
    consume(join())


def in_short(frame: DataFrame) -> tuple[int, int]:
    """The number of rows, and what is the same of equal rows in any order."""
    columns = ", ".join(frame.columns)
    row = frame.selectExpr("count(*) AS n", f"sum(xxhash64({columns}) % 1000003) AS told").head()
    assert row is not None
    return row["n"], row["told"] or 0


ABOUT = """\
`local[2]`, one session, three Parquet files of a million exact events, five matches a link, 25 million
sequences, to the noop sink, planning included: files in no order of time, and in it. Spark SQL joins by
bins of time as wide as the window, one join after the other, by the best of its hints.
"""

EXPERIMENT = Experiment(
    summary="sequences of three streams on Spark, next to Spark SQL's joins of bins",
    run=run,
    title="Sequences on Spark",
    about=ABOUT,
    needs="Java",
)
