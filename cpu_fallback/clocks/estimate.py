"""The error of one clock against another, whole: searched, narrowed, followed, fitted and judged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coincide.model.clocks.errors import LEAST_SPANS, ClockEstimate, Limits, Line, Segment
from coincide.model.clocks.events import ClockEvents
from coincide.model.clocks.pieces import straight_pieces
from coincide.model.clocks.significance import deviance
from cpu_fallback.clocks.bands import band_size, count_residuals
from cpu_fallback.clocks.correlogram import Peak, deviances_of
from cpu_fallback.clocks.fitting import CORE, Fit, FitRule, fit_line
from cpu_fallback.clocks.search import Work, rows_between, search, widest_bins
from cpu_fallback.clocks.tracking import Track, follow
from cpu_fallback.clocks.zoom import Narrowed, narrowed

_FEWEST_EVENTS = 3
_MOST_SEGMENTS = 64
_SHORTEST = 0.1
"""The share of all the time that is halved at least where a peak has no line."""
_WIDER = 3.0
_PENALTY = 25.0
"""What a further piece must gain, as a sum of squares in units of their errors."""
_FLOOR = 0.2
"""The share of the spread to which a point is known at best."""
_RIVAL = 0.7
"""The share of the best offset's deviance from which on another one is as good."""
_PLAIN = 60.0
"""The deviance of an offset that no chance peak comes near to."""
_RIVAL_PAIRS = 20_000_000
_RIVAL_BINS = 1 << 18
_BEYOND = 1.1
_BEST_KNOWN = 0.25
_MOST_PAIRS = 20_000_000
_QUANTILE_BINS = 2000


def clock_error(events: ClockEvents, limits: Limits, threads: int = 1) -> ClockEstimate:
    """The error of the left clock, as segments of time."""
    left, right = events.streams.left, events.streams.right
    if min(left.size, right.size) < _FEWEST_EVENTS:
        return ClockEstimate("too few")
    first, last = events.spans
    if last - first < LEAST_SPANS * limits.max_offset:
        return ClockEstimate("too few", is_short=True)
    drifted = limits.drifted(last - first)
    if 2 * drifted <= limits.max_offset:
        return _error_within(events, limits, threads)
    # Bins follow the largest offset, and the drift makes a table of narrow ones too large. Wider bins,
    # by which right times are moved round more, tell what is dense at both ends of a long time. A pair on a
    # line that is looked for is no farther apart than the largest offset and what the drift adds to it.
    limits = replace(limits, chance=limits.chance / 2)  # there are two searches
    found = _error_within(events, limits, threads)
    if found.status != "not found":
        return found
    wider = math.ceil(limits.max_offset + drifted)
    wide = _error_within(events, replace(limits, max_offset=wider), threads)
    if wide.status == "found" and all(_has_offset(s, limits) for s in wide.segments):
        return wide
    return replace(found, drifted=drifted) if drifted > limits.max_offset else found


def _has_offset(segment: Segment, limits: Limits) -> bool:
    """Whether the offset in the middle of a segment is one that was looked for."""
    middle = (segment.start + segment.end) / 2
    return abs(segment.line.at(middle)) <= limits.max_offset


def _error_within(events: ClockEvents, limits: Limits, threads: int) -> ClockEstimate:
    """The error, of enough events in time enough."""
    left = events.streams.left
    whole = Work(events, limits, int(left[0]), int(left[-1]) + 1, threads)
    peak = search(whole)
    if peak is None:
        return ClockEstimate("too few")
    segments, log_chance, unclear = _all_segments(whole, peak)
    if segments:
        segments = [_from_origin(s, events.origin) for s in segments]
        return ClockEstimate("found", segments, log_chance)
    if unclear is not None:
        return ClockEstimate("ambiguous", [], peak.log_chance, *unclear)
    return ClockEstimate("not found", [], peak.log_chance, _middle(peak))


