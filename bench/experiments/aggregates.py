"""Count, sum, mean and greatest value of the matches of each left event, without and with pairs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.events import Condition, Load, with_timestamps
from bench.experiment import Bench, Experiment
from bench.joins import local_join, timing_condition
from bench.sessions import any_frame, consume, spark_session
from coincide import CorrelateOptions, correlate, correlate_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, COUNTS, PAIRS, DUCK = "aggregates", "counts", "pairs and group_by", "DuckDB GROUP BY"
EXPECTED, WEIGHED_PAIRS = "expected numbers", "weighed pairs and group_by"
POLARS, ON_SPARK, SQL = "Polars group_by", "aggregates on Spark", "Spark SQL groupBy"
ASKED = {"n": "count", "total": ("b", "sum"), "mean": ("b", "mean"), "greatest": ("a", "max")}
IN_SQL = "count(*) AS n, sum(r.b) AS total, avg(r.b) AS mean, max(r.a) AS greatest"
DENSE, DENSER, SPARSE = "200 k, 100/s", "200 k, 400/s", "1 M, sparse"
LABELS = "10 k labels, 4 M"
LOADS = {
    DENSE: (Load(200_000, 100.0), Load(4_000, 100.0)),
    DENSER: (Load(200_000, 400.0), Load(4_000, 400.0)),
    SPARSE: (Load(1_000_000, 4.0), Load(4_000, 4.0)),
}
"""Both streams, and those of quick runs."""
FEW_LEFT = Load(10_000, 0.01, 4_000_000), Load(200, 0.01, 4_000)
"""Few left events, which go to every worker of Spark."""
COUNTS_BARS = {DENSE: 1.6}
"""On our time over that of counts."""
BARS = {DENSE: (10.0, 16.0), SPARSE: (4.0, 6.0)}
"""On the time of pairs with a `group_by`, and of DuckDB, over ours."""
SHUFFLED = {DENSE: False, DENSER: False, SPARSE: True, LABELS: False}
"""Loads of Spark, and whether rows come in no order, as from a hash."""
SPARK_BARS = {DENSE: 20.0, DENSER: 20.0, SPARSE: 3.0, LABELS: None}
"""On the time of Spark SQL over ours."""
FOUR_TIMES_THE_PAIRS = 2.0
LEAST_CONFIDENCE = 1e-12
"""Pairs that are weighed have this, since what is below adds nothing that the tolerance sees."""
TOLERANCE = 1e-9
"""By how much sums and means may differ, relative to them: others round each addition."""


def run(bench: Bench) -> None:
    """Compare and time all in one process, our own time at both densities, and Spark."""
    # Read when Polars is first imported.
    os.environ.setdefault("POLARS_MAX_THREADS", str(bench.cores))
    sides = {}
    for name, loads in LOADS.items():
        sides[name] = left, right = tables(bench.pick(*loads))
        _contest(bench, name, left, right)
        if name != DENSER:
            _contest_of_expected(bench, name, left, right)
            _contest_of_polars(bench, name, left, right)
    densities = {name: partial(aggregated, *sides[name], bench.cores) for name in (DENSER, DENSE)}
    times = bench.alternate("densities", {name: _rows(work) for name, work in densities.items()})
    bench.ratio_of_fastest(
        f"{OURS}: {DENSER} / {DENSE}", times[DENSER], times[DENSE], FOUR_TIMES_THE_PAIRS,
        at_least=False,
    )  # fmt: skip
    sides[LABELS] = tables(bench.pick(*FEW_LEFT))
    with spark_session(bench) as spark:
        for name in SHUFFLED:
            few = (table[: bench.pick(table.num_rows, 200)] for table in sides[name])
            _contest_on_spark(bench, spark, name, *few)


def tables(load: Load) -> tuple[pa.Table, pa.Table]:
    """Both streams; right events have a whole number and a float, which is above 0."""
    left, right = load.tables()
    random = np.random.default_rng(5)
    whole = random.integers(-(10**9), 10**9, right.num_rows)
    right = right.append_column("a", pa.array(whole))
    return left, right.append_column("b", pa.array(random.exponential(1e3, right.num_rows)))


def aggregated(left: pa.Table, right: pa.Table, threads: int) -> pa.Table:
    """Aggregates, in the order of left."""
    options = CorrelateOptions(unit="us", threads=threads)
    condition = timing_condition(Condition())
    return correlate_tables(
        left, right, condition, emit="aggregates", aggregates=ASKED, options=options
    )


def grouped_pairs(left: pa.Table, right: pa.Table, threads: int) -> pa.Table:
    """The same of pairs that are made, in the order of left ids or not."""
    pairs = correlate_tables(
        left, right, timing_condition(Condition()), right_columns=("a", "b"),
        options=CorrelateOptions(unit="us", threads=threads),
    )  # fmt: skip
    names = "right_b_count", "right_b_sum", "right_b_mean", "right_a_max"
    asked = [("right_b", "count"), ("right_b", "sum"), ("right_b", "mean"), ("right_a", "max")]
    found = pairs.group_by("left_id", use_threads=threads > 1).aggregate(asked)
    return found.select(["left_id", *names]).rename_columns(["left_id", *ASKED])


def _contest(bench: Bench, name: str, left: pa.Table, right: pa.Table) -> None:
    from bench.peers.duckdb_join import DuckDBJoin

    duck = DuckDBJoin(left, right, bench.cores)
    plans = {plan: partial(duck.aggregates, plan, IN_SQL) for plan in duck.variants}
    plan = bench.fastest(f"{name}: DuckDB", plans, rounds=0)
    ours = partial(aggregated, left, right, bench.cores)
    pairs = partial(grouped_pairs, left, right, bench.cores)
    counts = partial(local_join, left, right, "counts", bench.cores)
    plans[plan]()
    found = ours()
    others = {PAIRS: pairs().sort_by("left_id"), DUCK: duck.aggregated()}
    answers = {OURS: in_short(found, found)}
    bench.check_equal(name, answers | {n: in_short(each, found) for n, each in others.items()})
    bench.check_equal(f"{name}: matches", {OURS: _matches(found), COUNTS: _matches(counts())})
    bench.note(**{f"{name}: pairs": _matches(found)[1]})
    del others
    works = {OURS: _rows(ours), COUNTS: _rows(counts), PAIRS: _rows(pairs), DUCK: plans[plan]}
    # They have been called above.
    times = bench.alternate(name, works, rounds=3 if name == DENSER else 5, warmups=0)
    bench.ratio_of_fastest(
        f"{name}: {OURS} / {COUNTS}", times[OURS], times[COUNTS], COUNTS_BARS.get(name),
        at_least=False,
    )  # fmt: skip
    for other, bar in zip((PAIRS, DUCK), BARS.get(name, (None, None)), strict=True):
        bench.ratio_of_fastest(f"{name}: {other} / {OURS}", times[other], times[OURS], bar)


def expected_numbers(left: pa.Table, right: pa.Table, threads: int) -> pa.Table:
    """Expected count and sum, in the order of left."""
    options = CorrelateOptions(unit="us", threads=threads)
    asked = {name: ASKED[name] for name in ("n", "total")}
    return correlate_tables(
        left, right, within=f"{Condition().deadline_us}us", weights="probability",
        emit="aggregates", aggregates=asked, options=options,
    )  # fmt: skip


def weighed_pairs(left: pa.Table, right: pa.Table, threads: int) -> pa.Table:
    """The same of pairs of any probability that are made, in the order of left ids or not."""
    options = CorrelateOptions(unit="us", threads=threads)
    condition = Condition(confidence=LEAST_CONFIDENCE)
    pairs = correlate_tables(
        left, right, timing_condition(condition), right_columns=("b",), probability=True,
        options=options,
    )  # fmt: skip
    weighed = pc.multiply(pairs["probability"], pairs["right_b"])
    pairs = pairs.select(["left_id", "probability"]).append_column("weighed", weighed)
    asked = [("probability", "sum"), ("weighed", "sum")]
    found = pairs.group_by("left_id", use_threads=threads > 1).aggregate(asked)
    names = ["left_id", "n", "total"]
    return found.select(["left_id", "probability_sum", "weighed_sum"]).rename_columns(names)


def _contest_of_expected(bench: Bench, name: str, left: pa.Table, right: pa.Table) -> None:
    ours = partial(expected_numbers, left, right, bench.cores)
    pairs = partial(weighed_pairs, left, right, bench.cores)
    found, others = ours(), pairs().sort_by("left_id")
    bench.check_equal(
        f"{name}: expected",
        {EXPECTED: in_short(found, found), WEIGHED_PAIRS: in_short(others, found)},
    )
    works = {EXPECTED: _rows(ours), WEIGHED_PAIRS: _rows(pairs)}
    times = bench.alternate(f"{name}: expected", works, rounds=3, warmups=0)
    bench.ratio_of_fastest(
        f"{name}: {WEIGHED_PAIRS} / {EXPECTED}", times[WEIGHED_PAIRS], times[EXPECTED]
    )


def in_polars() -> list[Any]:
    """The aggregates as expressions of Polars."""
    import polars as pl

    asked = {"n": pl.len(), "total": pl.col("b").sum(), "mean": pl.col("b").mean()}
    asked["greatest"] = pl.col("a").max()
    return [each.alias(name) for name, each in asked.items()]


def _contest_of_polars(bench: Bench, name: str, left: pa.Table, right: pa.Table) -> None:
    from bench.peers.polars_join import VARIANTS, polars_aggregates

    plans = {
        plan: partial(polars_aggregates, left, right, in_polars(), variant=plan)
        for plan in VARIANTS
    }
    plan = bench.fastest(f"{name}: Polars", plans, rounds=0)
    ours, found = aggregated(left, right, bench.cores), plans[plan]().sort("id").to_arrow()
    bench.check_equal(
        f"{name}: Polars", {OURS: in_short(ours, ours), POLARS: in_short(found, ours)}
    )
    works = {
        OURS: lambda: aggregated(left, right, bench.cores).num_rows,
        POLARS: lambda: plans[plan]().height,
    }
    times = bench.alternate(f"{name}: Polars", works, rounds=2, warmups=0)
    bench.ratio_of_fastest(f"{name}: {POLARS} / {OURS}", times[POLARS], times[OURS])


def _contest_on_spark(
    bench: Bench, spark: SparkSession, name: str, left: pa.Table, right: pa.Table
) -> None:
    from bench.peers.spark_join import sql_aggregates, variants

    label = f"{name}, shuffled" if SHUFFLED[name] else name
    hints = bench.pick(variants(broadcast=not SHUFFLED[name]), ["shuffled hash join"])
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        frames = [
            _frame(spark, table, Path(folder) / f"{side}.parquet", seed if SHUFFLED[name] else None)
            for seed, (side, table) in enumerate({"left": left, "right": right}.items())
        ]
        joins = {hint: partial(sql_aggregates, *frames, IN_SQL, hint) for hint in hints}
        works = {hint: partial(_consumed, join) for hint, join in joins.items()}
        hint = bench.fastest(f"{label}: {SQL}", works, rounds=0)
        ours, expected = partial(aggregated_on_spark, *frames), aggregated(left, right, bench.cores)
        rows = {ON_SPARK: ours(), SQL: joins[hint]()}
        found = {who: each.toArrow().sort_by("left_id") for who, each in rows.items()}
        answers = {who: in_short(table, expected) for who, table in found.items()}
        bench.check_equal(f"{label}: Spark", {OURS: in_short(expected, expected), **answers})
        times = bench.alternate(
            f"{label}: Spark", {ON_SPARK: partial(_consumed, ours), SQL: works[hint]}, rounds=3
        )
        bench.ratio_of_fastest(
            f"{label}: {SQL} / {ON_SPARK}", times[SQL], times[ON_SPARK], SPARK_BARS[name]
        )


def aggregated_on_spark(left: DataFrame, right: DataFrame) -> DataFrame:
    """Aggregates, in any order."""
    condition = timing_condition(Condition())
    return correlate(left, right, condition, emit="aggregates", aggregates=ASKED)


def _frame(spark: SparkSession, table: pa.Table, path: Path, seed: int | None) -> DataFrame:
    """The table as a frame that is more than a read of a file, its rows in an order that is drawn."""
    times, more = with_timestamps(table), table.column_names[3:]
    for each in more:
        times = times.append_column(each, table[each])
    if seed is not None:
        times = times.take(np.random.default_rng(seed).permutation(table.num_rows))
    pq.write_table(times, path, row_group_size=max(1, table.num_rows // 8), compression="zstd")
    return any_frame(spark.read.parquet(str(path)))


def _consumed(join: Callable[[], DataFrame]) -> None:
    consume(join())


def _rows(work: Callable[[], pa.Table]) -> Callable[[], int]:
    """The same work, without keeping its table."""
    return lambda: work().num_rows


def _matches(found: pa.Table) -> tuple[int, int]:
    """Left events with a match, and their matches."""
    return found.num_rows, pc.sum(found.column(1)).as_py() or 0


def in_short(found: pa.Table, ours: pa.Table) -> tuple[bool, ...]:
    """Whether each column is that of ours, both in the order of left ids; floats but nearly."""
    return tuple(map(_is_equal, found.columns, ours.columns))


def _is_equal(column: pa.ChunkedArray, ours: pa.ChunkedArray) -> bool:
    a, b = column.to_numpy(), ours.to_numpy()
    if a.shape == b.shape and b.dtype == np.float64:
        return bool(np.allclose(a, b, rtol=TOLERANCE, atol=0.0))
    return bool(np.array_equal(a, b))


ABOUT = """\
Count, sum and mean of a float64 column and the greatest value of an int64 column, of the matches of each
left event, Arrow in and Arrow out. 200,000 events a side make 18.2 million pairs at 100 a second, and 72.9
million at 400. A million events at 4 a second make 3.6 million. Lengths are 20 to 200 ms, the window is
±500 ms, and the confidence 0.8. Counts read no columns. Pairs are made with both columns, and Arrow groups
them. DuckDB and Polars group their fastest join. On Spark, `local[2]`, both sides come from Parquet and are
more than reads of it, the million in no order. Ten thousand left events next to four million right ones go
to every worker. Planning is included. Spark SQL groups its fastest join, as
in the experiment `spark`. Each ratio is that of the fastest rounds. Sums and means of the others agree with
ours to one part in 10^9, and all else is equal.
"""

EXPERIMENT = Experiment(
    summary="aggregates against counts, pairs with group_by, DuckDB, Polars and Spark SQL",
    run=run,
    title="Aggregates of matches",
    about=ABOUT,
    needs="duckdb, polars, Java",
)
