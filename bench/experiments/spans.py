"""Joins of spans, events that last, against engines of intervals and query engines."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench.experiment import Bench, Experiment
from bench.fingerprints import fingerprint_of_table
from bench.peers.span_peers import Ends, Peer, checksum, missing, peers
from coincide import CorrelateOptions, JoinReport, correlate_tables, overlapping, spans

Lengths = Callable[[np.random.Generator, int], np.ndarray]
KEYS = 24
MONTH = 30 * 86_400
RURANGES_MAY_LEAD = 1 / 1.5
"""The least share of our time that ruranges may take."""


def short(random: np.random.Generator, n: int) -> np.ndarray:
    """Lengths of a hundred to a thousand ticks."""
    return random.integers(100, 1_000, n)


def instants(random: np.random.Generator, n: int) -> np.ndarray:
    """No lengths."""
    return np.zeros(n, np.int64)


def activities(random: np.random.Generator, n: int) -> np.ndarray:
    """A minute to an hour in seconds, but for ten of a month."""
    lengths = random.integers(60, 3_600, n)
    lengths[random.choice(n, 10, replace=False)] = MONTH
    return lengths


def of_any_size(random: np.random.Generator, n: int) -> np.ndarray:
    """As many of each order of magnitude, up to a million ticks."""
    return np.exp(random.uniform(0, np.log(1e6), n)).astype(np.int64)


@dataclass(frozen=True)
class Case:
    """Spans of both sides, which begin anywhere in a stretch of time, and come in no order."""

    name: str
    sizes: tuple[int, int]
    lengths: tuple[Lengths, Lengths]
    apart: int  # ticks from one right start to the next, on average
    keys: int = 1
    leads: bool = False  # whether it is to be the fastest of all
    candidates: float | None = None  # the most for each pair
    bar_of_ruranges: float | None = None

    def sides(self, share: int) -> tuple[Side, Side]:
        """Both sides; of all their spans, one in `share`."""
        sizes = [n // share for n in self.sizes]
        stretch = max(1, sizes[1] * self.apart)
        left, right = (
            Side.drawn(np.random.default_rng(seed), n, lengths, stretch, self.keys)
            for seed, (n, lengths) in enumerate(zip(sizes, self.lengths, strict=True))
        )
        return left, right


@dataclass(frozen=True)
class Side:
    """Spans of one side, and their keys."""

    ends: Ends
    key: np.ndarray
    stretch: int

    @classmethod
    def drawn(
        cls, random: np.random.Generator, n: int, lengths: Lengths, stretch: int, keys: int
    ) -> Side:
        """Some spans."""
        start = random.integers(0, stretch, n)
        return cls(Ends(start, start + lengths(random, n)), random.integers(0, keys, n), stretch)

    @property
    def keyless(self) -> Ends:
        """The same, each key in a stretch of time of its own."""
        moved = self.key * (self.stretch + MONTH)
        return Ends(self.ends.start + moved, self.ends.end + moved)

    def table(self) -> pa.Table:
        """As Coincide takes it."""
        columns = {"start": self.ends.start, "end": self.ends.end, "key": self.key}
        return pa.table({"id": np.arange(self.ends.size), **columns})


TWICE = (short, short)
CASES = (
    Case("200 k x 200 k, dense", (200_000, 200_000), TWICE, 44, leads=True, candidates=2.0),
    Case("1 M x 1 M, sparse", (1_000_000, 1_000_000), TWICE, 1_500, bar_of_ruranges=RURANGES_MAY_LEAD),
    Case("200 k spans x 2 M instants", (200_000, 2_000_000), (short, instants), 44,
         bar_of_ruranges=RURANGES_MAY_LEAD),
    Case("20 k spans, ten of a month, x 200 k instants", (20_000, 200_000), (activities, instants), 158,
         leads=True, candidates=1.5),
    Case("200 k x 200 k, ten of a month each", (200_000, 200_000), (activities, activities), 1_577,
         leads=True),
    Case("200 k x 200 k, lengths of any size", (200_000, 200_000), (of_any_size, of_any_size), 5_800,
         leads=True, candidates=2.0),
    Case("2 M x 300 k, 24 keys", (2_000_000, 300_000), TWICE, 46, KEYS,
         bar_of_ruranges=RURANGES_MAY_LEAD),
)  # fmt: skip


def run(bench: Bench) -> None:
    """Time pairs and counts of every case, all engines in alternating rounds."""
    # Read when Polars is first imported.
    os.environ.setdefault("POLARS_MAX_THREADS", str(bench.cores))
    if missing():
        bench.note(not_installed=missing())
        bench.tell(f"not installed, so not measured: {', '.join(missing())}")
    for case in CASES:
        _case(bench, case)


def _case(bench: Bench, case: Case) -> None:
    left, right = case.sides(bench.pick(1, 1_000))
    others = peers(left.keyless, right.keyless, bench.cores)
    report = JoinReport()
    ours = _ours(left.table(), right.table(), case, bench.cores, report)
    everyone = {"Coincide": ours, **others}
    _compare(bench, case, "pairs", {n: (p.pairs, p.pairs_in_short) for n, p in everyone.items()})
    counting = {n: (p.counts, p.counts_in_short) for n, p in everyone.items() if p.counts}
    _compare(bench, case, "counts", counting)
    if case.candidates is None:
        return
    ours.pairs()
    counters = report.summary().counters
    assert counters is not None
    bench.figure(
        f"{case.name}: candidates for each pair", counters.candidates / max(1, counters.pairs),
        "x", case.candidates, at_least=False,
    )  # fmt: skip


def _ours(left: pa.Table, right: pa.Table, case: Case, cores: int, report: JoinReport) -> Peer:
    is_instant = case.lengths[1] is instants
    joined = partial(
        correlate_tables, left, right, overlapping(), by=["key"] if case.keys > 1 else [],
        left_time=spans("start", "end"), right_time="start" if is_instant else spans("start", "end"),
        left_columns=["id"], options=CorrelateOptions(threads=cores), report=report,
    )  # fmt: skip

    def ids(found: pa.Table) -> pa.Table:
        return found.select(["left_id", "right_id"])

    def of_counts(found: pa.Table) -> int:
        counts = np.zeros(left.num_rows, np.int64)
        counts[found["left_id"].to_numpy()] = found["matches"].to_numpy()
        return checksum(counts)

    return Peer(
        partial(joined, right_columns=["id"]), partial(joined, emit="counts"),
        lambda found: fingerprint_of_table(ids(found)), of_counts,
    )  # fmt: skip


def _compare(
    bench: Bench,
    case: Case,
    what: str,
    works: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]],
) -> None:
    label = f"{case.name}, {what}"
    # Before they are timed: each also warms up by it.
    answers = {name: in_short(work()) for name, (work, in_short) in works.items()}
    bench.check_equal(label, answers)
    times = bench.alternate(label, {name: work for name, (work, _) in works.items()}, warmups=0)
    ours = times.pop("Coincide")
    for name, theirs in times.items():
        bar = 1.0 if name == "superintervals" or (case.leads and what == "pairs") else None
        if name == "ruranges" and what == "pairs":
            bar = bar or case.bar_of_ruranges
        bench.ratio(f"{label}: {name}", theirs, ours, bar)


ABOUT = """\
Two sides of spans begin anywhere and come in no order. Pairs are those that overlap, as two columns of
ids, and counts are the matches of each left span. A figure is the other engine's time over Coincide's.
Coincide takes Arrow tables and gives one. All others take arrays, with keys put into times beforehand, and
give arrays. DuckDB writes a table. DuckDB and Polars use two cores like Coincide, and the rest one.
superintervals gives lists, which become arrays here. An engine without a figure was not installed.
"""

EXPERIMENT = Experiment(
    summary="joins of spans against superintervals, NCLS, ruranges, bioframe, DuckDB and Polars",
    run=run,
    title="Spans",
    about=ABOUT,
    needs="superintervals, ncls, duckdb, polars; ruranges and bioframe where they are installed",
)
