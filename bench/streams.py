"""The streams of Lee & Lee (2010), section 5, and a run of a correlator over one of them.

The paper names the arrival rates (r12 ... r1600 of as many tuples a second), d, the confidence
thresholds, the block size, and by its example lengths of 20 to 200 ms. It leaves open how long the
streams are, how tuples are spread over time, and how late they come. Here a stream lasts a minute,
events come at random with that rate on average (a Poisson process), lengths are uniform, and an event
arrives up to 50 ms after its max_time, uniformly; in ``seq`` it arrives at its max_time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from bench.events import LONGEST_US, SHORTEST_US
from bench.experiment import Bench
from bench.fingerprints import fingerprint
from bench.papers.streams import stream_correlator
from bench.papers.streams.correlator import MakeLive
from bench.papers.streams.live_blocks import LiveBlocks
from bench.papers.streams.results import Matches, StreamStats
from coincide.model.condition import Window
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from cpu_fallback import EventJoin

RATES = (12, 24, 50, 100, 200, 400, 800, 1600)
"""Arrival rates of the paper's streams, events per second."""
BLOCK = 1000
"""The paper's "enough" number of tuples."""
_SECONDS = 60.0
_DELAY_US = 50_000
_PUSHED_TOGETHER = 2000
_PAIRS_AT_ONCE = 1 << 20


class Arrivals(NamedTuple):
    """Both streams by arrival: sides (0 left, 1 right), uint8; times, int64 microseconds; shape (n,)."""

    sides: np.ndarray
    min_time: np.ndarray
    max_time: np.ndarray
    arrival: np.ndarray


@dataclass(frozen=True)
class StreamLoad:
    """Two streams of one rate."""

    rate: float  # events per second of each
    seconds: float = _SECONDS  # how long they last
    ordered: bool = False  # whether events arrive at their max_time, as in the paper's seq.dat

    @property
    def delay_us(self) -> int:
        """The largest delay, microseconds."""
        return 0 if self.ordered else _DELAY_US

    def arrivals(self) -> Arrivals:
        """The events, seeded."""
        return _arrivals(self)

    def events(self) -> tuple[IntervalEvents, IntervalEvents]:
        """Left and right for a batch join, in order of arrival."""
        arrivals = self.arrivals()
        left, right = (
            IntervalEvents(arrivals.min_time[mine], arrivals.max_time[mine], None, 1)
            for mine in (arrivals.sides == 0, arrivals.sides == 1)
        )
        return left, right


@cache
def _arrivals(load: StreamLoad) -> Arrivals:
    streams = [_stream(load, seed) for seed in (1, 2)]
    sides = np.repeat(np.arange(2, dtype=np.uint8), [low.size for low, _, _ in streams])
    low, high, arrival = (np.concatenate(parts) for parts in zip(*streams, strict=True))
    order = np.argsort(arrival, kind="stable")
    return Arrivals(sides[order], low[order], high[order], arrival[order])


def _stream(load: StreamLoad, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """min_time, max_time and arrival of one side, by max_time."""
    random = np.random.default_rng(seed)
    n = max(1, round(load.rate * load.seconds))
    high = LONGEST_US + np.sort(random.integers(0, int(load.seconds * 1e6), n))
    length = random.integers(SHORTEST_US, LONGEST_US, n, endpoint=True)
    late = random.integers(0, load.delay_us, n, endpoint=True)
    return high - length, high, high + late


def mutual_deadline_us(deadline_ms: int, confidence: float) -> Window:
    """The paper's |T_right - T_left| <= d with its confidence threshold."""
    return Window(-1000 * deadline_ms, 1000 * deadline_ms, confidence)


@dataclass(frozen=True)
class StreamRun:
    """What a correlator is run on: everything but the algorithm."""

    load: StreamLoad
    window: Window  # microseconds
    block: int = BLOCK
    emit: str = "counts"
    response: bool = False  # whether to measure response times
    live_blocks: MakeLive = LiveBlocks  # what keeps the live events of lazy algorithms: the backend
    together: int = _PUSHED_TOGETHER  # events of a push

    def __call__(self, algorithm: str) -> StreamStats:
        """Push the streams through a new correlator, as they arrive; results are taken and dropped."""
        return self._run(algorithm, lambda matches: None)

    def proof(self, algorithm: str) -> tuple[tuple[int, ...], StreamStats]:
        """Fingerprint of the pairs that an algorithm finds, see `bench.fingerprints`; not for counts."""
        sums: list[tuple[int, ...]] = []
        stats = self._run(algorithm, lambda m: sums.append(fingerprint(m.left, m.right)))
        return tuple(map(sum, zip(*sums, strict=True))), stats

    def fingerprint_of_join(self) -> tuple[int, ...]:
        """The fingerprint of the pairs of the batch join."""
        join = EventJoin(*self.load.events(), IntervalPairs(self.window))
        sums = [
            fingerprint(*join.pairs(*run, join.left_order, join.right_order))
            for run in join.chunks(_PAIRS_AT_ONCE)
        ]
        return tuple(map(sum, zip(*sums, strict=True)))

    def _run(self, algorithm: str, take: Callable[[Matches], None]) -> StreamStats:
        arrivals, delay = self.load.arrivals(), self.load.delay_us
        correlator = stream_correlator(
            algorithm,
            self.window,
            left_delay=delay,
            right_delay=delay,
            left_longest=LONGEST_US,
            right_longest=LONGEST_US,
            left_shortest=SHORTEST_US,
            right_shortest=SHORTEST_US,
            block=self.block,
            emit=self.emit,  # type: ignore[arg-type]
            response=self.response,
            live_blocks=self.live_blocks,
        )
        found = 0
        for start in range(0, arrivals.sides.size, self.together):
            sides, low, high, arrival = (array[start : start + self.together] for array in arrivals)
            matches = correlator.push_mixed(sides, (low, high), arrival=arrival)
            found += matches.count
            take(matches)
            # Dropped before the next push, which may then use its memory again.
            del matches
        last = correlator.flush()
        take(last)
        stats = correlator.stats
        assert stats.pairs == found + last.count
        return stats


def check_streams(
    bench: Bench, label: str, work: StreamRun, algorithms: Iterable[str]
) -> dict[str, StreamStats]:
    """What each algorithm reports of the pairs, which all must find as the batch join; this warms up."""
    pairs = replace(work, emit="pairs", response=True)
    proofs = {name: pairs.proof(name) for name in algorithms}
    found = {name: fingerprint for name, (fingerprint, _) in proofs.items()}
    bench.check_equal(f"{label}: pairs", {"batch join": pairs.fingerprint_of_join(), **found})
    return {name: stats for name, (_, stats) in proofs.items()}
