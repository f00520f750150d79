"""Pairs of events near a line of time and difference."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coincide.model.clocks.errors import Line
from coincide.model.clocks.events import Streams
from coincide.model.compiled import compiled


@compiled(forceinline=True)
def seek(right, ends, places, code, bound):
    """The first right event of a code from a bound on; places: where each code was last, -1 at first."""
    i, stop = places[code], ends[code + 1]
    if i < 0:
        i = ends[code]
        beyond = stop
        while i < beyond:
            middle = (i + beyond) // 2
            if right[middle] < bound:
                i = middle + 1
            else:
                beyond = middle
    else:
        while i < stop and right[i] < bound:
            i += 1
        while i > ends[code] and right[i - 1] >= bound:
            i -= 1
    places[code] = i
    return i


@compiled
def count_kernel(streams, begin, stop, time, offset, drift, reach, lows, highs):
    """The number of pairs of left events begin:stop whose difference is within a reach of a line."""
    left, codes, right, ends = streams
    pairs = 0
    for i in range(begin, stop):
        middle = offset + drift * (left[i] - time)
        low = left[i] + np.int64(math.ceil(middle - reach))
        high = left[i] + np.int64(math.floor(middle + reach)) + 1
        pairs += seek(right, ends, highs, codes[i], high) - seek(right, ends, lows, codes[i], low)
    return pairs


@compiled
def list_kernel(streams, begin, stop, time, offset, drift, reach, lows, lefts, rights, residuals):
    """List the pairs that `count_kernel` counts, with how far they are from the line."""
    left, codes, right, ends = streams
    n = 0
    for i in range(begin, stop):
        middle = offset + drift * (left[i] - time)
        j = seek(right, ends, lows, codes[i], left[i] + np.int64(math.ceil(middle - reach)))
        high = left[i] + np.int64(math.floor(middle + reach))
        while j < ends[codes[i] + 1] and right[j] <= high:
            lefts[n] = i
            rights[n] = j
            residuals[n] = (right[j] - left[i]) - middle
            n += 1
            j += 1


class Band(NamedTuple):
    """Pairs near a line: left and right events, and how far above the line they are, ticks."""

    lefts: np.ndarray
    rights: np.ndarray
    residuals: np.ndarray


def band_size(streams: Streams, events: tuple[int, int], line: Line, reach: float) -> int:
    """The number of pairs of left events begin:stop whose difference is within a reach of a line."""
    lows, highs = _places(streams), _places(streams)
    return int(
        count_kernel(streams, *events, line.time, line.offset, line.drift, reach, lows, highs)
    )


def band(streams: Streams, events: tuple[int, int], line: Line, reach: float) -> Band:
    """These pairs."""
    n = band_size(streams, events, line, reach)
    found = Band(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n))
    list_kernel(
        streams, *events, line.time, line.offset, line.drift, reach, _places(streams), *found
    )
    return found


def _places(streams: Streams) -> np.ndarray:
    return np.full(streams.ends.size - 1, -1, np.int64)


@compiled
def residuals_kernel(streams, begin, stop, time, offset, drift, reach, width, lows, counts):
    """Count the pairs that `list_kernel` lists by how far they are from the line."""
    left, codes, right, ends = streams
    for i in range(begin, stop):
        middle = offset + drift * (left[i] - time)
        j = seek(right, ends, lows, codes[i], left[i] + np.int64(math.ceil(middle - reach)))
        while j < ends[codes[i] + 1]:
            d = int(((right[j] - left[i]) - middle + reach) / width)
            if d >= counts.size:
                break
            counts[d] += 1
            j += 1


def count_residuals(
    streams: Streams, events: tuple[int, int], line: Line, reach: float, width: float
) -> np.ndarray:
    """Pairs by how far they are from a line: int64 array of an even size, the line in the middle."""
    counts = np.zeros(2 * math.ceil(reach / width), np.int64)
    reach = counts.size * width / 2
    where = line.time, line.offset, line.drift
    residuals_kernel(streams, *events, *where, reach, width, _places(streams), counts)
    return counts
