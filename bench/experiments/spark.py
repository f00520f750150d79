"""Spark: `correlate` against the best hand-written Spark SQL, in one session, planning included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import spark_files_join, spark_join
from bench.sessions import any_frame, consume, parquet_frames, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Emit


@dataclass(frozen=True)
class Case:
    """A load, the output shapes to time on it, and the bar of each by `emit`."""

    name: str
    load: Load
    quick_load: Load
    bars: dict[Emit, float]
    rounds: int
    broadcast: bool  # whether a side is small enough for the peer to broadcast it
    trials: int = 2  # rounds by which the peer's variant is chosen, after the one that warms up


CASES = (
    Case(
        "200 k dense",
        Load(200_000, 100.0),
        Load(800, 100.0),
        {"pairs": 1.2, "counts": 2.5, "lists": 6.0},
        rounds=15,
        broadcast=True,
    ),
    Case(
        "4 M sparse",
        Load(4_000_000, 4.0),
        Load(4_000, 4.0),
        {"pairs": 1.5, "counts": 2.2},
        rounds=7,
        broadcast=False,
        trials=0,
    ),
)


_WARMUPS = 3
"""Rounds of all contestants that are not timed: Java compiles anew what meets many rows."""
_AS_FILES = 0.87
"""The speed of DataFrames that are plain reads of files: within 15 % of the files."""


def run(bench: Bench) -> None:
    """Time every case and shape; all contestants must find the same rows and pairs."""
    with spark_session(bench) as spark:
        for case in bench.pick(CASES, CASES[:1]):
            load = bench.pick(case.load, case.quick_load)
            bench.note(**{case.name: {"events": load.events, "rate": load.rate}})
            with parquet_frames(bench, spark, load) as (left, right):
                for emit in case.bars:
                    _compare(bench, case, emit, left, right)


def _compare(bench: Bench, case: Case, emit: Emit, left: DataFrame, right: DataFrame) -> None:
    from bench.peers.spark_join import PLAIN, sql_join

    label = f"{case.name}, {emit}"
    variant = _fastest_variant(bench, case, emit, left, right)
    others = any_frame(left), any_frame(right)
    filtered = [frame.where("id >= 0") for frame in others]
    bench.say(f"{label}, checking")
    bench.check_equal(
        f"{label}: rows and pairs",
        {
            "Coincide": rows_and_pairs(spark_join(*others, emit), emit),
            "Coincide, after a filter": rows_and_pairs(spark_join(*filtered, emit), emit),
            "Coincide, plain reads": rows_and_pairs(spark_join(left, right, emit), emit),
            "Coincide, files": rows_and_pairs(spark_files_join(left, right, emit), emit),
            "Spark SQL": rows_and_pairs(sql_join(left, right, emit, variant), emit),
        },
    )
    names = {f"Spark SQL, {name}": name for name in dict.fromkeys([variant, PLAIN])}
    ours, looked, reads, files, best, *plain = bench.alternate(
        label,
        {
            "Coincide": lambda: consume(spark_join(*others, emit)),
            "Coincide, after a filter": lambda: consume(spark_join(*filtered, emit)),
            "Coincide, plain reads": lambda: consume(spark_join(left, right, emit)),
            "Coincide, files": lambda: consume(spark_files_join(left, right, emit)),
        }
        | {
            peer: lambda name=name: consume(sql_join(left, right, emit, name))  # type: ignore[misc]
            for peer, name in names.items()
        },
        rounds=case.rounds,
        warmups=_WARMUPS,
    ).values()
    bench.ratio(f"{label}: best Spark SQL", best, ours, case.bars[emit])
    bench.ratio(f"{label}: best Spark SQL / after a filter", best, looked)
    bench.ratio(f"{label}: Spark SQL without a hint", (plain or [best])[0], ours)
    bench.ratio(f"{label}: best Spark SQL / files given by name", best, files)
    bench.ratio(f"{label}: files given by name / plain reads", files, reads, _AS_FILES)


def _fastest_variant(
    bench: Bench, case: Case, emit: Emit, left: DataFrame, right: DataFrame
) -> str:
    from bench.peers.spark_join import sql_join, variants

    names = variants(broadcast=case.broadcast)
    works = {
        name: lambda name=name: consume(sql_join(left, right, emit, name))  # type: ignore[misc]
        for name in bench.pick(names, names[:1])
    }
    return bench.fastest(f"Spark SQL, {case.name}, {emit}", works, rounds=case.trials)


ABOUT = """\
`local[2]`, one session, Parquet in, to the noop sink, planning included. Spark SQL is an equi-join on time
buckets of width d + pi with the right side exploded to three buckets, then the closed form. Counts and
lists use `groupBy`. It runs with the best join hint and without one. Pairs travel from Python to the JVM,
here 18 million, which SQL avoids: ask for `lists` or `counts` where they serve. *Files given by name* is
`correlate_files`, and *plain reads* is `correlate` on DataFrames that only read files. For *Coincide* a
DataFrame is more than a read, but Spark still knows its size. *After a filter* Spark does not know the
size. The session has the settings that [planning.md](planning.md#session-settings) names. Three rounds warm
up all engines.
"""

EXPERIMENT = Experiment(
    summary="Spark against the best hand-written Spark SQL",
    run=run,
    title="Spark",
    about=ABOUT,
    needs="Java",
)
