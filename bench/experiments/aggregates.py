"""Count, sum, mean and greatest value of the matches of each left event, without and with pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.events import Condition, Load
from bench.experiment import Bench, Experiment
from bench.joins import local_join, timing_condition
from bench.timing import Timing
from coincide import CorrelateOptions, correlate_tables

OURS, COUNTS, PAIRS, DUCK = "aggregates", "counts", "pairs and group_by", "DuckDB GROUP BY"
ASKED = {"n": "count", "total": ("b", "sum"), "mean": ("b", "mean"), "greatest": ("a", "max")}
IN_SQL = "count(*) AS n, sum(r.b) AS total, avg(r.b) AS mean, max(r.a) AS greatest"
DENSE, DENSER, SPARSE = "200 k, 100/s", "200 k, 400/s", "1 M, sparse"
LOADS = {
    DENSE: (Load(200_000, 100.0), Load(4_000, 100.0)),
    DENSER: (Load(200_000, 400.0), Load(4_000, 400.0)),
    SPARSE: (Load(1_000_000, 4.0), Load(4_000, 4.0)),
}
"""Both streams, and those of quick runs."""
COUNTS_BARS = {DENSE: 1.6}
"""On our time over that of counts."""
BARS = {DENSE: (10.0, 16.0), SPARSE: (4.0, 6.0)}
"""On the time of pairs with a `group_by`, and of DuckDB, over ours."""
FOUR_TIMES_THE_PAIRS = 2.0
TOLERANCE = 1e-9
"""By how much sums and means may differ, relative to them: others round each addition."""


def run(bench: Bench) -> None:
    """Compare and time the four; then our own time at both densities."""
    sides = {}
    for name, loads in LOADS.items():
        sides[name] = left, right = tables(bench.pick(*loads))
        _contest(bench, name, left, right)
    densities = {name: partial(aggregated, *sides[name], bench.cores) for name in (DENSER, DENSE)}
    times = bench.alternate("densities", {name: _rows(work) for name, work in densities.items()})
    _ratio(
        bench, f"{OURS}: {DENSER} / {DENSE}", times[DENSER], times[DENSE], FOUR_TIMES_THE_PAIRS,
        at_least=False,
    )  # fmt: skip


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
    plan = bench.fastest(f"{name}: DuckDB", plans, rounds=1)
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
    times = bench.alternate(name, works, warmups=0)
    _ratio(
        bench, f"{name}: {OURS} / {COUNTS}", times[OURS], times[COUNTS], COUNTS_BARS.get(name),
        at_least=False,
    )  # fmt: skip
    for other, bar in zip((PAIRS, DUCK), BARS.get(name, (None, None)), strict=True):
        _ratio(bench, f"{name}: {other} / {OURS}", times[other], times[OURS], bar)


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


def _ratio(
    bench: Bench,
    name: str,
    above: Timing,
    below: Timing,
    bar: float | None = None,
    *,
    at_least: bool = True,
) -> None:
    """Note a ratio of the fastest rounds."""
    each = [a / b for a, b in zip(above.seconds, below.seconds, strict=True)]
    bench.figure(name, above.low / below.low, "x", bar, at_least=at_least, spread=each)


ABOUT = """\
Count, sum and mean of a float64 column and the greatest value of an int64 column, of the matches of each
left event, Arrow in and Arrow out. 200,000 events a side make 18.2 million pairs at 100 a second, and 72.9
million at 400. A million events at 4 a second make 3.6 million. Lengths are 20 to 200 ms, the window is
±500 ms, and the confidence 0.8. Counts read no columns. Pairs are made with both columns, and Arrow groups
them. DuckDB groups its fastest join. Each ratio is that of the fastest rounds. Sums and means of the others
agree with ours to one part in 10^9, and all else is equal.
"""

EXPERIMENT = Experiment(
    summary="aggregates of matches against counts, pairs with group_by, and DuckDB",
    run=run,
    title="Aggregates of matches",
    about=ABOUT,
    needs="duckdb",
)
