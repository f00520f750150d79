"""From a peak of a correlogram to the narrowest peak on its line."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coincide.model.clocks.errors import Line
from coincide.model.clocks.significance import deviance
from coincide.model.compiled import compiled
from cpu_fallback.clocks.bands import band, band_size
from cpu_fallback.clocks.correlogram import Peak
from cpu_fallback.clocks.search import Work, rows_between

_MOST_PAIRS = 1_000_000
_FEWEST_EVENTS = 1000
_SLOPES = 33
_SIDE = 14
_SKIPPED = 3
_HOLDS = 0.4
"""The share of the best deviance that takes a narrower peak: a sharp one may be on a broad foot."""
_FEWEST_OF_BEST = 0.2
"""The share of the best peak's pairs: a narrower one that has fewer is part of its noise."""


class Narrowed(NamedTuple):
    """A line, and the bins in which its peak shows, ticks."""

    line: Line
    begin: int
    end: int
    width: float
    deviance: float
    pairs: float = 0.0


@compiled
def slopes_of_band(times, residuals, slopes, reach, width, counts):
    """Histograms of residuals from lines of some slopes: int64 array, shape (slopes, bins)."""
    scale = 1.0 / width
    for s in range(slopes.size):
        for p in range(times.size):
            away = (residuals[p] - slopes[s] * times[p] + reach) * scale
            if away >= 0.0:
                d = int(away)
                if d < counts.shape[1]:
                    counts[s, d] += 1


@compiled
def best_of_slopes(counts, low, high, best):
    """Note the deviance, slope, bin and count of the highest peak in bins low:high."""
    bins = counts.shape[1]
    for s in range(counts.shape[0]):
        mean = 0.0
        for d in range(bins):
            mean += counts[s, d]
        mean = 2.0 * mean / bins
        for d in range(low, high):
            found = counts[s, d] + counts[s, d + 1]
            around = 0.5
            wide = 0
            for e in range(max(0, d - _SIDE), min(bins, d + 2 + _SIDE)):
                if e < d - _SKIPPED or e > d + 1 + _SKIPPED:
                    around += counts[s, e]
                    wide += 1
            value = deviance(found, max(2.0 * around / wide, 0.5 * mean))
            if value > best[0]:
                best[0], best[1], best[2], best[3] = value, s, d, found


def narrowed(work: Work, peak: Peak) -> Narrowed:
    """Halve the bins along the line for as long as the peak stands out."""
    begin, end, line = _shortened(work, peak)
    width, steps = float(peak.width), list[Narrowed]()
    widest = width
    while width >= work.events.step or not steps:
        step = _narrower(work, Narrowed(line, begin, end, width, 0.0), widest)
        if step is None:
            break
        steps.append(step)
        best = max(steps, key=lambda each: each.deviance)
        if step.pairs < _FEWEST_OF_BEST * best.pairs:
            break
        line, widest, width = step.line, width, width / 2
    if not steps:
        return Narrowed(line, begin, end, float(peak.width), peak.deviance)
    best = max(steps, key=lambda each: each.deviance)
    able = [each for each in steps if each.pairs >= _FEWEST_OF_BEST * best.pairs]
    return [each for each in able if each.deviance >= _HOLDS * best.deviance][-1]


def _shortened(work: Work, peak: Peak) -> tuple[int, int, Line]:
    """A stretch about the middle of the peak's that has not too many pairs."""
    begin, end, line = peak.begin, peak.end, peak.line
    rows = rows_between(work.events, begin, end)
    pairs = band_size(work.events.streams, rows, line, 24 * peak.width)
    if pairs > _MOST_PAIRS and rows[1] - rows[0] > _FEWEST_EVENTS:
        share = max(_MOST_PAIRS / pairs, _FEWEST_EVENTS / (rows[1] - rows[0]))
        middle, half = (begin + end) / 2, (end - begin) * share / 2
        begin, end = int(middle - half), int(middle + half)
    return begin, end, line


def _narrower(work: Work, now: Narrowed, widest: float) -> Narrowed | None:
    """The best line near this one by bins of its width; widest: bins in which it was found."""
    rows = rows_between(work.events, now.begin, now.end)
    span = max(now.end - now.begin, 1)
    middle = (now.begin + now.end) / 2
    line = Line(middle, now.line.at(middle), now.line.drift)
    reach = 16 * now.width + 8 * widest
    found = band(work.events.streams, rows, line, reach)
    if found.lefts.size < 3:
        return None
    times = work.events.streams.left[found.lefts] - middle
    slopes = np.linspace(-4 * widest / span, 4 * widest / span, _SLOPES)
    bins = int(2 * reach / now.width)
    counts = np.zeros((_SLOPES, bins), np.int64)
    slopes_of_band(times, found.residuals, slopes, reach, now.width, counts)
    near, best = (
        math.ceil(3 * widest / now.width) + 1,
        np.array([0.0, _SLOPES // 2, bins // 2 - 1, 0.0]),
    )
    best_of_slopes(counts, max(0, bins // 2 - near), min(bins - 1, bins // 2 + near), best)
    value, slope, bin = float(best[0]), int(best[1]), int(best[2])
    offset = line.offset - reach + (bin + 1) * now.width
    return Narrowed(
        Line(middle, offset, line.drift + slopes[slope]),
        now.begin,
        now.end,
        now.width,
        value,
        float(best[3]),
    )
