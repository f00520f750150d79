"""Differences of all pairs, in chunks of time, summed along slopes and stretches of time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy import fft

from coincide.model.clocks.errors import Limits, Line
from coincide.model.clocks.events import ClockEvents, Streams
from coincide.model.clocks.significance import (
    deviance,
    log_chance_of_extremes,
    log_chance_of_trials,
)
from coincide.model.compiled import compiled
from coincide.model.threads import run_tasks
from cpu_fallback.clocks.bands import band_size, seek

AROUND = 32
"""Bins to either side of a peak that tell what chance alone has there."""
SKIPPED = 3
"""Bins next to a peak that do not: noise may be wider than a peak."""
_SIDE = AROUND + SKIPPED + 2
_LEAST_CHUNKS = 8
"""So that a line that holds for an eighth of the time stands out of its own."""
_MOST_CHUNKS = 1 << 14
_FEWEST_OF_MEAN = 0.5
"""The least share of a row's mean that chance is taken to have: no stretch without pairs is a proof."""
_MOST_BLOCKS = 64
_FEWEST_BLOCKS = 12
_BLOCK_BINS = 4
_CELLS_A_TASK = 1 << 16
_EVENTS_A_TASK = 1 << 10
_TRANSFORM = 25.0
"""Pairs that are counted in the time that one step of a transform takes."""


