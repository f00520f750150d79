"""The search for a line that chance does not explain: bins coarse to fine, pieces of the time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coincide.model.clocks.errors import Limits, Line
from coincide.model.clocks.events import ClockEvents
from coincide.model.clocks.significance import log_chance_of_extremes
from cpu_fallback.clocks.bands import band_size
from cpu_fallback.clocks.correlogram import Peak, Table, best_line

_FEWEST_PAIRS = 5
_COARSEST = 128
"""Bins of the coarsest table."""
_FINER = 3
_CELLS = 1 << 24
"""Most counts of a table: 64 MiB, twice."""
_PAIRS = (50_000_000, 400_000_000)
"""The pairs of a piece of dense events; more if the first ones are not enough."""
_PIECES = (0.5, 0.1, 0.9, 0.3, 0.7)
_MOST_JUDGED = 3
_CERTAIN = -60.0
"""A log of a chance that finer bins need not improve."""
_SLIDES = (4, 8, 24)
_SHUFFLE = 8
"""Bins by which a stretch is moved at most: a line as sharp as two bins is lost in seventeen."""
_STRETCH = 4
"""Times as long a stretch is, so that few events of a burst are torn apart."""
_CLEAR = 2.0
_MANY_PAIRS = 1000
_MANY_EVENTS = 200_000


class Work(NamedTuple):
    """The left times that are searched, what for, and how many threads do it."""

    events: ClockEvents
    limits: Limits
    begin: int
    end: int
    threads: int
    below: float = math.inf  # Bins are narrower, ticks

    def between(self, begin: int, end: int) -> Work:
        """The same of some of the time."""
        return self._replace(begin=begin, end=end)

    def narrower(self, width: int) -> Work:
        """The same by bins that are narrower than some ticks."""
        return self._replace(below=width)

    @property
    def rows(self) -> tuple[int, int]:
        """The left events in it."""
        return rows_between(self.events, self.begin, self.end)


def rows_between(events: ClockEvents, begin: int, end: int) -> tuple[int, int]:
    """The left events of times begin:end."""
    first, last = np.searchsorted(events.streams.left, [begin, end])
    return int(first), int(last)


def search(work: Work) -> Peak | None:
    """The first line of left times that is no accident, or the best one; None of too few pairs."""
    anywhere = Line(0.0, 0.0, 0.0)
    total = band_size(work.events.streams, work.rows, anywhere, work.limits.max_offset)
    if total < _FEWEST_PAIRS:
        return None
    sizes = [*(size for size in _PAIRS if size < total), total]
    sizes = sizes[: len(_PAIRS)]
    best: Peak | None = None
    for size in sizes:
        pieces = _pieces(work, size / total)
        extra = math.log(len(pieces) * len(sizes))
        for piece in pieces:
            found = _search_piece(piece, extra)
            if best is None or (found is not None and found.log_chance < best.log_chance):
                best = found
            if best is not None and best.log_chance < work.limits.log_chance:
                return best
    return best


def _pieces(work: Work, share: float) -> list[Work]:
    """Stretches of a share of the time, the middle one first."""
    if share > 0.7:
        return [work]
    span = work.end - work.begin
    places = _PIECES if share < 0.2 else _PIECES[:3]
    begins = [work.begin + int(span * (1 - share) * place) for place in places]
    return [work.between(begin, begin + max(1, int(span * share))) for begin in begins]


def widest_bins(work: Work) -> int:
    """Ticks of the widest bins of a search, whatever it has looked through."""
    return _widths(work)[0]


def _widths(work: Work) -> list[int]:
    """Widths of bins, coarse to fine: multiples of two steps, so that all bins have as many times."""
    step, found = 2 * work.events.step, list[int]()
    width = 2 * work.limits.max_offset / _COARSEST
    while not found or found[-1] > step:
        found.append(step * max(1, round(width / step)))
        width /= _FINER
    return list(dict.fromkeys(found))


def _tables(work: Work) -> list[Table]:
    """The tables that are small enough; the coarsest one at least."""
    tables: list[Table] = []
    for width in _widths(work):
        table = Table.of(work.begin, work.end, work.limits, width)
        if table is None or (tables and table.cells > _CELLS):
            break
        tables.append(table)
    return tables


def _search_piece(work: Work, extra: float) -> Peak | None:
    """The first line that passes all tests; or else the one that chance explains least well."""
    tables = _tables(work)
    extra += math.log(len(tables))
    judged, best = 0, None
    candidate: tuple[Table, Peak] | None = None
    for table in tables:
        if table.width >= work.below:
            continue
        found = best_line(
            work.events, table, (work.begin, work.end), work.limits, extra, work.threads
        )
        due = []
        if candidate is not None and found.deviance < candidate[1].deviance:
            due, candidate = [candidate], None
        if found.log_chance < work.limits.log_chance:
            candidate = table, found
        else:
            best = _better(best, found)
        if candidate is not None and (table is tables[-1] or candidate[1].log_chance < _CERTAIN):
            due, candidate = [*due, candidate], None
        for where, peak in due:
            best = _better(best, _judged(work, where, peak, extra))
            judged += 1
            if best.log_chance < work.limits.log_chance or judged == _MOST_JUDGED:
                return best
    return best


def _better(one: Peak | None, other: Peak) -> Peak:
    """The peak that chance explains less well."""
    return other if one is None or other.log_chance < one.log_chance else one


def _judged(work: Work, table: Table, peak: Peak, extra: float) -> Peak:
    """A peak with the largest of the chances that moved right times say."""
    log_chance = peak.log_chance
    for test in (_by_slides, _by_shuffles):
        if log_chance < work.limits.log_chance:
            log_chance = max(log_chance, test(work, table, peak) + extra)
    return peak._replace(log_chance=log_chance)


def _by_slides(work: Work, table: Table, peak: Peak) -> float:
    """The log of the chance of such a peak, by those of right times that are moved round."""
    events, limits = work.events, work.limits
    right = events.streams.right
    if right.size > _MANY_EVENTS and peak.pairs > _MANY_PAIRS:
        return -math.inf  # the other offsets say it well enough
    span, step = int(right.max()) - int(right.min()), 2 * limits.max_offset
    count = int(min(_SLIDES[-1], span // step - 1))
    if count < 1:
        return 0.0
    gaps = [step + int(k * (span - 2 * step) / max(count - 1, 1)) for k in range(count)]
    # In an order in which any first few are spread over all; if they are few, turned round as well.
    order = np.argsort([int(f"{k:05b}"[::-1], 2) for k in range(count)])
    slides = [(gaps[k], False) for k in order] + [(gaps[k], True) for k in order]
    return _by_others(work, table, peak, (events.slid(*each) for each in slides[: _SLIDES[-1]]))


def _by_shuffles(work: Work, table: Table, peak: Peak) -> float:
    """The same, by those of right times that are moved by a few bins, stretch by stretch."""
    # Bursts that both sides share make wide peaks of pairs without a common event, and this leaves them as
    # they are. A line is as sharp as the bins in which it was found.
    by = _SHUFFLE * table.width
    stretch, reach = _STRETCH * by, table.bins * table.width + by
    near = work.events.rights_between(
        work.begin + table.base - reach, work.end + table.base + 2 * reach
    )
    return _by_others(
        work, table, peak, (near.shuffled(stretch, by, k) for k in range(_SLIDES[-1]))
    )


def _by_others(work: Work, table: Table, peak: Peak, others: Iterable[ClockEvents]) -> float:
    """The log of the chance of such a peak, by those of events that have no line in common."""
    limits, maxima = work.limits, list[float]()
    for events in others:
        best = best_line(
            events, table, (work.begin, work.end), limits, 0.0, work.threads, judged=False
        )
        maxima.append(best.deviance)
        if len(maxima) in _SLIDES:
            found = log_chance_of_extremes(peak.deviance, np.array(maxima))
            if found < _CLEAR * limits.log_chance or found > limits.log_chance / _CLEAR:
                return found
    return log_chance_of_extremes(peak.deviance, np.array(maxima))
