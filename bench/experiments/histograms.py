"""Histogram timestamps: the table of satisfaction times, the join, and the paper's Figure 3."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bench.experiment import Bench, Experiment
from coincide.model.condition import Window
from coincide.model.templates.satisfaction import forget, satisfaction_times
from coincide.model.templates.tails import window_tails
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.timestamps import HistogramEvents, HistogramPairs, IntervalEvents, IntervalPairs
from cpu_fallback import EventJoin

MS = 1_000
DEADLINE = 1_500 * MS
CONFIDENCES = (0.5, 0.8, 0.95)
RATE = 25.0


def run(bench: Bench) -> None:
    """The table, then the join with it, then Figure 3."""
    rng = np.random.default_rng(1)
    templates = bench.pick(500, 20)
    left, right = (drawn(rng, templates) for _ in range(2))
    window = Window(-DEADLINE, DEADLINE, 0.8)
    bench.note(templates=templates, buckets="4 to 16", deadline_ms=1500, rate=RATE)
    _table(bench, left, right, window)
    _join(bench, rng, left, right, window)
    _figure_3(bench, left, right)


def drawn(rng: np.random.Generator, count: int) -> TemplateTable:
    """Random templates of 4 to 16 buckets, 20 ms to 700 ms long, in microseconds."""
    found = {}
    for name in range(count):
        buckets = int(rng.integers(4, 17))
        length = int(rng.integers(20 * MS, 700 * MS))
        inner = rng.choice(np.arange(1, length), buckets - 1, replace=False)
        edges = [0, *np.sort(inner).tolist(), length]
        found[str(name)] = Template(edges, rng.dirichlet(np.ones(buckets)).tolist())
    return template_table(found)


def _table(bench: Bench, left: TemplateTable, right: TemplateTable, window: Window) -> None:
    from bench.peers.histogram_peers import bisected

    some = bench.pick(2_000, 50)
    narrow = Window(-100 * MS, 100 * MS, 0.2)
    times = bench.alternate(
        "table",
        {
            "solved": partial(_solved, left, right, window),
            "bisected, some pairs": lambda: int(bisected(left, right, window, some).sum()),
            "another threshold": partial(_prepared, left, right, window),
        },
    )
    table = satisfaction_times(left, right, window)
    bench.check_equal(
        "satisfaction times of some pairs",
        {
            "solved": int(table.last.ravel()[:some].sum()),
            "bisected": times["bisected, some pairs"].answer,
        },
    )
    bench.seconds("table solved", times["solved"], 0.5)
    bench.seconds("another threshold, up to the join", times["another threshold"], 0.5)
    whole = times["bisected, some pairs"].median * 2 * table.last.size / some
    bench.figure("table by bisection on P, one core, from some pairs", whole, "s")
    started = time.perf_counter()
    _solved(left, right, narrow)
    bench.figure("table of a narrow window", time.perf_counter() - started, "s")


def _solved(left: TemplateTable, right: TemplateTable, window: Window) -> int:
    forget()
    return int(satisfaction_times(left, right, window).last.sum())


def _prepared(left: TemplateTable, right: TemplateTable, window: Window) -> int:
    """All that a new threshold costs before events are touched."""
    _solved(left, right, window)
    return HistogramPairs(window, left, right).rule.first.size


def _join(
    bench: Bench,
    rng: np.random.Generator,
    left_table: TemplateTable,
    right_table: TemplateTable,
    window: Window,
) -> None:
    from bench.peers.histogram_peers import DuckDBTable, probe_each

    n = bench.pick(200_000, 1_000)
    few = bench.pick(10_000, 200)
    left, right = (_events(rng, n, table) for table in (left_table, right_table))
    model = HistogramPairs(window, left_table, right_table)
    intervals = [_as_intervals(side) for side in (left, right)]
    # For intervals, by the threshold that gives as many pairs.
    own = _equal_window(intervals, window, _pairs(bench, left, right, model))
    duck = DuckDBTable(left, right, model.table, bench.cores)
    plan = bench.fastest(
        "DuckDB", {name: partial(duck.pairs, name) for name in DuckDBTable.PLANS}, rounds=1
    )
    joined: Callable[[], int] = partial(_pairs, bench, left, right, model)
    # By themselves: what follows a contestant of seconds begins with its caches cold.
    both = bench.alternate(
        "join beside intervals",
        {"Coincide": joined, "intervals": partial(_pairs, bench, *intervals, IntervalPairs(own))},
        rounds=15,
        warmups=2,
    )
    contestants: dict[str, Callable[[], int]] = {
        "Coincide": joined,
        f"DuckDB, {plan}": partial(duck.pairs, plan),
        "Theorem 1 at each candidate, some events": lambda: probe_each(left, right, window, few),
    }
    times = bench.alternate("join", contestants)
    ours, database, probed = times.values()
    alone, plain = both.values()
    bench.check_equal("pairs", {"Coincide": ours.answer, "DuckDB": database.answer})
    join = EventJoin(left, right, model, threads=bench.cores)
    part = int(join.counts[join.left_order < few].sum())
    bench.check_equal("pairs of some events", {"Coincide": part, "Theorem 1": probed.answer})
    bench.note(pairs=ours.answer, pairs_of_intervals=plain.answer)
    each = [a / b for a, b in zip(alone.seconds, plain.seconds, strict=True)]
    bench.figure(
        "join: times that of intervals", alone.median / plain.median, "x", 1.5, at_least=False,
        spread=each,
    )  # fmt: skip
    bench.ratio("join: DuckDB with the table as a relation", database, ours, 5.0)
    bench.figure(
        "join: Theorem 1 at each candidate, one core, from some events",
        probed.median * n / few / ours.median, "x", 20.0,
    )  # fmt: skip


def _events(rng: np.random.Generator, n: int, table: TemplateTable) -> HistogramEvents:
    times = np.sort(rng.integers(0, int(n / RATE * 1e6), n))
    return HistogramEvents(times, rng.integers(0, len(table), n), table)


def _as_intervals(events: HistogramEvents) -> IntervalEvents:
    lengths = events.table.lengths[events.template]
    return IntervalEvents(events.max_time - lengths, events.max_time)


def _pairs(bench: Bench, left: object, right: object, model: object) -> int:
    join = EventJoin(left, right, model, threads=bench.cores)  # type: ignore[arg-type]
    found = 0
    for start, stop in join.chunks(1 << 22):
        found += join.pairs(start, stop, join.left_order, join.right_order)[0].size
    return found


def _equal_window(sides: list[IntervalEvents], window: Window, pairs: int) -> Window:
    low, high = 0, 2 * window.hi
    while high - low > window.hi // 1000:
        middle = (low + high) // 2
        found = EventJoin(*sides, IntervalPairs(Window(-middle, middle, window.confidence)))
        low, high = (middle, high) if found.counters.pairs < pairs else (low, middle)
    return Window(-high, high, window.confidence)


def _figure_3(bench: Bench, left: TemplateTable, right: TemplateTable) -> None:
    """Probe ranges of one event: by Theorem 3, and by Equations 4 to 6."""
    own = len(left) // 2
    length, longest = int(left.lengths[own]), int(right.lengths.max())
    # Equations 4 and 5: both probe ranges are as long as both timestamps.
    wide = 2 * (length + longest)
    for confidence in CONFIDENCES:
        table = satisfaction_times(left, right, Window(-DEADLINE, DEADLINE, confidence))
        tight = int(np.ptp(table.first[own])) + int(np.ptp(table.last[own]))
        bench.figure(f"probe range at ct {confidence}, Theorem 3", tight / MS, "ms")
        bench.figure(
            f"probe range at ct {confidence}, Equations 4-5 times as wide", wide / tight, "x"
        )
    ends = np.linspace(-DEADLINE - length, DEADLINE + longest, bench.pick(241, 9)).astype(np.int64)
    shown = np.array(
        [
            [
                1.0 - window_tails(left.buckets, own, right.buckets, j, -DEADLINE - s, DEADLINE - s)
                for j in range(len(right))
            ]
            for s in ends.tolist()
        ]
    )
    bench.chart(
        "figure3",
        "One event against all templates, d = 1,500 ms (Figure 3)",
        "max_time of the match, less that of the event (ms)",
        "satisfaction probability",
        (ends / MS).tolist(),
        {
            "least likely template": shown.min(axis=1).tolist(),
            "most likely template": shown.max(axis=1).tolist(),
            "threshold 0.8": [0.8] * ends.size,
        },
        dashed=["threshold 0.8"],
    )
    at = satisfaction_times(left, right, Window(-DEADLINE, DEADLINE, 0.8))
    tight = int(np.ptp(at.first[own])) + int(np.ptp(at.last[own]))
    bench.claim(
        "Theorem 3's probe ranges are tighter than Equations 4 and 5 (Figure 3)",
        f"{tight / MS:,.0f} ms instead of {wide / MS:,.0f} ms at ct 0.8",
        tight < wide,
    )


ABOUT = """\
500 random templates a side, 4 to 16 buckets, 20 to 700 ms long, within ±1,500 ms at confidence 0.8 (Mok,
Woo & Lee, 2006, Example 5). The table holds the s that qualify for each of 250,000 pairs of templates. The
join has 200,000 events a side at 25 a second. It runs against intervals whose window gives as many pairs,
and against DuckDB with the table as a joined relation. It also runs against Theorem 1 at each candidate of
Equations 4 and 5.
"""

EXPERIMENT = Experiment(
    summary="histogram timestamps: the table, the join, and Figure 3",
    run=run,
    title="Histogram timestamps",
    about=ABOUT,
    needs="duckdb",
)
