"""Response times of a whole block at once.

A pair has waited since the later of its two events. Where each target later than a base event surely
qualifies with it, the responses of a block sum up to the ages of the base events, once for each
satisfied pair, less what the base events are older than their later targets. That difference needs no
pairs: two sorted lists of max_times, merged, give it.
"""

from __future__ import annotations

import numpy as np

from cpu_fallback.streams.kernels.arrivals import base_limit
from cpu_fallback.streams.kernels.ranges import classed_targets, is_open
from cpu_fallback.streams.sides import LEFT, RIGHT
from cpu_fallback.streams.state import NEVER
from event_model.compiled import compiled

_SHIFTS_PER_EVENT = 32


@compiled
def sorted_times(side, waiting, progress):
    """The max_times of a side's events that wait, ascending."""
    times = waiting.max_times[side, : progress.waiting[side]].copy()
    shifts = 0
    for i in range(1, times.size):
        time, at = times[i], i
        while at > 0 and times[at - 1] > time:
            times[at] = times[at - 1]
            at -= 1
        times[at] = time
        shifts += i - at
        if shifts > _SHIFTS_PER_EVENT * times.size:
            return np.sort(times)
    return times


@compiled
def later_is_sure(side, block, buffers, regions):
    """Whether every target later than a base event of a block is in its satisfaction region."""
    if not regions.later_sure[side]:
        return False
    for k2 in range(buffers.ends.shape[1]):
        targets = classed_targets(buffers, 1 - side, k2, regions.target_tops[1 - side])
        if targets.start == targets.stop:
            continue
        for k1 in range(block.offsets.size - 1):
            begin = block.offsets[k1]
            if begin < block.offsets[k1 + 1] and not is_open(
                block, begin, targets, regions.bands[side, k1, k2]
            ):
                return False
    return True


@compiled
def lateness_of_targets(times, recent, side):
    """How much later targets are than base events, summed up over all pairs in which they are, ticks.

    Parameters
    ----------
    times : int64 array, shape (n,)
        The max_times of the base events, ascending.
    recent : Recent
    side : int
        Of the targets.

    Returns
    -------
    float64
    """
    start, t = recent.ends[side]
    targets = recent.max_times[side]
    total, excess, count = 0.0, 0.0, 0
    for i in range(times.size - 1, -1, -1):
        if i + 1 < times.size:
            # Seen from the next base event, all later targets are that much later again.
            excess += float(count) * float(times[i + 1] - times[i])
        while t > start and targets[t - 1] > times[i]:
            t -= 1
            excess += float(targets[t] - times[i])
            count += 1
        total += excess
    return total


@compiled
def remember_times(recent, side, times):
    """Merge max_times into those of a side."""
    kept = recent.max_times[side]
    start, old = recent.ends[side]
    at = old + times.size
    recent.ends[side, 1] = at
    new = times.size
    while new > 0:
        at -= 1
        if old > start and kept[old - 1] > times[new - 1]:
            old -= 1
            kept[at] = kept[old]
        else:
            new -= 1
            kept[at] = times[new]


@compiled
def forget_times(recent, progress, rules):
    """Let go of times that no event to come on the other side is earlier than."""
    for side in (LEFT, RIGHT):
        if progress.clock[1 - side] == NEVER:
            continue
        earliest = base_limit(progress, rules.delays, 1 - side) >> 1
        start, stop = recent.ends[side]
        while start < stop and recent.max_times[side, start] <= earliest:
            start += 1
        recent.ends[side, 0] = start
