"""A line followed to both sides of where it was found, block by block, for as long as it shows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coincide.model.clocks.errors import Line
from coincide.model.clocks.significance import deviance
from cpu_fallback.clocks.bands import Band, band, band_size
from cpu_fallback.clocks.fitting import CORE, Fit, fit_bell, histogram
from cpu_fallback.clocks.search import Work, rows_between

_PAIRS_A_BLOCK = 24
_GAIN_A_BLOCK = 40.0
"""Nats by which a block should tell a line from chance."""
_LEAST_EVENTS = 4
_MOST_BLOCKS = 4000
_MISSES = 3
"""Blocks without the line, one after another, that end it."""
_RECENT = 12
_WANDER = 2e-6
"""Change of a drift that a crystal makes by itself."""
_REMEMBERED = 20
_ERRORS = 4.0
_SURE = 7.0
_SHARE = 0.25
_WIDE = 4
_BINS = 120
_STEPS = 12


class Point(NamedTuple):
    """Where the line is in one block: time, offset and its error, ticks."""

    time: float
    offset: float
    error: float


@dataclass
class Track:
    """The points of a line by block, and the blocks: left events between edges."""

    edges: np.ndarray
    points: dict[int, Point] = field(default_factory=dict)

    @property
    def blocks(self) -> list[int]:
        """The blocks in which the line shows."""
        return sorted(self.points)

    def rows(self, first: int, last: int) -> tuple[int, int]:
        """The left events of some blocks, the last one included."""
        return int(self.edges[first]), int(self.edges[last + 1])


def follow(work: Work, fit: Fit, stretch: tuple[int, int]) -> Track:
    """Follow a line, which was fitted to a stretch of time, over all of the work's."""
    events = work.events
    share = _share(work, fit, stretch)
    track = Track(_edges(work, share, _chance(work, fit, stretch)))
    left = events.streams.left
    middles = (left[track.edges[:-1]] + left[track.edges[1:] - 1]) / 2
    home = int(np.clip(np.searchsorted(middles, fit.line.time), 0, middles.size - 1))
    follower = _Follower(work, fit, share)
    for course in (range(home, middles.size), range(home - 1, -1, -1)):
        follower.go(track, course, middles)
    return track


def _share(work: Work, fit: Fit, stretch: tuple[int, int]) -> float:
    """Pairs of the line for each left event."""
    rows = rows_between(work.events, *stretch)
    return max(min(fit.pairs / max(rows[1] - rows[0], 1), 1.0), 1e-5)


def _chance(work: Work, fit: Fit, stretch: tuple[int, int]) -> float:
    """Pairs by chance near the line for each left event."""
    rows = rows_between(work.events, *stretch)
    return 2 * CORE * fit.spread * fit.background / max(rows[1] - rows[0], 1) + 1e-6


def _edges(work: Work, share: float, chance: float) -> np.ndarray:
    """Blocks of as many left events as are needed to see the line in each."""
    both = share + chance
    gain = both * math.log(both / chance) - share
    first, last = work.rows
    size = max(
        int(_PAIRS_A_BLOCK / share), int(_GAIN_A_BLOCK / gain), (last - first) // _MOST_BLOCKS,
        _LEAST_EVENTS,
    )  # fmt: skip
    edges = np.unique(np.append(np.arange(first, last, size), last))
    if edges.size > 2 and edges[-1] - edges[-2] < size / 2:
        edges = np.delete(edges, -2)
    return edges


class _Follower:
    """Goes from block to block, and foretells where the line is in the next."""

    def __init__(self, work: Work, fit: Fit, share: float) -> None:
        self._streams, self._fit, self._share = work.events.streams, fit, share

    def go(self, track: Track, course: Iterable[int], middles: np.ndarray) -> None:
        """Follow the line through blocks, in their order."""
        recent: list[Point] = []
        misses = 0
        for k in course:
            rows = track.rows(k, k)
            point = self._point(rows, float(middles[k]), recent)
            if point is None:
                misses += 1
                if misses == _MISSES:
                    return
                continue
            misses = 0
            track.points[k] = point
            recent = [*recent[-_RECENT + 1 :], point]

    def _foretold(self, time: float, recent: list[Point]) -> tuple[Line, float, float]:
        """The line at a time, its error there, and when it was last seen."""
        fit = self._fit
        if len(recent) < 3:
            seen = recent[-1].time if recent else fit.centre_time
            away = abs(time - fit.centre_time)
            error = math.hypot(fit.offset_error, fit.drift_error * away)
            return Line(time, fit.line.at(time), fit.line.drift), error, seen
        times, offsets, errors = np.array(recent).T
        g = errors**-2
        middle, mean = (g * times).sum() / g.sum(), (g * offsets).sum() / g.sum()
        prior = max(fit.drift_error, 1e-12) ** -2
        size = (g * (times - middle) ** 2).sum() + prior
        common = (g * (times - middle) * (offsets - mean)).sum()
        drift = (common + prior * fit.line.drift) / size
        error = math.sqrt(1 / g.sum() + (time - middle) ** 2 / size)
        return Line(time, float(mean + drift * (time - middle)), float(drift)), error, times[-1]

    def _point(self, rows: tuple[int, int], time: float, recent: list[Point]) -> Point | None:
        """The line in a block, if it shows there."""
        streams, spread = self._streams, self._fit.spread
        line, error, seen = self._foretold(time, recent)
        length = float(streams.left[rows[1] - 1] - streams.left[rows[0]])
        wander = _WANDER * min(abs(time - seen), _REMEMBERED * length)
        gate = 2 * CORE * spread + _ERRORS * error + wander
        near = band(streams, rows, line, gate)
        if not near.residuals.size:
            return None
        centre = _densest(near, spread) if gate > 2 * _REACH_OF_MODE * spread else 0.0
        chance = self._chance(rows, line, gate, near)
        offset, pairs = _bell_near(near, centre, spread, chance / (2 * CORE * spread))
        count = int((np.abs(near.residuals - offset) <= CORE * spread).sum())
        wanted = max(3, _SHARE * self._share * (rows[1] - rows[0]))
        is_clear = deviance(count, chance) / 2 - math.log(max(gate / (2 * spread), 1.0)) > _SURE
        if count < wanted or not is_clear:
            return None
        return Point(time, line.offset + offset, spread / math.sqrt(max(pairs, 1.0)))

    def _chance(self, rows: tuple[int, int], line: Line, gate: float, near: Band) -> float:
        """Pairs to expect by chance in the core of a line, by those farther away."""
        wide = band_size(self._streams, rows, line, _WIDE * gate)
        outside = wide - near.residuals.size
        return max((outside + 0.5) * CORE * self._fit.spread / ((_WIDE - 1) * gate), 1e-3)


_REACH_OF_MODE = 6


def _densest(near: Band, spread: float) -> float:
    """The middle of the four spreads that have most pairs."""
    values = np.sort(near.residuals)
    counts = np.searchsorted(values, values + 4 * spread, side="right") - np.arange(values.size)
    return float(values[np.argmax(counts)] + 2 * spread)


def _bell_near(near: Band, centre: float, spread: float, even: float) -> tuple[float, float]:
    """The middle of a bell of a known spread, and the pairs in it."""
    reach = 2 * CORE * spread
    counts = histogram(near.residuals - centre, reach, _BINS)
    state = np.array([0.0, spread, counts.sum() / 2])
    for _ in range(_STEPS):
        fit_bell(counts, -reach, 2 * reach / _BINS, state, even, spread, 1)
        state[1] = spread
    return centre + float(state[0]), float(state[2])
