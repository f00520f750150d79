"""Random streams for the tests of the stream correlators: events, orders of arrival, ways to push."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.papers.streams import stream_correlator
from bench.papers.streams.correlator import StreamCorrelator
from coincide import Window
from coincide.model.timestamps import IntervalEvents
from tests.helpers.strategies import JoinCase, random_cases

Pairs = np.ndarray
"""int64 array of shape (n, 2), sorted: left and right positions."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The events of one side in order of arrival, within its delay."""

    low: np.ndarray
    high: np.ndarray
    arrival: np.ndarray
    delay: int

    def __len__(self) -> int:
        return self.low.size

    @property
    def lengths(self) -> np.ndarray:
        return self.high - self.low

    @property
    def events(self) -> IntervalEvents:
        return IntervalEvents(self.low, self.high)

    def limits(self, side: str) -> dict[str, int]:
        """What the correlator knows about this side."""
        return {
            f"{side}_delay": self.delay,
            f"{side}_longest": int(self.lengths.max(initial=0)),
            f"{side}_shortest": int(self.lengths.min(initial=0)),
        }


@dataclass(frozen=True, eq=False)
class StreamCase:
    """Two streams, a condition, and how they are pushed."""

    left: Stream
    right: Stream
    window: Window
    options: dict[str, Any] = field(default_factory=dict)

    def correlator(self, algorithm: str, **options: Any) -> StreamCorrelator:
        limits = self.left.limits("left") | self.right.limits("right")
        return stream_correlator(algorithm, self.window, **(limits | self.options | options))


def delayed(low: np.ndarray, high: np.ndarray, delay: int, rng: np.random.Generator) -> Stream:
    """Events with random arrivals up to `delay` after their max_time."""
    # A delay of 0 for some, of all that is allowed for others.
    share = rng.choice([0.0, 1.0, rng.random()], low.size)
    arrival = high + (delay * share * rng.random(low.size) ** 0.3).astype(np.int64)
    arrival = np.minimum(arrival, high + delay)
    order = np.lexsort((rng.random(low.size), arrival))
    return Stream(low[order], high[order], arrival[order], delay)


def random_stream(
    size: int, span: int, lengths: tuple[int, int], delay: int, rng: np.random.Generator
) -> Stream:
    """Uniform max_times and lengths."""
    high = rng.integers(0, span, size, endpoint=True)
    return delayed(high - rng.integers(*lengths, size, endpoint=True), high, delay, rng)


def paper_streams(
    seconds: float, rate: int = 1600, delay: int = 50_000, seed: int = 0
) -> tuple[Stream, Stream]:
    """Streams as in Lee & Lee (2010), section 5: lengths from 20 to 200 ms; microseconds."""
    rng = np.random.default_rng(seed)
    size, span = int(rate * seconds), int(seconds * 1e6)
    left, right = (random_stream(size, span, (20_000, 200_000), delay, rng) for _ in range(2))
    return left, right


