"""Peaks of runs of keys, level upon level: a scan passes over runs in which no key is high enough.

Each level keeps the largest of 16 neighbours of the level below, so a search for the next key that
reaches a bound takes O(log n), and all of them together O(log n + found) runs.
"""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled

RUN_BITS = 4
RUN = 1 << RUN_BITS
"""Neighbours under one peak."""
_LOWEST = np.iinfo(np.int32).min


def peak_levels(size: int) -> np.ndarray:
    """Where each level begins, and the last one ends: int64 array, shape (levels + 1,)."""
    ends = [0]
    while size > 1 or len(ends) == 1:
        size = -(-size // RUN)
        ends.append(ends[-1] + size)
    return np.array(ends, np.int64)


def write_peaks(keys: np.ndarray, levels: np.ndarray, peaks: np.ndarray) -> None:
    """Write the peaks of all levels.

    Parameters
    ----------
    keys : int32 array, shape (n,)
    levels : int64 array
        From `peak_levels`.
    peaks : int32 array, shape (levels[-1],)
        Takes them.
    """
    below = keys
    for start, stop in zip(levels[:-1].tolist(), levels[1:].tolist(), strict=True):
        padded = np.full((stop - start) * RUN, _LOWEST, np.int32)
        padded[: below.size] = below
        below = peaks[start:stop]
        np.max(padded.reshape(-1, RUN), axis=1, out=below)


@compiled(forceinline=True)
def next_reaching(keys, levels, peaks, keys_from, peaks_from, place, stop, bound):
    """The first place, of those before `stop`, whose key reaches a bound; `stop` if there is none.

    Parameters
    ----------
    keys, levels, peaks : arrays
        As `write_peaks`; a peak may be too high, where keys have been lowered.
    keys_from, peaks_from : int
        Where these keys begin in `keys`, and theirs in `peaks`.
    place, stop : int
    bound : int
    """
    while place < stop:
        if place & (RUN - 1) == 0:
            place = next_run(levels, peaks, peaks_from, place, bound)
            if place >= stop:
                break
        if keys[keys_from + place] >= bound:
            return place
        place += 1
    return stop


@compiled
def next_run(levels, peaks, peaks_from, place, bound):
    """The first place of a run with a peak that reaches a bound, from a place where a run begins.

    Of none: a place behind all keys.
    """
    top = levels.size - 2
    level, run = 0, place >> RUN_BITS
    while run < levels[level + 1] - levels[level]:
        if peaks[peaks_from + levels[level] + run] >= bound:
            if level == 0:
                return run << RUN_BITS
            level -= 1
            run <<= RUN_BITS
        else:
            run += 1
            while level < top and run & (RUN - 1) == 0:
                level += 1
                run >>= RUN_BITS
    # Behind the last run of some level lies nothing at all.
    return (levels[1] - levels[0]) << RUN_BITS
