"""What a page shows of a clock: other offsets, pairs about its lines, and how residuals are spread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coincide.model.clocks.errors import ClockEstimate, Limits, Line, Segment
from coincide.model.clocks.events import ClockEvents
from coincide.model.templates.fitting import fitted_to_delays
from cpu_fallback.clocks.bands import Band, band, band_size
from cpu_fallback.clocks.estimate import parallels
from cpu_fallback.clocks.fitting import CORE, REACH
from cpu_fallback.clocks.search import rows_between

STRETCHES = 340
"""Stretches of offsets, each with its highest peak."""
_POINTS = 1500
_MOST_PAIRS = 2_000_000
_PARTS = 200
_BINS = 64
_FEWEST = 30
_SEED = 1
_FINEST = 2000
"""Spreads in the largest offset, where no line tells the spread."""


@dataclass(frozen=True, eq=False)
class Offsets:
    """How far pairs at each offset stand out of chance, in standard deviations; offsets in ticks."""

    heights: np.ndarray
    peak: tuple[float, float]
    second: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Spread:
    """Pairs by their residual, and the template of those near the line: edges, ticks, and pairs a bin."""

    edges: np.ndarray
    pairs: np.ndarray
    template: list[tuple[float, float, float]]
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Residuals:
    """Pairs near the lines: left times, how far above the main line, and of which segment; ticks."""

    main: Line
    times: np.ndarray
    above: np.ndarray
    numbers: np.ndarray
    spread: Spread

    def ends(self, segment: Segment) -> list[tuple[int, float]]:
        """Where the line of a segment begins and ends, above the main line."""
        return [(t, segment.line.at(t) - self.main.at(t)) for t in (segment.start, segment.end)]


@dataclass(frozen=True, eq=False)
class ClockView:
    """One clock: its name, what was found, and what there is to draw."""

    name: str
    found: ClockEstimate
    events: tuple[int, int]
    offsets: Offsets | None
    residuals: Residuals | None

    @classmethod
    def of(cls, name: str, events: ClockEvents, found: ClockEstimate, limits: Limits) -> ClockView:
        """The view of the events of one key."""
        sizes = events.streams.left.size, events.streams.right.size
        offsets, residuals = _offsets(events, found, limits), None
        if found.segments:
            residuals = _residuals(events, found.segments)
        return cls(name, found, sizes, offsets, residuals)


def _offsets(events: ClockEvents, found: ClockEstimate, limits: Limits) -> Offsets | None:
    """All lines next to the best one."""
    left = events.streams.left
    if found.segments:
        segment = _main(found.segments)
        line, spread = _from(segment.line, events.origin), segment.spread
        times = segment.start - events.origin, segment.end - events.origin + 1
    elif found.best is not None:
        # Only its drift counts: the offset is that of a wide bin.
        line, spread, times = found.best, limits.max_offset / _FINEST, (0, int(left[-1]) + 1)
        seen = parallels(events, limits, line, spread, times)
        best = np.argmax(np.where(np.abs(seen.offsets) <= limits.max_offset, seen.deviances, -1.0))
        line = Line(line.time, float(seen.offsets[best]), line.drift)
    else:
        return None
    seen = parallels(events, limits, line, spread, times)
    heights, most = np.zeros(STRETCHES), limits.max_offset
    places = np.floor((seen.offsets + most) / (2 * most) * STRETCHES).astype(np.int64)
    is_inside = (places >= 0) & (places < STRETCHES)
    np.maximum.at(heights, places[is_inside], seen.deviances[is_inside])
    other = int(np.argmax(np.where(seen.are_others, seen.deviances, -1.0)))
    second = float(seen.offsets[other]), float(np.sqrt(seen.deviances[other]))
    return Offsets(np.sqrt(heights), (line.offset, float(np.sqrt(seen.best))), second)


def _main(segments: list[Segment]) -> Segment:
    return max(segments, key=lambda each: each.pairs)


def _from(line: Line, origin: int) -> Line:
    """A line of the user's times as one of times from an origin on."""
    return Line(line.time - origin, line.offset, line.drift)


def _residuals(events: ClockEvents, segments: list[Segment]) -> Residuals:
    """Pairs near the line of each segment."""
    main = _main(segments)
    each = [_near(events, segment) for segment in segments]
    numbers = np.repeat(np.arange(len(each)), [near.lefts.size for near in each])
    times = np.concatenate([events.streams.left[near.lefts] for near in each]) + events.origin
    away = np.concatenate([near.residuals for near in each])
    spread = _spread(away, segments)
    some = np.arange(away.size)
    if away.size > _POINTS:
        some = np.sort(np.random.default_rng(_SEED).choice(away.size, _POINTS, replace=False))
    times, away, numbers = times[some], away[some], numbers[some]
    lines = [segment.line for segment in segments]
    above = away + [
        lines[n].at(t) - main.line.at(t) for n, t in zip(numbers, times.tolist(), strict=True)
    ]
    return Residuals(main.line, times, above, numbers, spread)


def _near(events: ClockEvents, segment: Segment) -> Band:
    """Pairs near a line; of many those of parts that are spread over all its time."""
    line = _from(segment.line, events.origin)
    times = segment.start - events.origin, segment.end - events.origin + 1
    first, last = rows_between(events, *times)
    reach = REACH * max(segment.spread, events.step / 2)
    pairs = band_size(events.streams, (first, last), line, reach)
    found = [
        band(events.streams, part, line, reach) for part in _parts(first, last, pairs / _MOST_PAIRS)
    ]
    return Band(*(np.concatenate(values) for values in zip(*found, strict=True)))


def _parts(first: int, last: int, times_too_many: float) -> Iterator[tuple[int, int]]:
    if times_too_many <= 1:
        yield first, last
        return
    length = max(1, int((last - first) / times_too_many / _PARTS))
    for begin in np.linspace(first, last - length, _PARTS).astype(np.int64).tolist():
        yield begin, begin + length


def _spread(away: np.ndarray, segments: list[Segment]) -> Spread:
    """Residuals from the line of each pair's own segment."""
    widest = max(segment.spread for segment in segments)
    reach = max(REACH * widest, 1.0)
    pairs, edges = np.histogram(away, _BINS, (-reach, reach))
    core = np.rint(away[np.abs(away) <= CORE * widest]).astype(np.int64)
    template: list[tuple[float, float, float]] = []
    if core.size >= _FEWEST:
        fit = fitted_to_delays(
            {"all": core}, buckets=12, method="quantile", fewest=_FEWEST, pool=False, unit=None
        )
        given = fit.templates.given["all"]
        ends, masses = np.array(given.edges, np.float64), np.array(given.masses)
        lengths = np.maximum(np.diff(ends), 1.0)
        heights = masses * core.size / lengths * (edges[1] - edges[0])
        template = list(zip(ends[:-1].tolist(), ends[1:].tolist(), heights.tolist(), strict=True))
    main = _main(segments)
    return Spread(edges, pairs, template, main.low, main.high)
