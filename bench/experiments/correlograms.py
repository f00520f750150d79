"""Histograms of delays, next to packages that make correlograms: few pairs to very many."""

from __future__ import annotations

from functools import partial
from zlib import crc32

import numpy as np

from bench.experiment import Bench, Experiment
from bench.peers import correlogram_peers
from coincide import CorrelateOptions, delay_histogram

NANOSECOND, SECOND = 10**3, 10**12
"""Times are picoseconds."""
BUCKETS = 1001
LOADS = {
    "±50 ns, 1 MHz": (50 * NANOSECOND, 1e6),
    "±1 µs, 1 MHz": (1000 * NANOSECOND, 1e6),
    "±1 ms, 100 kHz": (SECOND // 1000, 1e5),
    "±1 s, 1 kHz": (SECOND, 1e3),
}
"""The window, and events per second of each side."""
OURS = "ours"
BAR = 5.0


def run(bench: Bench) -> None:
    """Compare and time, for each window, equal buckets and ones that grow."""
    events = bench.pick(1_000_000, 2_000)
    bench.note(events=events, buckets=BUCKETS, not_installed=correlogram_peers.missing())
    for name, (half, rate) in LOADS.items():
        rng = np.random.default_rng(3)
        left, right = (_times(rng, events, events / rate) for _ in range(2))
        edges = _equal(half)
        _contest(bench, f"{name}, equal", left, right, edges, are_equal=True)
        _contest(bench, f"{name}, growing", left, right, _growing(edges), are_equal=False)


def _times(rng: np.random.Generator, events: int, seconds: float) -> np.ndarray:
    """Even numbers, so that no delay is at an odd edge: packages differ in where that belongs."""
    return np.sort(2 * rng.integers(0, int(seconds * SECOND) // 2, events))


def _equal(half: int) -> np.ndarray:
    """Odd edges of an odd number of buckets about 0, which one package takes alone."""
    own = (half // BUCKETS) | 1
    return (2 * np.arange(BUCKETS + 1) - BUCKETS) * own


def _growing(edges: np.ndarray) -> np.ndarray:
    """Odd edges above 0, each a constant factor above the one before where there are enough ticks."""
    found = np.geomspace(edges[-1] / 10_000, edges[-1], BUCKETS + 1)
    return np.unique(found.astype(np.int64) | 1)


def _contest(
    bench: Bench,
    name: str,
    left: np.ndarray,
    right: np.ndarray,
    edges: np.ndarray,
    *,
    are_equal: bool,
) -> None:
    sides = {"t": left}, {"t": right}
    options = CorrelateOptions(unit="ps", threads=bench.cores)

    def ours() -> int:
        found = delay_histogram(*sides, edges=edges, left_time="t", right_time="t", options=options)
        return _digest(found["pairs"].to_numpy())

    works = {OURS: ours}
    for peer, count in correlogram_peers.peers(are_equal=are_equal).items():
        works[peer] = partial(_counted, count, left, right, edges)
    times = bench.compared(name, works, rounds=3)
    bench.note(**{f"{name}: pairs": _pairs(left, right, edges)})
    for peer in works:
        if peer != OURS:
            bench.ratio(f"{name}: {peer} / {OURS}", times[peer], times[OURS], BAR)


def _counted(
    count: correlogram_peers.Counts, left: np.ndarray, right: np.ndarray, edges: np.ndarray
) -> int:
    return _digest(count(left, right, edges))


def _digest(counts: np.ndarray) -> int:
    """A number that tells counts apart."""
    return crc32(counts.astype(np.int64).tobytes())


def _pairs(left: np.ndarray, right: np.ndarray, edges: np.ndarray) -> int:
    low, high = (np.searchsorted(right, left + edge) for edge in (edges[0], edges[-1]))
    return int((high - low).sum())


ABOUT = f"""\
Pairs by delay, of a million events a side that come at any time alike, in {BUCKETS:,} buckets. Equal ones
lie about 0; growing ones reach from one part in 10,000 of the window to its end. Dicts of NumPy arrays in,
an Arrow table out, on all cores. pycorrelate, pynapple and the cursors of Laurence, Fore and Huser (2006),
as we wrote them, take one core each. They get sorted arrays. All counts are equal. Times are whole
picoseconds.
"""

EXPERIMENT = Experiment(
    summary="histograms of delays against pycorrelate, pynapple and cursors",
    run=run,
    title="Histograms of delays",
    about=ABOUT,
)