def _all_segments(
    whole: Work, peak: Peak | None
) -> tuple[list[Segment], float, tuple[Line, float] | None]:
    """The segments of all the time, a peak being the first line; or two offsets that are as good.

    Between them the log of the chance of the first that is found.
    """
    segments, waiting, work, log_chance = list[Segment](), list[Work](), whole, 0.0
    unclear: tuple[Line, float] | None = None
    while True:
        if peak is not None and peak.log_chance < whole.limits.log_chance:
            lines = _segments(work, narrowed(work, peak))
            if lines is None:
                work = work.narrower(peak.width)
                peak = search(work)
                continue
            found, rest = lines
            if not found and work.end - work.begin > _SHORTEST * (whole.end - whole.begin):
                # Several lines that together make one wide peak have none of its own.
                middle = (work.begin + work.end) // 2
                rest = [work.between(work.begin, middle), work.between(middle, work.end)]
            rival = _rival(work, found) if found else None
            if rival is not None:
                unclear = unclear or (found[0].line, rival)
            else:
                log_chance = log_chance if segments else peak.log_chance
                segments += found
                waiting += rest if whole.limits.jumps else []
        elif peak is not None and _has_rival(peak, whole.limits):
            unclear = unclear or (_middle(peak), peak.rival)
        if not waiting or len(segments) >= _MOST_SEGMENTS:
            return sorted(segments, key=lambda segment: segment.start), log_chance, unclear
        work = waiting.pop()
        peak = search(work)


def _middle(peak: Peak) -> Line:
    """The line of a peak, from the middle of its time on."""
    time = (peak.begin + peak.end) / 2
    return Line(time, peak.line.at(time), peak.line.drift)


def _has_rival(peak: Peak, limits: Limits) -> bool:
    """Whether more pairs than by chance lie on a line, but on another one nearly as many."""
    is_other = peak.rival_deviance >= _RIVAL * peak.deviance
    return peak.log_poisson < limits.log_chance and is_other


def _from_origin(segment: Segment, origin: int) -> Segment:
    """A segment in ticks of the user's times."""
    start, line = segment.start + origin, segment.line
    return replace(
        segment, start=start, end=segment.end + origin, line=Line(start, line.offset, line.drift)
    )


def _segments(work: Work, start: Narrowed) -> tuple[list[Segment], list[Work]] | None:
    """The segments of a line, and the time before and after it; None of pairs that are too far apart."""
    events, limits = work.events, work.limits
    least = _BEST_KNOWN * events.step
    rule = FitRule(least, max(_WIDER * start.width, least), max(limits.max_drift, 1e-9))
    rows = rows_between(events, start.begin, start.end)
    first = fit_line(events.streams, rows, start.line, start.width, rule)
    # A bell that is cut off at its widest says little of where its line is, and nothing of the error.
    widest = _WIDER * widest_bins(work)
    while first is not None and rule.cuts_off(first) and rule.widest < widest:
        rule = replace(rule, widest=min(2 * rule.widest, widest))
        first = fit_line(events.streams, rows, start.line, start.width, rule)
    if first is not None and rule.cuts_off(first):
        return None
    if first is None or not _is_within(first, limits):
        return [], []
    track = follow(work, first, (start.begin, start.end))
    if not track.points:
        return [], []
    pieces = _pieces(track, first.spread) if limits.jumps else [(0, len(track.points))]
    each = [(piece, _segment(work, track, piece, first, rule)) for piece in pieces]
    found = [segment for _, segment in each if segment is not None]
    blocks, left = track.blocks, events.streams.left
    done = [
        track.rows(blocks[begin], blocks[end - 1])
        for (begin, end), segment in each
        if segment is not None
    ]
    begins = [work.begin, *(int(left[last - 1]) + 1 for _, last in done)]
    ends = [*(int(left[first]) for first, _ in done), work.end]
    rest = [work.between(*gap) for gap in zip(begins, ends, strict=True) if gap[1] > gap[0]]
    return found, rest


def _pieces(track: Track, spread: float) -> list[tuple[int, int]]:
    """The straight pieces of a track, as positions among its points."""
    points = np.array([track.points[k] for k in track.blocks])
    variances = points[:, 2] ** 2 + (_FLOOR * spread) ** 2
    return straight_pieces(points[:, 0], points[:, 1], variances, _PENALTY)


def _segment(
    work: Work, track: Track, piece: tuple[int, int], first: Fit, rule: FitRule
) -> Segment | None:
    """The line of some points, fitted to the pairs of their blocks; None where chance explains it."""
    blocks = track.blocks[piece[0] : piece[1]]
    rows = track.rows(blocks[0], blocks[-1])
    times, offsets, _ = np.array([track.points[k] for k in blocks]).T
    drift = first.line.drift
    if times.size > 1:
        drift = float(np.polyfit(times - times[0], offsets - offsets[0], 1)[0])
    middle, mean = float(times.mean()), float(offsets.mean())
    streams = work.events.streams
    fit = fit_line(streams, rows, Line(middle, mean, drift), first.spread, rule)
    if fit is not None and fit.is_sampled:
        all_pairs = replace(rule, most_pairs=_MOST_PAIRS, is_last=True)
        fit = fit_line(streams, rows, fit.line, fit.spread, all_pairs)
    if fit is None or rule.cuts_off(fit) or not _is_within(fit, work.limits):
        return None
    chance = max(2 * CORE * fit.spread * fit.background, 1e-3)
    if deviance(fit.pairs + chance, chance) / 2 < -work.limits.log_chance:
        return None
    return _described(work, fit, chance)


