"""Sequences and coincidences of three streams and more, next to DuckDB's joins and to NumPy."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from bench.experiment import Bench, Experiment
from coincide import CorrelateOptions, coincidence_tables, correlate_tables, sequence_tables

OURS, DUCK, BINS = "sequences", "DuckDB, range joins", "DuckDB, joins of bins"
LINKS, COUNTS = "links alone", "counts"
ALL, SEARCHED, THREE = "coincidences of all six", "searchsorted and repeat", "at least three of six"
NAMES = ("a", "b", "c")
GAP = 1_000
"""Ticks from one event of a stream to the next, on average."""
MATCHES = 5
LENGTH, CONFIDENCE = 500, 0.8
WIDTH, DETECTORS = 300, 6
DUCK_BAR, LINKS_BAR = 5.0, 3.0


def run(bench: Bench) -> None:
    """Compare and time sequences of exact times, of intervals, and coincidences of detectors."""
    events = bench.pick(1_000_000, 2_000)
    rng = np.random.default_rng(3)
    streams = [_stream(rng, events) for _ in NAMES]
    _exact(bench, streams)
    _uncertain(bench, streams)
    _coincidences(bench, [_stream(rng, events) for _ in range(DETECTORS)])


def _stream(rng: np.random.Generator, events: int) -> pa.Table:
    times = rng.integers(0, events * GAP, events)
    return pa.table({"id": np.arange(events), "t": times, "until": times + LENGTH})


def _exact(bench: Bench, streams: list[pa.Table]) -> None:
    """Three streams of exact times: all sequences, and how many begin at each event."""
    ours = partial(found_sequences, streams, bench.cores)
    plans = in_duckdb(streams, bench.cores)
    answers = {name: _in_short(plan()) for name, plan in plans.items()}
    bench.check_equal("exact", {OURS: _in_short(ours()), **answers})
    counts = partial(found_sequences, streams, bench.cores, emit="counts")
    works = {OURS: _rows(ours), COUNTS: _rows(counts)}
    works |= {name: _rows(plan) for name, plan in plans.items()}
    times = bench.alternate("exact", works, rounds=7)
    bench.note(**{"exact: sequences": ours().num_rows})
    for plan, bar in ((DUCK, DUCK_BAR), (BINS, None)):
        bench.ratio_of_fastest(f"exact: {plan} / {OURS}", times[plan], times[OURS], bar)
    bench.ratio_of_fastest(f"exact: {OURS} / {COUNTS}", times[OURS], times[COUNTS])


def _uncertain(bench: Bench, streams: list[pa.Table]) -> None:
    """The same of intervals, next to the joins that find its links."""
    given: dict[str, Any] = {"time": ("t", "until"), "confidence": CONFIDENCE}
    ours = partial(found_sequences, streams, bench.cores, **given)
    links = partial(found_links, streams, bench.cores)
    counts = partial(found_sequences, streams, bench.cores, emit="counts", **given)
    bench.note(**{"uncertain: sequences": ours().num_rows, "uncertain: links": links()})
    works = {OURS: _rows(ours), COUNTS: _rows(counts), LINKS: links}
    times = bench.alternate("uncertain", works, rounds=5)
    bench.ratio_of_fastest(
        f"uncertain: {OURS} / {LINKS}", times[OURS], times[LINKS], LINKS_BAR, at_least=False
    )
    bench.ratio_of_fastest(f"uncertain: {COUNTS} / {LINKS}", times[COUNTS], times[LINKS])


def _coincidences(bench: Bench, detectors: list[pa.Table]) -> None:
    """Six detectors: all of them, which NumPy can search, and at least three."""
    options = CorrelateOptions(threads=bench.cores)
    every, three = (
        partial(coincidence_tables, detectors, WIDTH, time="t", at_least=at_least, options=options)
        for at_least in (DETECTORS, 3)
    )
    searched = partial(in_numpy, detectors)
    bench.check_equal(
        ALL, {ALL: _in_short(every().drop_columns("streams")), SEARCHED: _in_short(searched())}
    )
    bench.note(**{f"{ALL}: sets": every().num_rows, f"{THREE}: sets": three().num_rows})
    works = {ALL: _rows(every), SEARCHED: _rows(searched), THREE: _rows(three)}
    times = bench.alternate("detectors", works, rounds=3, warmups=0)
    bench.ratio_of_fastest(f"{SEARCHED} / {ALL}", times[SEARCHED], times[ALL])
    bench.ratio_of_fastest(f"{THREE} / {ALL}", times[THREE], times[ALL])


def found_sequences(streams: list[pa.Table], threads: int, **more: Any) -> pa.Table:
    """The sequences of three streams, or what else is asked for."""
    windows = [(0, MATCHES * GAP)] * 2
    asked: dict[str, Any] = {"time": "t", "options": CorrelateOptions(threads=threads), **more}
    return sequence_tables(streams, windows, **asked)


def found_links(streams: list[pa.Table], threads: int) -> int:
    """The pairs of each step, as tables: how many there are."""
    found = 0
    for own, other in pairwise(streams):
        found += correlate_tables(
            own, other, within=(0, MATCHES * GAP), confidence=CONFIDENCE,
            left_time=("t", "until"), right_time=("t", "until"),
            options=CorrelateOptions(threads=threads),
        ).num_rows  # fmt: skip
    return found


def in_duckdb(streams: list[pa.Table], threads: int) -> dict[str, Any]:
    """The same sequences in SQL: by two range joins, and by joins of bins of time, which hash."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    for name, table in zip(NAMES, streams, strict=True):
        connection.register(name, table)
    window = MATCHES * GAP
    select = "select a.id as a_id, b.id as b_id, c.id as c_id"
    steps = [f"b.t between a.t and a.t + {window}", f"c.t between b.t and b.t + {window}"]
    ranges = f"{select} from a join b on {steps[0]} join c on {steps[1]}"
    # An event meets those of its own bin and of the next.
    binned = (
        f"with x as (select *, t // {window} as bin from a),"
        f" y as (select *, unnest([t // {window}, t // {window} - 1]) as bin, t // {window} as own from b),"
        f" z as (select *, unnest([t // {window}, t // {window} - 1]) as bin from c)"
        f" {select.replace('a.', 'x.').replace('b.', 'y.').replace('c.', 'z.')}"
        f" from x join y on x.bin = y.bin and {steps[0].replace('a.', 'x.').replace('b.', 'y.')}"
        f" join z on y.own = z.bin and {steps[1].replace('b.', 'y.').replace('c.', 'z.')}"
    )
    return {
        name: lambda query=query: connection.sql(query).to_arrow_table()
        for name, query in ((DUCK, ranges), (BINS, binned))
    }


