"""Times put right by the segments of a clock's error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled


class Segments(NamedTuple):
    """Lines of errors, in the order of clocks and times."""

    ends: np.ndarray  # int64 (clocks + 1,), where the segments of each clock begin
    starts: np.ndarray  # int64, ticks
    stops: np.ndarray  # int64, ticks, the last one inside
    offsets: np.ndarray  # float64, ticks, at starts
    drifts: np.ndarray  # float64, a tick
    widths: np.ndarray  # int64, ticks to either side of a line


@compiled
def correct(times, clocks, segments, earliest, latest, is_known):
    """Put times right. Between two segments either may hold; before the first and after the last none."""
    ends, starts, stops, offsets, drifts, widths = segments
    for i in range(times.size):
        clock, time = clocks[i], times[i]
        is_known[i] = False
        earliest[i] = latest[i] = 0
        if clock < 0:
            continue
        low, high = ends[clock], ends[clock + 1]
        while low < high:  # the first one that starts later
            middle = (low + high) // 2
            if starts[middle] <= time:
                low = middle + 1
            else:
                high = middle
        s = low - 1
        if s < ends[clock]:
            continue
        one = time + np.int64(np.rint(offsets[s] + drifts[s] * (time - starts[s])))
        other, own, its = one, widths[s], widths[s]
        if time > stops[s]:
            s += 1
            if s == ends[clock + 1]:
                continue
            other = time + np.int64(np.rint(offsets[s] + drifts[s] * (time - starts[s])))
            its = widths[s]
        is_known[i] = True
        earliest[i], latest[i] = min(one - own, other - its), max(one + own, other + its)


def bounds_of(segments: Segments) -> tuple[int, int]:
    """The least and the largest error that a time can have, ticks."""
    if not segments.starts.size:
        return 0, 0
    is_last = np.isin(np.arange(1, segments.starts.size + 1), segments.ends)
    # A line holds, as one of two, from the end of the segment before up to the start of the next.
    until = np.where(is_last, segments.stops, np.append(segments.starts[1:], 0))
    since = np.where(
        np.append(True, is_last[:-1]), segments.starts, np.append(0, segments.stops[:-1])
    )
    errors = [segments.offsets + segments.drifts * (t - segments.starts) for t in (since, until)]
    least, largest = np.min(errors - segments.widths), np.max(errors + segments.widths)
    return int(np.floor(least)) - 1, int(np.ceil(largest)) + 1
