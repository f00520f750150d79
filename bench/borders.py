"""The loads of the BMQ paper's experiments in one and more dimensions, and a run of ours over one.

Section 7: queries of width W, with lower borders uniform between 1 and D - 1; streams whose first
reading is uniform, and whose readings are FL apart on average, of the domain's size D. The paper leaves
open how steps are spread and what happens at the ends of the domain: here steps are normal, and a stream
turns back at an end. Its skewed data and queries are normal around D / 2; here with a deviation of D / 8.
All numbers are whole, so that every engine compares the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coincide.model.borders.crossings import IN, PointCrossings
from coincide.model.borders.index import BorderIndex
from coincide.model.borders.moves import EITHER, FIRST, FROM_OUTSIDE, MOVE, PEAKS, WALK
from cpu_fallback.borders import BorderSearch

if TYPE_CHECKING:
    from bench.experiment import Bench
    from bench.timing import Timing

DOMAIN = 10**9
PROCESSINGS = {"auto": EITHER, "traversal": WALK, "three-sided": PEAKS}
_EVENTS = (True, True, False)
_AT_ONCE = 1 << 20


class Walks(NamedTuple):
    """Readings by stream, in order of time: values, shape (n, d); kinds, `FIRST` or `MOVE`, shape (n,)."""

    values: np.ndarray
    kinds: np.ndarray


class Ranges(NamedTuple):
    """Queries, in order of their lower borders in the first dimension: float64 arrays, shape (N, d)."""

    lower: np.ndarray
    upper: np.ndarray

    def index(self) -> BorderIndex:
        """Their sorted borders."""
        return BorderIndex.of(self.lower, self.upper, np.arange(self.lower.shape[0]))


class Answer(NamedTuple):
    """Events that were found, and what was touched to find them."""

    events: int
    retrieved: int

    @property
    def efficiency(self) -> float:
        """The paper's processing efficiency: how much of what was touched is the answer (percent)."""
        return 100 * self.events / max(self.retrieved, 1)


@dataclass(frozen=True)
class BorderLoad:
    """Streams and queries; `width` and `fluctuation` are the paper's W and FL, of the domain's size."""

    queries: int = 100_000
    width: float = 1e-3
    fluctuation: float = 1e-4
    streams: int = 2000
    readings: int = 1000  # each stream's
    dimensions: int = 1
    skewed_data: bool = False  # normal instead of uniform, as are skewed queries
    skewed_queries: bool = False

    @property
    def size(self) -> int:
        """Readings of all streams."""
        return self.streams * self.readings

    def ranges(self) -> Ranges:
        """The queries, seeded."""
        return _ranges(self)

    def walks(self) -> Walks:
        """The streams, seeded."""
        return _walks(self)


@cache
def _ranges(load: BorderLoad) -> Ranges:
    rng = np.random.default_rng(1)
    lower = _drawn(rng, (load.queries, load.dimensions), load.skewed_queries)
    lower = lower[np.argsort(lower[:, 0], kind="stable")]
    return Ranges(lower, lower + round(load.width * DOMAIN))


def _walks(load: BorderLoad) -> Walks:
    rng = np.random.default_rng(2)
    begin = _drawn(rng, (load.streams, 1, load.dimensions), load.skewed_data)
    steps = rng.normal(size=(load.streams, load.readings, load.dimensions))
    steps *= (
        load.fluctuation * DOMAIN * np.sqrt(np.pi / 2)
    )  # the mean of a |normal| is sqrt(2 / pi)
    steps[:, 0] = 0
    # Back and forth between the ends of the domain.
    places = (begin + np.cumsum(steps, axis=1)) % (2 * DOMAIN)
    values = np.floor(DOMAIN - np.abs(DOMAIN - places)).reshape(-1, load.dimensions)
    return Walks(values, kinds_of(load.streams, load.readings))


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], skewed: bool) -> np.ndarray:
    if not skewed:
        return rng.integers(1, DOMAIN, shape).astype(np.float64)
    return np.floor(rng.normal(DOMAIN / 2, DOMAIN / 8, shape)).clip(1, DOMAIN - 1)


def kinds_of(streams: int, readings: int) -> np.ndarray:
    """Kinds of points: of each stream the first reading is silent, and moves follow."""
    kinds = np.full((streams, readings), MOVE, np.int8)
    kinds[:, 0] = FIRST
    return kinds.ravel()


def fluctuation(walks: Walks) -> float:
    """FL (section 4.4), of the domain's size: the mean distance of readings that follow each other."""
    moves = np.flatnonzero(walks.kinds == MOVE)
    steps = walks.values[moves] - walks.values[moves - 1]
    return float(np.sqrt((steps**2).sum(axis=1)).mean()) / DOMAIN


def found(
    index: BorderIndex, walks: Walks, processing: str = "auto", threads: int = 1
) -> Iterator[PointCrossings]:
    """The crossings of streams, in chunks."""
    search = BorderSearch(index, walks.values, walks.kinds, threads=threads)
    yield from search.found(0, walks.kinds.size, _EVENTS, PROCESSINGS[processing], _AT_ONCE)


def counted(index: BorderIndex, walks: Walks, processing: str = "auto", threads: int = 1) -> Answer:
    """Find the crossings of streams, and drop them once they are counted: the sink is left out."""
    search = BorderSearch(index, walks.values, walks.kinds, threads=threads)
    chunks = search.found(0, walks.kinds.size, _EVENTS, PROCESSINGS[processing], _AT_ONCE)
    events = sum(chunk.points.size for chunk in chunks)
    return Answer(events, search.retrieved)


def searched(
    bench: Bench,
    label: str,
    index: BorderIndex,
    walks: Walks,
    *,
    threads: int = 1,
    rounds: int = 3,
) -> dict[str, Timing]:
    """Times of all ways to process, which must find as many events."""
    ways = {name: partial(counted, index, walks, name, threads) for name in PROCESSINGS}
    times = bench.alternate(label, ways, rounds=rounds)
    events = {name: timing.answer.events for name, timing in times.items()}
    bench.check_equal(f"{label}: events", events)
    return times


def stabbed(index: BorderIndex, walks: Walks, threads: int = 1) -> Iterator[PointCrossings]:
    """The queries that hold each reading, found in our own index."""
    kinds = np.full(walks.kinds.size, FROM_OUTSIDE, np.int8)
    search = BorderSearch(index, walks.values, kinds, threads=threads)
    yield from search.found(0, kinds.size, (False, True, False), PEAKS, _AT_ONCE)


Proof = tuple[int, ...]


def proof(chunks: Iterator[PointCrossings]) -> Proof:
    """Proof of crossings in any order: how many, how many of them enter; sums of points, rows, products."""
    total = np.zeros(5, np.int64)
    for chunk in chunks:
        rows = chunk.rows.astype(np.int64)
        signs = np.where(chunk.events == IN, 3, 1)
        total += (
            rows.size, (chunk.events == IN).sum(), chunk.points.sum(), rows.sum(),
            ((chunk.points % 997) * (rows % 991) * signs).sum(),
        )  # fmt: skip
    return tuple(total.tolist())


PROOF_SQL = (
    "count(*), sum(entered), sum(point), sum(query),"
    " sum((point % 997) * (query % 991) * (1 + 2 * entered))"
)
"""The same in SQL."""
