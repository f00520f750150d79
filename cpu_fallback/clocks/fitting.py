"""The fit of a line to the pairs about it: a bell on an even background."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from coincide.model.clocks.errors import Line
from coincide.model.clocks.events import Streams
from coincide.model.compiled import compiled
from cpu_fallback.clocks.bands import Band, band, band_size

CORE = 3.0
"""Spreads to either side of a line that hold its pairs."""
REACH = 8.0
"""Spreads to either side from which a line is fitted."""
_AROUND = 3.0
"""Reaches to either side that tell how many pairs chance makes."""
_ROOT = 2.5066282746310002  # the root of two pi
_BINS = 400
_STEPS = 3000
_FEWEST = 3
_ROUNDS = 20
_STRETCHES = 200
_SETTLED = 1e-3


@compiled
def fit_bell(counts, low, width, state, even, least, steps):
    """Maximum likelihood of a bell on a known background, pairs a tick; state: centre, spread, pairs."""
    for _ in range(steps):
        centre, spread, pairs = state[0], state[1], state[2]
        weight = 0.0
        first = 0.0
        second = 0.0
        for k in range(counts.size):
            if counts[k] == 0:
                continue
            x = low + (k + 0.5) * width
            z = (x - centre) / spread
            bell = pairs * math.exp(-0.5 * z * z) / (spread * _ROOT)
            w = counts[k] * bell / (bell + even)
            weight += w
            first += w * x
            second += w * x * x
        state[2] = weight
        if weight < 1e-9:
            return
        state[0] = first / weight
        state[1] = max(math.sqrt(max(second / weight - state[0] ** 2, 0.0)), least)
        near = 1e-6 * spread
        if (
            abs(state[0] - centre) < near
            and abs(state[1] - spread) < near
            and abs(weight - pairs) < 1e-6 * pairs
        ):
            return


@compiled
def weigh_pairs(lefts, left, time, residuals, centre, spread, pairs, even, weights, sums):
    """How probably each pair belongs to the bell, and the sums for a line and its errors."""
    for k in range(sums.size):
        sums[k] = 0.0
    for p in range(lefts.size):
        t = left[lefts[p]] - time
        x = residuals[p]
        z = (x - centre) / spread
        bell = pairs * math.exp(-0.5 * z * z) / (spread * _ROOT)
        w = bell / (bell + even)
        weights[p] = w
        information = (w * z / spread) ** 2
        sums[0] += w
        sums[1] += w * t
        sums[2] += w * t * t
        sums[3] += w * x
        sums[4] += w * x * t
        sums[5] += information
        sums[6] += information * t
        sums[7] += information * t * t
        sums[8] += w * z / spread
        sums[9] += w * z / spread * t


@compiled
def count_values(values, reach, counts):
    """Count values between -reach and reach."""
    scale = counts.size / (2 * reach)
    for value in values:
        k = int((value + reach) * scale)
        if value >= -reach and k < counts.size:
            counts[k] += 1.0


def histogram(values: np.ndarray, reach: float, bins: int) -> np.ndarray:
    """The values between -reach and reach by bins: float64 array."""
    counts = np.zeros(bins)
    count_values(values, reach, counts)
    return counts


@dataclass(frozen=True, eq=False)
class Fit:
    """A line with what is about it: pairs, ticks, and the background, in pairs a tick."""

    line: Line
    spread: float
    pairs: float
    background: float
    found: Band
    weights: np.ndarray
    offset_error: float
    drift_error: float
    centre_time: float
    is_sampled: bool = False


def fit_line(
    streams: Streams,
    events: tuple[int, int],
    line: Line,
    spread: float,
    rule: FitRule,
) -> Fit | None:
    """The line about which pairs of left events begin:stop lie, near a first one; None of too few pairs."""
    left = streams.left
    middle = (float(left[events[0]]) + float(left[events[1] - 1])) / 2
    line, span = (
        Line(middle, line.at(middle), line.drift),
        float(left[events[1] - 1] - left[events[0]]),
    )
    rows, scale = _sample(streams, events, line, REACH * max(spread, rule.least), rule.most_pairs)
    if rows is not None:
        streams, events = _only(streams, rows), (0, rows.size)
    fit: Fit | None = None
    for _ in range(1 if rule.is_last else _ROUNDS):
        spread = min(max(spread, rule.least), rule.widest)
        fit = _round(streams, events, line, spread, rule)
        if fit is None:
            return None
        moved = abs(fit.line.offset - line.offset)
        turned = abs(fit.line.drift - line.drift) * span
        grown = abs(fit.spread - spread)
        line, spread = fit.line, fit.spread
        if max(moved, turned, grown) < _SETTLED * spread:
            break
    assert fit is not None
    if rows is None:
        return fit
    found = fit.found._replace(lefts=rows[fit.found.lefts])
    return replace(
        fit, pairs=fit.pairs * scale, background=fit.background * scale, found=found,
        is_sampled=True,
    )  # fmt: skip


@dataclass(frozen=True)
class FitRule:
    """The bounds of a fit: the least and widest spread, ticks, the usual drift, and the most pairs."""

    least: float
    widest: float
    drift: float
    most_pairs: int = 1_000_000
    is_last: bool = False
    """Whether the line is near enough for one step of Newton's."""

    def cuts_off(self, fit: Fit) -> bool:
        """Whether pairs are spread farther than a fit may be."""
        return fit.spread >= self.widest