def _described(work: Work, fit: Fit, chance: float) -> Segment:
    """A fit as a segment, from the first of its pairs to the last one."""
    left = work.events.streams.left
    is_own = fit.weights > 0.5
    lefts = fit.found.lefts[is_own if is_own.any() else slice(None)]
    start, end = int(left[lefts[0]]), int(left[lefts[-1]])
    line = Line(float(start), float(fit.line.at(start)), float(fit.line.drift))
    wider = _widening(fit)
    error = wider * math.hypot(fit.offset_error, fit.drift_error * (fit.centre_time - start))
    low, high = _quantiles(fit.found.residuals, fit.weights)
    return Segment(
        start, end, line, error, wider * fit.drift_error, fit.spread, low, high, fit.pairs, chance
    )


def _widening(fit: Fit) -> float:
    """How much larger errors are than those of pairs that share no event, as those of bursts do."""
    moments = fit.weights * fit.found.residuals
    of_pairs = float(moments @ moments)
    if not of_pairs > 0:
        return 1.0
    sums = [np.bincount(each, moments) for each in (fit.found.lefts, fit.found.rights)]
    return math.sqrt(max(1.0, float(sum(each @ each for each in sums)) / of_pairs - 1))


def _quantiles(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Where 5 and 95 % of the weight of values lie below."""
    reach = max(float(np.abs(values).max()), 1e-9)
    edges = np.linspace(-reach, reach, _QUANTILE_BINS + 1)
    counts = np.histogram(values, edges, weights=weights)[0]
    below = np.append(0.0, np.cumsum(counts)) / counts.sum()
    low, high = np.interp([0.05, 0.95], below, edges)
    return float(low), float(high)


def _is_within(fit: Fit, limits: Limits) -> bool:
    """Whether a fit is a line that was looked for; a little beyond it may be so by its error."""
    drift = abs(fit.line.drift) - _BEYOND * limits.max_drift
    offset = abs(fit.line.at(fit.centre_time)) - _BEYOND * limits.max_offset
    return drift <= 4 * fit.drift_error and offset <= 0


def _rival(work: Work, found: list[Segment]) -> float | None:
    """Another offset from which as many pairs lie on the same line; None if there is no such."""
    segment = max(found, key=lambda each: each.pairs)
    times = segment.start, segment.end + 1
    seen = parallels(work.events, work.limits, segment.line, segment.spread, times)
    others = np.where(seen.are_others, seen.deviances, 0.0)
    # Too few of dense events are looked at here; the search has compared all offsets for them.
    if seen.best < _PLAIN or others.max() < _RIVAL * seen.best:
        return None
    return float(seen.offsets[np.argmax(others)])


class Parallels(NamedTuple):
    """How much the pairs on lines next to one stand out of chance."""

    offsets: np.ndarray
    deviances: np.ndarray
    are_others: np.ndarray
    """Whether a line is one that was looked for, and is not that one."""
    best: float
    """The deviance of that one."""


def parallels(
    events: ClockEvents, limits: Limits, line: Line, spread: float, times: tuple[int, int]
) -> Parallels:
    """All lines of a drift, in some of the time: of many pairs those in its middle."""
    streams = events.streams
    first, last = rows_between(events, *times)
    pairs = band_size(streams, (first, last), line, limits.max_offset)
    if pairs > _RIVAL_PAIRS:
        count, middle = max(1, int((last - first) * _RIVAL_PAIRS / pairs)), (first + last) // 2
        first, last = middle - count // 2, middle + (count + 1) // 2
    width = max(2 * spread, 2.0 * events.step, 2 * limits.max_offset / _RIVAL_BINS)
    counts = count_residuals(streams, (first, last), line, 2 * limits.max_offset, width)
    deviances = deviances_of(counts)
    own = counts.size // 2 - 1
    near = max(8, math.ceil(4 * spread / width))
    offsets = line.offset + (np.arange(deviances.size) - own) * width
    away = np.abs(np.arange(deviances.size) - own)
    are_others = (away > near) & (np.abs(offsets) <= limits.max_offset)
    return Parallels(offsets, deviances, are_others, float(deviances[own - 1 : own + 2].max()))
