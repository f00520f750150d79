"""A small side that goes to every worker: against our own exchange, and the best hand-written Spark SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import spark_join
from bench.sessions import any_frame, consume, parquet_frames, rows_and_pairs, spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Emit, Way


@dataclass(frozen=True)
class Case:
    """Two sides over the same days, how ours is asked, and bars by `emit`."""

    name: str
    load: Load
    way: Way
    sql: dict[Emit, float]  # on the ratio to Spark SQL
    exchange: dict[Emit, float]  # on the ratio to our exchange


CASES = (
    Case("4 M x 4 M", Load(4_000_000, 4.0), "broadcast-right", {"pairs": 1.5}, {}),
    Case(
        "4 M x 100 k",
        Load(4_000_000, 4.0, 100_000),
        "auto",
        {"pairs": 0.8, "counts": 1.0},
        {"pairs": 2.0},
    ),
    Case(
        "4 M x 100 k, ten matches",
        Load(4_000_000, 11.0, 100_000),
        "auto",
        {"pairs": 1.0, "counts": 1.0},
        {"pairs": 2.0},
    ),
)
_QUICK = Load(4_000, 4.0, 100)
_ROUNDS, _WARMUPS = 5, 1
_ROUNDS_OF_SMALL, _WARMUPS_OF_SMALL = 9, 3
"""Rounds of a side that is small: each gets faster until then, and some tenths of a second are noisy."""


def run(bench: Bench) -> None:
    """Time every case for pairs and counts; all contestants must find the same rows and pairs."""
    with spark_session(bench) as spark:
        for case in bench.pick(CASES, CASES[1:2]):
            load = bench.pick(case.load, _QUICK)
            bench.note(**{case.name: {"events": list(load.sizes), "rate": load.rate}})
            with parquet_frames(bench, spark, load) as frames:
                emits: tuple[Emit, ...] = ("pairs", "counts")
                for emit in bench.pick(emits, emits[:1]):
                    _compare(bench, case, emit, *map(any_frame, frames))


def _compare(bench: Bench, case: Case, emit: Emit, left: DataFrame, right: DataFrame) -> None:
    from bench.peers.spark_join import sql_join, variants

    label = f"{case.name}, {emit}"
    is_small = case.load.right_events is not None
    names = variants(broadcast=is_small)
    peers = {
        f"Spark SQL, {name}": lambda name=name: sql_join(left, right, emit, name)  # type: ignore[misc]
        for name in bench.pick(names, names[:1])
    }
    ours = {
        "broadcast": lambda: spark_join(left, right, emit, way=case.way),
        "exchange": lambda: spark_join(left, right, emit, way="exchange"),
    }
    best = bench.fastest(
        f"Spark SQL, {label}",
        {name: lambda make=make: consume(make()) for name, make in peers.items()},  # type: ignore[misc]
        rounds=1,
    )
    contestants = {**ours, best: peers[best]}
    bench.say(f"{label}, checking")
    bench.check_equal(
        f"{label}: rows and pairs",
        {name: rows_and_pairs(make(), emit) for name, make in contestants.items()},
    )
    broadcast, exchange, sql = bench.alternate(
        label,
        {name: lambda make=make: consume(make()) for name, make in contestants.items()},  # type: ignore[misc]
        rounds=_ROUNDS_OF_SMALL if is_small else _ROUNDS,
        warmups=_WARMUPS_OF_SMALL if is_small else _WARMUPS,
    ).values()
    bench.ratio(f"{label}: best Spark SQL / broadcast", sql, broadcast, case.sql.get(emit))
    bench.ratio(f"{label}: exchange / broadcast", exchange, broadcast, case.exchange.get(emit))


ABOUT = """\
`local[2]`, one session, DataFrames of Parquet files in time order, to the noop sink, planning included; |Δ|
≤ 500 ms. The small side covers the same days as the large one. Spark SQL runs the join of the experiment
`spark` with its fastest hint, which may be a broadcast join. Where few pairs match, Spark's own broadcast
never leaves the JVM. Coincide collects the small side, filters the large one in the JVM, and sends the rest
to Python.
"""

EXPERIMENT = Experiment(
    summary="a small side to every worker, against the exchange and Spark SQL",
    run=run,
    title="Broadcast",
    about=ABOUT,
    needs="Java",
)