@compiled
def fill_chunks(table, first, last, starts, streams, base, width, places):
    """Count the pairs of chunks first:last by their difference; a chunk's bins begin half a bin lower."""
    left, codes, right, ends = streams
    bins = table.shape[1]
    scale = 1.0 / width
    for k in range(first, last):
        row = table[k]
        from_left = base - (width // 2) * k
        for i in range(starts[k], starts[k + 1]):
            low = left[i] + from_left
            j, stop = seek(right, ends, places, codes[i], low), ends[codes[i] + 1]
            while j < stop:
                d = int(((right[j] - low) + 0.5) * scale)  # never on the border of two bins
                if d >= bins:
                    break
                row[d] += 1
                j += 1


@compiled(forceinline=True)
def local_mean(sums, d, bins):
    """What chance has in bins d and d + 1, by those around; sums: counts before each bin."""
    low, high = max(d - AROUND, 0), min(d + 2 + AROUND, bins)
    inner, outer = max(d - SKIPPED, low), min(d + 2 + SKIPPED, high)
    width = (inner - low) + (high - outer)
    return 2.0 * (sums[inner] - sums[low] + sums[high] - sums[outer] + 0.5) / width


@compiled(forceinline=True)
def sum_up(row, bins, sums):
    """Counts before each bin of a row."""
    sums[0] = 0
    for d in range(bins):
        sums[d + 1] = sums[d] + row[d]


@compiled(forceinline=True)
def seek_peak(row, bins, low, high, sums, best, number):
    """Note deviance, number, bin, count and chance of a peak in bins low:high, if above the best."""
    total = 0
    top = 0
    for d in range(bins - 1):
        pair = row[d] + row[d + 1]
        total += row[d]
        top = max(top, pair)
    least = _FEWEST_OF_MEAN * 2.0 * (total + row[bins - 1]) / bins + 1e-9
    if deviance(top, least) <= best[0]:
        return
    sum_up(row, bins, sums)
    too_few = 0
    for d in range(low, high):
        count = sums[d + 2] - sums[d]
        if count <= too_few:
            continue
        if deviance(count, least) <= best[0]:
            too_few = count
            continue
        expected = max(local_mean(sums, d, bins), least)
        found = deviance(count, expected)
        if found > best[0]:
            best[0], best[1], best[2], best[3], best[4] = found, number, d, count, expected


@compiled
def merge_rows(lower, upper, first, last, offsets, inner, sums, best):
    """One level of Taylor's tree: rows of twice the time and twice the slopes, and their peak."""
    slopes, bins = upper.shape[1], upper.shape[2]
    for q in range(first, last):
        b, s = q // slopes, q % slopes
        shift = (s + 1) // 2
        row = upper[b, s]
        early, late = lower[2 * b, s // 2], lower[2 * b + 1, s // 2]
        shifted = late[shift:]
        for d in range(bins - shift):
            row[d] = early[d] + shifted[d]
        for d in range(bins - shift, bins):
            row[d] = early[d]
        # An offset counts in the middle of the time of its line.
        low = offsets + b * slopes // 2 + (slopes - 2 * s) // 4
        seek_peak(row, bins - s, low, low + inner, sums, best, q)


@compiled
def profile_of_block(level, block, offsets, inner, sums, profile):
    """The largest deviance of each offset over the slopes of one block: float64 array, shape (inner,)."""
    slopes, bins = level.shape[1], level.shape[2]
    for s in range(slopes):
        row, end = level[block, s], bins - s
        sum_up(row, end, sums)
        least = _FEWEST_OF_MEAN * 2.0 * sums[end] / end + 1e-9
        low = offsets + block * slopes // 2 + (slopes - 2 * s) // 4
        for d in range(inner):
            count = sums[low + d + 2] - sums[low + d]
            # A deviance is below the square of what is too many, divided by the mean.
            if count > least and (count - least) ** 2 > profile[d] * least:
                expected = max(local_mean(sums, low + d, end), least)
                profile[d] = max(profile[d], deviance(count, expected))


@compiled
def row_deviances(row, sums, deviances):
    """How much each two bins of a row stand out of those around."""
    sum_up(row, row.size, sums)
    least = _FEWEST_OF_MEAN * 2.0 * sums[row.size] / row.size + 1e-9
    for d in range(deviances.size):
        expected = max(local_mean(sums, d, row.size), least)
        deviances[d] = deviance(sums[d + 2] - sums[d], expected)


def deviances_of(row: np.ndarray) -> np.ndarray:
    """How much each two bins of a row stand out of those around: float64 array, shape (bins - 1,)."""
    found = np.empty(row.size - 1)
    row_deviances(row, np.empty(row.size + 1, np.int64), found)
    return found


@dataclass(frozen=True)
class Table:
    """The layout of a correlogram: chunks of time, and bins of difference."""

    begin: int
    chunk: float
    chunks: int
    width: int
    base: int
    bins: int
    offsets: int
    """The bin of the least offset, where the line is in the middle of no time at all."""
    inner: int

    @classmethod
    def of(cls, begin: int, end: int, limits: Limits, width: int) -> Table | None:
        """For left times begin:end; None where it would have too many chunks."""
        chunks = _LEAST_CHUNKS
        while chunks * width < 2 * limits.max_drift * (end - begin):
            chunks *= 2
        if chunks > _MOST_CHUNKS:
            return None
        inner = -(-2 * limits.max_offset // width) + 1
        offsets = _SIDE + chunks // 4 + 1
        bins = inner + offsets + (3 * chunks) // 4 + _SIDE + 2
        base = -limits.max_offset - (offsets + 1) * width
        return cls(begin, (end - begin) / chunks, chunks, width, base, bins, offsets, inner)

    @property
    def cells(self) -> int:
        """Counts in the table."""
        return self.chunks * self.bins

    def line(self, size: int, block: int, slope: int, bin: int) -> tuple[Line, int, int]:
        """The line of a peak in a block of some chunks, and the times of the block."""
        first = block * size
        begin = self.begin + first * self.chunk
        half = (self.width // 2) * (size - 1)
        drift = (slope * self.width - half) / ((size - 1) * self.chunk) if size > 1 else 0.0
        offset = self.base + (bin + 1) * self.width - (self.width // 2) * first
        line = Line(begin + 0.5 * self.chunk, float(offset), drift)
        return line, round(begin), round(begin + size * self.chunk)


class Peak(NamedTuple):
    """The most improbable line of a correlogram."""

    line: Line
    begin: int  # Left times of the stretch in which it was found
    end: int
    width: int  # Ticks of a bin
    deviance: float
    pairs: float
    expected: float
    log_chance: float
    log_poisson: float  # The same if counts were Poisson's
    rival: float = math.nan  # The next best offset
    rival_deviance: float = 0.0


def best_line(
    events: ClockEvents,
    table: Table,
    times: tuple[int, int],
    limits: Limits,
    extra: float,
    threads: int = 1,
    *,
    judged: bool = True,
) -> Peak:
    """The best line of left times; extra: log of the number of tables that are tried.

    Not judged: the deviance is all that is computed.
    """
    counts = filled(events.streams, table, times, threads)
    other: np.ndarray | None = None
    level = counts.reshape(table.chunks, 1, table.bins)
    found, sums = np.array([2.0, -1.0, 0.0, 0.0, 1.0]), np.empty(table.bins + 1, np.int64)
    scan_rows(level, table.offsets, table.inner, sums, found)
    best, best_size, size = found.copy(), 1, 1
    profile: np.ndarray | None = None
    trials = table.inner * table.chunks * (1 + math.log2(table.chunks))
    log_chance = log_chance_of_trials(float(found[0]), trials) + extra
    while True:
        if judged and best_size == size and log_chance < limits.log_chance:
            profile = np.zeros(table.inner)
            block = int(best[1]) // size
            profile_of_block(level, block, table.offsets, table.inner, sums, profile)
        if size == table.chunks:
            break
        other = np.empty_like(counts) if other is None else other
        size *= 2
        above = other.reshape(table.chunks // size, size, table.bins)
        _merge(level, above, table, found, threads)
        other, level = level, above
        if found[0] > best[0]:
            best, best_size = found.copy(), size
            log_chance = log_chance_of_trials(float(found[0]), trials) + extra
    return _peak(table, limits, best, best_size, log_chance, profile, extra)


def filled(streams: Streams, table: Table, times: tuple[int, int], threads: int) -> np.ndarray:
    """The counts of a correlogram: int32 array, shape (chunks, bins)."""
    counts = np.zeros((table.chunks, table.bins), np.int32)
    edges = table.begin + np.ceil(table.chunk * np.arange(table.chunks + 1)).astype(np.int64)
    edges[-1] = times[1]
    starts = np.searchsorted(streams.left, edges)

    events = (int(starts[0]), int(starts[-1]))
    if _pays_transform(streams, table, events):
        fill: Callable[[int, int], None] = partial(_transform, counts, starts, streams, table)
    else:
        fill = partial(_count, counts, starts, streams, table)
    parts = _parts(table.chunks, threads if events[1] - events[0] > _EVENTS_A_TASK else 1)
    run_tasks([partial(fill, *part) for part in parts], threads)
    return counts


def _count(
    counts: np.ndarray, starts: np.ndarray, streams: Streams, table: Table, first: int, last: int
) -> None:
    places = np.full(streams.ends.size - 1, -1, np.int64)
    fill_chunks(counts, first, last, starts, streams, table.base, table.width, places)


def _pays_transform(streams: Streams, table: Table, events: tuple[int, int]) -> bool:
    """Whether pairs of one code are that many that Fourier transforms are faster than counting them."""
    if streams.ends.size > 2:
        return False
    half = table.bins * table.width / 2
    pairs = band_size(streams, events, Line(0.0, table.base + half, 0.0), half)
    size = table.bins + table.chunk / table.width
    return pairs > _TRANSFORM * table.chunks * size * math.log2(size)


def _fast_size(least: int) -> int:
    """The next size without factors above 5, whose transform is fast."""
    odd = (3**threes * 5**fives for threes in range(21) for fives in range(15))
    return min(factor << max(0, (-(-least // factor) - 1).bit_length()) for factor in odd)


def _transform(
    counts: np.ndarray, starts: np.ndarray, streams: Streams, table: Table, first: int, last: int
) -> None:
    """As `fill_chunks`, of times that are put into bins first: differences are as much less sharp."""
    width, length = table.width, math.ceil(table.chunk / table.width) + 1
    size = _fast_size(length + table.bins)
    for k in range(first, last):
        own = streams.left[starts[k] : starts[k + 1]]
        if not own.size:
            continue
        begin = int(own[0])
        from_left = table.base - (width // 2) * k
        low, high = begin + from_left, begin + from_left + (length + table.bins) * width
        others = streams.right[slice(*np.searchsorted(streams.right, [low, high]))]
        x = np.bincount((own - begin) // width, minlength=size)[:size].astype(np.float64)
        y = np.bincount((others - low) // width, minlength=size)[:size].astype(np.float64)
        found = fft.irfft(np.conj(fft.rfft(x)) * fft.rfft(y), size)[: table.bins]
        counts[k] = np.rint(found).astype(np.int32)


@compiled
def scan_rows(level, offsets, inner, sums, best):
    """The peak of the chunks themselves."""
    for b in range(level.shape[0]):
        low = offsets + b // 2
        seek_peak(level[b, 0], level.shape[2], low, low + inner, sums, best, b)


def _merge(
    lower: np.ndarray, upper: np.ndarray, table: Table, best: np.ndarray, threads: int
) -> None:
    threads = threads if upper.size > 4 * _CELLS_A_TASK else 1
    parts = _parts(upper.shape[0] * upper.shape[1], threads)
    bests = [best.copy() for _ in parts]

    def merge(part: tuple[int, int], own: np.ndarray) -> None:
        sums = np.empty(table.bins + 1, np.int64)
        merge_rows(lower, upper, *part, table.offsets, table.inner, sums, own)

    run_tasks([partial(merge, *each) for each in zip(parts, bests, strict=True)], threads)
    best[:] = max(bests, key=lambda each: each[0])


def _parts(rows: int, threads: int) -> list[tuple[int, int]]:
    count = min(threads, rows)
    edges = [rows * k // count for k in range(count + 1)]
    return list(pairwise(edges))


def _peak(
    table: Table,
    limits: Limits,
    best: np.ndarray,
    size: int,
    log_chance: float,
    profile: np.ndarray | None,
    extra: float,
) -> Peak:
    """The peak in words of times, with what the other offsets say of chance."""
    number, bin = int(best[1]), int(best[2])
    block, slope = (number // size, number % size) if number >= 0 else (0, 0)
    line, begin, end = table.line(size, block, slope, bin)
    found = Peak(
        line,
        begin,
        end,
        table.width,
        float(best[0]),
        float(best[3]),
        float(best[4]),
        log_chance,
        log_chance,
    )
    if profile is None:
        return found
    place = bin - (table.offsets + block * size // 2 + (size - 2 * slope) // 4)
    reach = size // 2 + 2 * SKIPPED + 2
    others = np.ones(table.inner, bool)
    others[max(0, place - reach) : place + reach + 1] = False
    left = np.flatnonzero(others)
    blocks = min(_MOST_BLOCKS, left.size // _BLOCK_BINS)
    if blocks < _FEWEST_BLOCKS:
        return found
    maxima = np.array([each.max() for each in np.array_split(profile[left], blocks)])
    second = left[np.argmax(profile[left])]
    by_extremes = log_chance_of_extremes(found.deviance, maxima, blocks) + extra
    return found._replace(
        log_chance=max(log_chance, by_extremes),
        rival=float(second * table.width - limits.max_offset),
        rival_deviance=float(maxima.max()),
    )
