"""Arrays in and out: coincidences of exact hits, next to `searchsorted` and to tables."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from bench.experiment import Bench, Experiment
from coincide import ArrayMatches, CorrelateOptions, correlate_arrays, correlate_tables

OURS, SEARCHED, TABLES = "arrays", "searchsorted and repeat", "tables"
COUNTS, COUNTED = "counts of arrays", "searchsorted"
NANOSECONDS = 50
GAP = 100
"""Nanoseconds from one hit to the next, on average."""
SEARCHED_BAR, TABLES_BAR = 3.0, 1.5


def run(bench: Bench) -> None:
    """Compare and time the pairs of sorted hits, and of hits in no order."""
    hits = bench.pick(10_000_000, 5_000)
    rng = np.random.default_rng(7)
    left, right = (np.sort(rng.integers(0, hits * GAP, hits)) for _ in range(2))
    _contest(bench, "sorted", left, right, with_bars=True)
    few = bench.pick(2_000_000, 5_000)
    mixed = [rng.permutation(side[:few]) for side in (left, right)]
    _contest(bench, "in no order", *mixed)


def _contest(
    bench: Bench, name: str, left: np.ndarray, right: np.ndarray, *, with_bars: bool = False
) -> None:
    ours = partial(joined, left, right, bench.cores)
    tables = partial(table_pairs, left, right, bench.cores)
    found, pairs = ours(), searched(left, right)
    bench.check_equal(name, {OURS: _in_short(found.left, found.right), SEARCHED: _in_short(*pairs)})
    bench.check_equal(f"{name}: {TABLES}", {OURS: found.left.size, TABLES: tables().num_rows})
    counts = partial(joined, left, right, bench.cores, emit="counts")
    totals = {COUNTS: int(counts().counts.sum()), COUNTED: int(counted(left, right).sum())}
    bench.check_equal(f"{name}: {COUNTS}", totals)
    bench.note(**{f"{name}: pairs": found.left.size})
    works = {
        OURS: lambda: ours().left.size,
        SEARCHED: lambda: searched(left, right)[0].size,
        TABLES: lambda: tables().num_rows,
        COUNTS: lambda: counts().counts.size,
        COUNTED: lambda: counted(left, right).size,
    }
    times = bench.alternate(name, works, rounds=7)
    bars = (SEARCHED_BAR, TABLES_BAR, None) if with_bars else (None, None, None)
    for above, below, bar in zip(
        (SEARCHED, TABLES, COUNTED), (OURS, OURS, COUNTS), bars, strict=True
    ):
        bench.ratio_of_fastest(f"{name}: {above} / {below}", times[above], times[below], bar)


def joined(left: np.ndarray, right: np.ndarray, threads: int, **more: str) -> ArrayMatches:
    """The pairs, or what else is asked for, of arrays."""
    options = CorrelateOptions(threads=threads)
    return correlate_arrays(
        left, right, within=(-NANOSECONDS, NANOSECONDS), options=options, **more
    )  # type: ignore[arg-type]


def table_pairs(left: np.ndarray, right: np.ndarray, threads: int) -> pa.Table:
    """The same of tables with the numbers of rows."""
    sides = ({"t": side} for side in (left, right))
    return correlate_tables(
        *sides, within=(-NANOSECONDS, NANOSECONDS), left_time="t", right_time="t",
        options=CorrelateOptions(threads=threads),
    )  # fmt: skip


def searched(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What users of NumPy write: the matches of each left hit are one run of sorted right ones."""
    order = None if _is_sorted(right) else np.argsort(right, kind="stable")
    times = right if order is None else right[order]
    first, last = _ends(left, times)
    counts = last - first
    rows = np.repeat(np.arange(left.size), counts)
    before = np.cumsum(counts) - counts
    found = np.arange(rows.size) - np.repeat(before - first, counts)
    return rows, found if order is None else order[found]


def counted(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """How many matches each left hit has."""
    first, last = _ends(left, right if _is_sorted(right) else np.sort(right))
    return last - first


def _is_sorted(times: np.ndarray) -> bool:
    return bool((times[1:] >= times[:-1]).all())


def _ends(left: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = np.searchsorted(times, left - NANOSECONDS, side="left")
    return first, np.searchsorted(times, left + NANOSECONDS, side="right")


def _in_short(left: np.ndarray, right: np.ndarray) -> str:
    """Pairs in whatever order, as one number."""
    order = np.lexsort((right, left))
    return f"{left.size}: {hash((left[order].tobytes(), right[order].tobytes()))}"


ABOUT = """\
Ten million exact hits a side, one in 100 ns, and the pairs within ±50 ns: two int64 arrays in, two arrays
of row numbers out. Users of NumPy search the ends of each window by `searchsorted`, and repeat rows; the
sort of the right side is included where it is in no order, as two million are. Tables have a column of
times, and give the numbers of rows. All find the same pairs. NumPy uses one core,
ours as many as there are. Each ratio is that of the fastest rounds, since those of the others swing.
"""

EXPERIMENT = Experiment(
    summary="arrays in and out, next to searchsorted and to tables",
    run=run,
    title="Arrays",
    about=ABOUT,
)