def _round(
    streams: Streams, events: tuple[int, int], line: Line, spread: float, rule: FitRule
) -> Fit | None:
    """The bell of residuals, then the line that its pairs lie on."""
    reach = REACH * spread
    found = band(streams, events, line, reach)
    if found.lefts.size < _FEWEST:
        return None
    outside = band_size(streams, events, line, _AROUND * reach) - found.lefts.size
    even = (outside + 0.5) / (2 * (_AROUND - 1) * reach)
    counts = histogram(found.residuals, reach, _BINS)
    state = np.array([0.0, spread, found.lefts.size / 2])
    fit_bell(counts, -reach, 2 * reach / _BINS, state, even, rule.least, _STEPS)
    centre, size, pairs = float(state[0]), min(float(state[1]), rule.widest), float(state[2])
    if pairs < _FEWEST - 1:
        return None
    weights, sums = np.empty(found.lefts.size), np.zeros(10)
    weigh_pairs(
        found.lefts,
        streams.left,
        line.time,
        found.residuals,
        centre,
        size,
        pairs,
        even,
        weights,
        sums,
    )
    if sums[0] < _FEWEST - 1:
        return None
    step = _newton if rule.is_last else _least_squares
    offset, drift, middle = step(sums, size, line.drift, rule.drift)
    offset += centre if rule.is_last else 0.0
    fitted = Line(line.time, line.offset + offset, line.drift + drift)
    errors = _errors(sums, rule.drift)
    return Fit(fitted, size, float(sums[0]), even, found, weights, *errors, line.time + middle)


def _least_squares(
    sums: np.ndarray, spread: float, drift: float, usual: float
) -> tuple[float, float, float]:
    """What to add to the offset at time 0 and to the drift, of a usual size; and the mean time."""
    total, t, tt, x, xt = sums[:5].tolist()
    middle, mean = t / total, x / total
    size, common = (tt - t * middle) / spread**2, (xt - t * mean) / spread**2
    # A drift that pairs do not tell stays near 0.
    prior = math.inf if usual == 0 else usual**-2
    more = -drift if math.isinf(prior) else (common - drift * prior) / (size + prior)
    return mean - more * middle, more, middle


def _newton(
    sums: np.ndarray, spread: float, drift: float, usual: float
) -> tuple[float, float, float]:
    """As `_least_squares`, from the slope of the likelihood; the offset is above the bell's centre."""
    a, b, c, first, second = sums[5:].tolist()
    middle, prior = b / a, math.inf if usual == 0 else usual**-2
    size = c - b * b / a + prior
    more = -drift if math.isinf(prior) else (second - first * middle - drift * prior) / size
    return first / a - more * middle, more, middle


def _errors(sums: np.ndarray, usual: float) -> tuple[float, float]:
    """Standard errors of the offset at the mean time and of the drift, by the information in each pair."""
    a, b, c = sums[5:8].tolist()
    if not a > 0:
        return math.inf, usual
    size = max(c - b * b / a, 0.0) + (math.inf if usual == 0 else usual**-2)
    return 1 / math.sqrt(a), 1 / math.sqrt(size)


def _sample(
    streams: Streams, events: tuple[int, int], line: Line, reach: float, most: int
) -> tuple[np.ndarray | None, float]:
    """Left events in stretches over all the time, if all have too many pairs, and all to one of them."""
    pairs, count = band_size(streams, events, line, reach), events[1] - events[0]
    if pairs <= most or count <= 10 * _STRETCHES:
        return None, 1.0
    length = int(count * most / pairs / _STRETCHES) + 1
    begins = np.linspace(events[0], events[1] - length, _STRETCHES).astype(np.int64)
    rows = np.unique((begins[:, None] + np.arange(length)).ravel())
    return rows, count / rows.size


def _only(streams: Streams, rows: np.ndarray) -> Streams:
    return streams._replace(left=streams.left[rows], codes=streams.codes[rows])