def streams_of(case: JoinCase, rng: np.random.Generator) -> tuple[Stream, Stream]:
    """A join case of the property tests as streams."""
    sides = []
    for rows in (case.left, case.right):
        low, high = (
            np.array([row[name] for row in rows], np.int64) for name in ("min_time", "max_time")
        )
        span = int(high.max(initial=0) - high.min(initial=0)) if high.size else 0
        delay = int(rng.choice([0, 1, span // 20, span // 4, span]))
        sides.append(delayed(low, high, min(delay, 2**58), rng))
    return sides[0], sides[1]


def small_cases(seed: int, count: int) -> list[tuple[int, StreamCase]]:
    """Adversarial cases of the join's property tests, fed as streams."""
    found = []
    for i, case in enumerate(random_cases(seed, count, max_size=16, nulls=False, keys=False)):
        rng = np.random.default_rng([seed, i, 1])
        window = Window(case.lo, case.hi, case.confidence)
        found.append((i, StreamCase(*streams_of(case, rng), window, random_options(rng, 40))))
    return found


def random_options(rng: np.random.Generator, size: int) -> dict[str, Any]:
    """A re-evaluation condition, and classes."""
    block = int(rng.choice([1, 2, 7, size // 4 + 1, size + 1]))
    every = int(rng.choice([1, 50, 10_000]))
    both = {"block": block, "every": every}
    options = [{"block": block, "every": None}, {"block": None, "every": every}, both]
    return {**options[rng.integers(3)], "classes": int(rng.integers(1, 17))}


def middling_case(seed: int, most: int = 400) -> StreamCase:
    """Up to some hundred events a side: bursts, duplicate times, narrow and lopsided windows."""
    rng = np.random.default_rng([77, seed])
    longest = int(rng.choice([0, 1, 9, 100, 900]))
    span = int(rng.choice([300, 5_000, 40_000]))
    sides = []
    for _ in range(2):
        size = int(rng.integers(1, most))
        high = rng.integers(0, span, size)
        if rng.random() < 0.5:
            bursts = rng.integers(0, span, 3)
            high = np.where(rng.random(size) < 0.6, rng.choice(bursts, size), high)
        lengths = rng.integers(0, longest, size, endpoint=True)
        if rng.random() < 0.4:
            lengths = rng.choice(lengths, min(size, 3))[rng.integers(0, min(size, 3), size)]
        delay = int(rng.choice([0, 3, 200, span]))
        sides.append(delayed(high - lengths, high, delay, rng))
    window = random_window(rng, longest)
    return StreamCase(sides[0], sides[1], window, random_options(rng, most // 2))


def dense_case(seed: int, size: int = 40, **options: Any) -> StreamCase:
    """Some ten matches for each event, disorder, and few values of length now and then."""
    rng = np.random.default_rng([81, seed])
    longest = int(rng.choice([3, 40, 90]))
    origin = int(rng.choice([0, -(10**6), 1_700_000_000 * 10**6]))
    sides = []
    for _ in range(2):
        stream = random_stream(size, 1000, (0, longest), int(rng.choice([0, 30, 300])), rng)
        sides.append(
            Stream(*(t + origin for t in (stream.low, stream.high, stream.arrival)), stream.delay)
        )
    ends = [(-90, 130), (-longest, longest), (0, 200), (-200, -20), (3, 5)][rng.integers(5)]
    window = Window(*ends, float(rng.choice([1.0, 0.8, 0.4, 0.05])))
    re_evaluate = [{"block": 1}, {"block": 7}, {"block": 16, "every": 120}, {"block": 10**6}]
    given = {"every": None, **re_evaluate[seed % 4], "classes": int(rng.integers(1, 7))}
    return StreamCase(sides[0], sides[1], window, given | options)


def random_window(rng: np.random.Generator, longest: int) -> Window:
    """Wide, lopsided, narrower than the timestamps, or on one side of zero."""
    unit = longest + 1
    wide, shift, narrow = (int(rng.integers(0, k * unit + 1)) for k in (6, 4, 1))
    ends = [
        (-2 * longest - wide, 2 * longest + wide),
        (-longest, longest),
        (-longest - wide, shift),
        (shift - narrow, shift),
        (shift, shift + wide),
        (-shift - wide, -shift),
    ][rng.integers(6)]
    confidence = float(
        rng.choice([1.0, 0.8, 0.5, 0.5, 1 / 3, 0.1, 1e-6, 1e-12, rng.random() + 1e-9])
    )
    return Window(*ends, min(confidence, 1.0))


def feed(correlator: StreamCorrelator, case: StreamCase, rng: np.random.Generator) -> Pairs:
    """Push both streams in pieces of any size, then flush: all pairs, sorted."""
    way = rng.integers(3)
    if way == 0:
        results = push_mixed(correlator, case, rng, arrivals=bool(rng.integers(2)))
    else:
        results = push_sides(correlator, case, rng, arrivals=way == 1)
    results.append(correlator.flush())
    return sorted_pairs(results)


def push_mixed(
    correlator: StreamCorrelator, case: StreamCase, rng: np.random.Generator, *, arrivals: bool
) -> list[Any]:
    """Both streams as they arrive among each other."""
    sides, low, high, arrival = mixed(case, rng)
    results = []
    for rows in np.split(np.arange(sides.size), cuts(rng, sides.size)):
        given = {"arrival": arrival[rows]} if arrivals else {}
        results.append(correlator.push_mixed(sides[rows], (low[rows], high[rows]), **given))
    return results


def mixed(case: StreamCase, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Sides, min_times, max_times and arrivals of both streams, by arrival."""
    sides = np.repeat(np.array([0, 1], np.uint8), [len(case.left), len(case.right)])
    arrays = [
        np.concatenate([getattr(side, name) for side in (case.left, case.right)])
        for name in ("low", "high", "arrival")
    ]
    order = np.lexsort((rng.random(sides.size), arrays[-1]))
    # Within a side the order of arrival stays.
    for side in (0, 1):
        places = np.flatnonzero(sides[order] == side)
        order[places] = np.flatnonzero(sides == side)
    return sides[order], *(array[order] for array in arrays)


def push_sides(
    correlator: StreamCorrelator, case: StreamCase, rng: np.random.Generator, *, arrivals: bool
) -> list[Any]:
    """Pieces of the two streams by turns, one side often far ahead of the other."""
    pieces = []
    for side, stream in (("left", case.left), ("right", case.right)):
        for rows in np.split(np.arange(len(stream)), cuts(rng, len(stream))):
            pieces.append((side, stream, rows))
    turn = rng.permutation(np.array([0 if side == "left" else 1 for side, _, _ in pieces]))
    queues = [[p for p in pieces if p[0] == side] for side in ("left", "right")]
    results = []
    for which in turn:
        side, stream, rows = queues[which].pop(0)
        given = {"arrival": stream.arrival[rows]} if arrivals else {}
        results.append(correlator.push(side, (stream.low[rows], stream.high[rows]), **given))
    return results


def cuts(rng: np.random.Generator, size: int) -> np.ndarray:
    """Where to cut a stream into pushes; the same place twice makes an empty push."""
    return np.sort(rng.integers(0, size + 1, int(rng.integers(0, 6))))


def sorted_pairs(results: list[Any]) -> Pairs:
    """The pairs of several results, in order; each result's count is checked."""
    for result in results:
        assert result.count == result.left.size == result.right.size
        assert result.left.dtype == result.right.dtype == np.int64
    left = np.concatenate([result.left for result in results])
    right = np.concatenate([result.right for result in results])
    order = np.lexsort((right, left))
    return np.stack([left[order], right[order]], axis=1)
