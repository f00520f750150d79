"""Peers side by side: the same pairs from six engines, over density, confidence, window and size."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.events import Condition, Load
from bench.experiment import Bench, Experiment
from bench.fingerprints import fingerprint_of_table, sums
from bench.joins import local_join, spark_join
from bench.sessions import any_frame, consume, parquet_frames, spark_session
from bench.timing import Timing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, OURS_ON_SPARK = "Coincide, one process", "Coincide, Spark"
SMALL_JOIN_BARS = {"density": 0.9}
"""On Spark SQL's time over ours at each point of a sweep."""
SMALL_JOINS_MEDIAN_BAR = 1.1


@dataclass(frozen=True)
class Point:
    """One piece of work."""

    load: Load
    condition: Condition


BASE = Point(Load(50_000, 100.0), Condition())
SWEEPS: dict[str, tuple[str, list[float], Callable[[float], Point]]] = {
    "density": (
        "events per second of each side",
        [4, 25, 100, 400],
        lambda rate: replace(BASE, load=replace(BASE.load, rate=float(rate))),
    ),
    "confidence": (
        "confidence threshold",
        [0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        lambda ct: replace(BASE, condition=replace(BASE.condition, confidence=ct)),
    ),
    "window": (
        "deadline (ms); timestamps are 20 to 200 ms long",
        [20, 100, 500, 2000],
        lambda ms: replace(BASE, condition=replace(BASE.condition, deadline_us=int(1000 * ms))),
    ),
    "size": (
        "events of each side",
        [12_500, 50_000, 200_000],
        lambda events: replace(BASE, load=replace(BASE.load, events=int(events))),
    ),
}
"""Per sweep its axis, its values, and the work at a value."""


def run(bench: Bench) -> None:
    """Time every contestant at every point; ratios compare times in the same round."""
    # Read when Polars is first imported.
    os.environ.setdefault("POLARS_MAX_THREADS", str(bench.cores))
    measured: dict[Point, dict[str, Timing]] = {}
    with spark_session(bench) as spark:
        for name in bench.pick(list(SWEEPS), ["density"]):
            axis, values, point_at = SWEEPS[name]
            chosen = bench.pick(values, values[2:3])
            points = [_tiny(bench, point_at(value)) for value in chosen]
            for value, point in zip(chosen, points, strict=True):
                if point not in measured:
                    measured[point] = _measure(bench, spark, f"{name} {value:g}", point)
            _draw(bench, name, axis, chosen, [measured[point] for point in points])
            bar = SMALL_JOIN_BARS.get(name)
            ratios = [
                _ratios(bench, f"{name} {value:g}", measured[point], bar)
                for value, point in zip(chosen, points, strict=True)
            ]
            if bar is not None:
                bench.figure(
                    f"{name}: Spark SQL / {OURS_ON_SPARK}, median of the points",
                    statistics.median(ratios), "x", SMALL_JOINS_MEDIAN_BAR,
                )  # fmt: skip


def _tiny(bench: Bench, point: Point) -> Point:
    return bench.pick(point, replace(point, load=replace(point.load, events=1000)))


def _measure(bench: Bench, spark: SparkSession, label: str, point: Point) -> dict[str, Timing]:
    with parquet_frames(bench, spark, point.load) as frames:
        contestants = _contestants(bench, point, *map(any_frame, frames))
        proofs = {name: proof() for name, (_, proof) in contestants.items()}
        bench.check_equal(f"{label}: pairs", proofs)
        pairs = proofs[OURS][0]
        bench.note(**{label: {"pairs": pairs}})
        works = {name: work for name, (work, _) in contestants.items()}
        works["bare output"] = lambda: sum(np.full(pairs, side).size for side in (1, 2))
        return bench.alternate(label, works, rounds=5, warmups=0)


Contestant = tuple[Callable[[], Any], Callable[[], Any]]
"""What is timed, and what gives the fingerprint of its pairs."""


def _contestants(
    bench: Bench, point: Point, left_frame: DataFrame, right_frame: DataFrame
) -> dict[str, Contestant]:
    from bench.peers.duckdb_join import DuckDBJoin
    from bench.peers.ncls_join import ncls_pairs
    from bench.peers.polars_join import VARIANTS, polars_pairs
    from bench.peers.spark_join import sql_join
    from bench.peers.spark_join import variants as hints

    left, right = point.load.tables()
    condition = point.condition
    duck = DuckDBJoin(left, right, bench.cores, condition)
    plan = bench.fastest(
        "DuckDB",
        {name: lambda name=name: duck.pairs(name) for name in duck.variants},  # type: ignore[misc]
    )
    variant = bench.fastest(
        "Polars",
        {
            name: lambda name=name: polars_pairs(left, right, condition, name).height  # type: ignore[misc]
            for name in VARIANTS
        },
    )

    names = hints(broadcast=True)
    hint = bench.fastest(
        "Spark SQL",
        {
            name: lambda name=name: consume(  # type: ignore[misc]
                sql_join(left_frame, right_frame, "pairs", name, condition)
            )
            for name in bench.pick(names, names[:1])
        },
    )

    def ours() -> Any:
        return local_join(left, right, "pairs", bench.cores, condition)

    def duckdb_fingerprint() -> tuple[int, ...]:
        duck.pairs(plan)
        return duck.fingerprint()

    def ours_on_spark() -> DataFrame:
        return spark_join(left_frame, right_frame, "pairs", condition)

    def sql() -> DataFrame:
        return sql_join(left_frame, right_frame, "pairs", hint, condition)

    def polars() -> Any:
        return polars_pairs(left, right, condition, variant)

    def ncls() -> Any:
        return ncls_pairs(left, right, condition)

    return {
        OURS: (lambda: ours().num_rows, lambda: fingerprint_of_table(ours())),
        "DuckDB": (lambda: duck.pairs(plan), duckdb_fingerprint),
        "Polars": (lambda: polars().height, lambda: fingerprint_of_table(polars().to_arrow())),
        "NCLS and NumPy": (lambda: ncls().num_rows, lambda: fingerprint_of_table(ncls())),
        OURS_ON_SPARK: (lambda: consume(ours_on_spark()), lambda: _spark_proof(ours_on_spark())),
        "Spark SQL": (lambda: consume(sql()), lambda: _spark_proof(sql())),
    }


def _spark_proof(pairs: DataFrame) -> tuple[int, ...]:
    from pyspark.sql import functions as F

    left, right = pairs.columns[:2]
    columns = [F.expr(text) for text in sums(left, right).split(", ")]
    row = pairs.agg(*columns).head()
    assert row is not None
    return tuple(value or 0 for value in row)


def _draw(
    bench: Bench, name: str, axis: str, values: list[float], timings: list[dict[str, Timing]]
) -> None:
    lines = {who: [t[who].median for t in timings] for who in timings[0]}
    bench.chart(
        name, f"Time for the same pairs, by {name}", axis, "seconds", list(map(float, values)),
        lines, log_x=name != "confidence", log_y=True, dashed=[OURS_ON_SPARK, "Spark SQL"],
    )  # fmt: skip


def _ratios(bench: Bench, label: str, timings: dict[str, Timing], bar: float | None) -> float:
    """Note the ratios at a point; that on Spark is handed back."""
    for name in ("DuckDB", "Polars", "NCLS and NumPy", "bare output"):
        bench.ratio(f"{label}: {name} / {OURS}", timings[name], timings[OURS])
    sql, ours = timings["Spark SQL"], timings[OURS_ON_SPARK]
    bench.ratio(f"{label}: Spark SQL / {OURS_ON_SPARK}", sql, ours, bar)
    return sql.median / ours.median


ABOUT = """\
Six engines find the same pairs: 50,000 events a side at 100 a second, lengths 20 to 200 ms, ±500 ms,
confidence 0.8. One of these changes at a time. A figure is the other engine's time over Coincide's, both in
one process or both on Spark. Spark reads Parquet and drops the rows; both sides are more than reads of
files there. NCLS finds overlaps of widened intervals in one thread, and the closed form in NumPy decides.
The others use two cores. DuckDB and Polars run their fastest plan at each point, Spark SQL its fastest join
hint. The bare output writes the two result arrays.
"""

EXPERIMENT = Experiment(
    summary="DuckDB, Polars, NCLS, Spark SQL and the bare output, on the same pairs",
    run=run,
    title="Peers",
    about=ABOUT,
    needs="duckdb, polars, ncls, Java",
)
