"""One process: Arrow in, Arrow out, against DuckDB, a naive kernel, Polars and the bare output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.events import Load
from bench.experiment import Bench, Experiment
from bench.joins import local_join

PAIRS_BAR = 8.0
COUNTS_BAR = 15.0


def run(bench: Bench) -> None:
    """Time pairs and counts; all contestants must find the same number of pairs."""
    load = bench.pick(Load(200_000, 100.0), Load(4_000, 100.0))
    bench.note(events=load.events, rate=load.rate)
    left, right = load.tables()
    _pairs(bench, left, right)
    _counts(bench, left, right)


def _pairs(bench: Bench, left: pa.Table, right: pa.Table) -> None:
    from bench.peers.duckdb_join import DuckDBJoin
    from bench.peers.naive_kernel import naive_pairs

    duck = DuckDBJoin(left, right, bench.cores)
    plan = _fastest_plan(bench, "DuckDB pairs", duck.variants, duck.pairs)
    contestants: dict[str, Callable[[], int]] = {
        "Coincide": lambda: local_join(left, right, "pairs", bench.cores).num_rows,
        f"DuckDB, {plan}": lambda: duck.pairs(plan),
        "naive kernel": lambda: naive_pairs(left, right, bench.cores),
    }
    if "polars" in bench.flags:
        from bench.peers.polars_join import polars_pairs

        contestants["Polars"] = lambda: polars_pairs(left, right).height
    size = local_join(left, right, "pairs", bench.cores).num_rows
    floor = {"bare output": lambda: sum(np.full(size, side).size for side in (1, 2)) // 2}
    times = bench.alternate("pairs", contestants | floor)
    bench.check_equal("pairs", {name: times[name].answer for name in contestants})
    ours = times["Coincide"]
    bench.ratio("pairs: DuckDB", times[f"DuckDB, {plan}"], ours, PAIRS_BAR)
    for name in list(contestants)[2:]:
        bench.ratio(f"pairs: {name}", times[name], ours)
    bench.ratio("pairs: bare output", times["bare output"], ours)


def _counts(bench: Bench, left: pa.Table, right: pa.Table) -> None:
    from bench.peers.duckdb_join import DuckDBJoin
    from bench.peers.naive_kernel import naive_counts

    duck = DuckDBJoin(left, right, bench.cores)
    count = _fastest_plan(bench, "DuckDB count", duck.variants, duck.count)
    counts = _fastest_plan(bench, "DuckDB counts by event", duck.variants, duck.counts)
    times = bench.alternate(
        "counts",
        {
            "Coincide": lambda: _events_and_pairs(local_join(left, right, "counts", bench.cores)),
            f"DuckDB count(*), {count}": lambda: duck.count(count),
            f"DuckDB GROUP BY, {counts}": lambda: duck.counts(counts),
            "naive kernel": lambda: naive_counts(left, right, bench.cores),
        },
    )
    ours, single, grouped, naive = times.values()
    pairs = {"Coincide": ours.answer[1], "DuckDB": single.answer, "naive kernel": naive.answer}
    bench.check_equal("pairs counted", pairs)
    bench.check_equal("events with a match", {"Coincide": ours.answer[0], "DuckDB": grouped.answer})
    bench.ratio("counts: DuckDB count(*)", single, ours, COUNTS_BAR)
    bench.ratio("counts: DuckDB GROUP BY", grouped, ours)
    bench.ratio("counts: naive kernel", naive, ours)


def _fastest_plan(bench: Bench, label: str, variants: list[str], work: Callable[[str], int]) -> str:
    return bench.fastest(label, {name: lambda name=name: work(name) for name in variants})  # type: ignore[misc]


def _events_and_pairs(counts: pa.Table) -> tuple[int, int]:
    return counts.num_rows, pc.sum(counts["matches"]).as_py() or 0


ABOUT = """\
200,000 events a side at 100 a second, lengths 20 to 200 ms, ±500 ms, confidence 0.8: 18.2 million pairs,
Arrow in and Arrow out. DuckDB creates the same table from the closed form, by its best plan. The naive
kernel is the obvious compiled loop. The bare output writes two arrays of that size.
"""

EXPERIMENT = Experiment(
    summary="one process against DuckDB, a naive kernel and the bare output",
    run=run,
    title="One process",
    about=ABOUT,
    needs="duckdb",
    flags={"polars": "Time Polars' join_where too; it is slow."},
)