def in_numpy(detectors: list[pa.Table]) -> pa.Table:
    """Coincidences of all detectors as users of NumPy write them: one detector after the other."""
    times = [table["t"].to_numpy() for table in detectors]
    orders = [np.argsort(each, kind="stable") for each in times]
    rows = [np.arange(times[0].size)]
    first, last = times[0], times[0]
    for own, order in zip(times[1:], orders[1:], strict=True):
        ascending = own[order]
        begins = np.searchsorted(ascending, last - WIDTH, side="left")
        ends = np.searchsorted(ascending, first + WIDTH, side="right")
        counts = np.maximum(ends - begins, 0)
        parents = np.repeat(np.arange(counts.size), counts)
        places = np.arange(parents.size) - np.repeat(np.cumsum(counts) - counts - begins, counts)
        found = order[places]
        rows = [*(each[parents] for each in rows), found]
        first = np.minimum(first[parents], own[found])
        last = np.maximum(last[parents], own[found])
    names = [f"{name}_id" for name in "abcdef"]
    return pa.table(dict(zip(names, rows, strict=True)))


def _rows(work: Any) -> Any:
    return lambda: work().num_rows


def _in_short(table: pa.Table) -> str:
    """Rows in whatever order, as one number."""
    columns = [column.to_numpy() for column in table.columns]
    order = np.lexsort(columns[::-1])
    return f"{table.num_rows}: {hash(tuple(column[order].tobytes() for column in columns))}"


ABOUT = """\
Three streams of a million events, five matches a link. *Exact*: all sequences, three columns of ids out,
next to two plans of DuckDB. *Uncertain*: intervals of 500 ticks, half as long as the time
from one event to the next, next to the two joins that find the links. *Detectors*: six streams of a million
exact hits, all within 300 ticks, as NumPy searches for them; and sets of at least three. All find the same.
Each ratio is that of the fastest rounds.
"""

EXPERIMENT = Experiment(
    summary="sequences and coincidences of three streams and more, next to DuckDB and NumPy",
    run=run,
    title="Sequences",
    about=ABOUT,
    needs="duckdb",
)
