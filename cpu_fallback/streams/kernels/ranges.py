"""Ranges of targets: the region bounds of base events as positions in the targets' buffers."""

from __future__ import annotations

import numpy as np

from coincide.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.compiled import compiled
from cpu_fallback.streams.kernels.runs import FIRST, INNER, LAST, SHELL, Targets
from cpu_fallback.streams.kernels.searching import advance, class_of, first_reaching


@compiled(forceinline=True)
def ordered_targets(buffers, side):
    """The targets of a side in order of max_time, one class."""
    start, stop = buffers.ends[side, 0]
    keys, lengths, numbers = (
        buffers.keys[side, 0],
        buffers.lengths[side, 0],
        buffers.numbers[side, 0],
    )
    return Targets(keys, lengths, numbers, start, stop, False)


@compiled(forceinline=True)
def classed_targets(buffers, side, k):
    """The targets of a side's class k in order of midpoint."""
    start, stop = buffers.ends[side, k]
    keys, lengths, numbers = (
        buffers.keys[side, k],
        buffers.lengths[side, k],
        buffers.numbers[side, k],
    )
    return Targets(keys, lengths, numbers, start, stop, True)


@compiled
def max_time_ranges(block, targets, bands, tops, ranges):
    """Positions of the papers' L_H, L_L, R_L and R_H for each event of a block, by binary search.

    Parameters
    ----------
    block : Block
        Keys are doubled max_times.
    targets : Targets
        In order of max_time.
    bands : int64 array, shape (K1, 1, 4)
        Of the base side, from `Regions`.
    tops : int64 array, shape (K1,)
        Of the base side, from `Regions`.
    ranges : int64 array, shape (n, 4), written

    Returns
    -------
    int64
        Candidates: targets in all ranges.
    two int64
        Candidates before and after the inner ranges.
    """
    candidates, early, late = 0, 0, 0
    keys, stop = targets.keys, targets.stop
    for i in range(block.keys.size):
        length = block.lengths[i]
        k = class_of(length, tops)
        midpoint = block.keys[i] - length
        first = first_reaching(keys, targets.start, stop, midpoint, bands[k, 0, OUTER_LO])
        inner = first_reaching(keys, first, stop, midpoint, bands[k, 0, INNER_LO])
        shell = first_reaching(keys, inner, stop, midpoint, bands[k, 0, INNER_HI] + 1)
        last = first_reaching(keys, shell, stop, midpoint, bands[k, 0, OUTER_HI] + 1)
        ranges[i, FIRST] = first
        ranges[i, INNER] = inner
        ranges[i, SHELL] = shell
        ranges[i, LAST] = last
        candidates += last - first
        early += inner - first
        late += last - shell
    return candidates, early, late


@compiled
def midpoint_ranges(block, begin, end, targets, band, ranges):
    """Positions of one band for the events of one class, by cursors that only move forward.

    Parameters
    ----------
    block : Block
        Keys are doubled midpoints.
    begin, end : int64
        Events of the class.
    targets : Targets
        Of one class, in order of midpoint.
    band : int64 array, shape (4,)
    ranges : int64 array, shape (n, 4), written

    Returns
    -------
    int64
        Candidates: targets in all ranges.
    two int64
        Candidates before and after the inner ranges.
    """
    past_inner, past_outer = band[INNER_HI] + 1, band[OUTER_HI] + 1
    keys, stop = targets.keys, targets.stop
    origin = block.keys[begin]
    if keys[stop - 1] - origin <= band[INNER_HI]:
        # No target is too late for any satisfaction region.
        ranges[begin:end, SHELL:] = stop
    else:
        shell = first_reaching(keys, targets.start, stop, origin, past_inner)
        last = first_reaching(keys, shell, stop, origin, past_outer)
        for i in range(begin, end):
            shell = advance(keys, shell, stop, block.keys[i], past_inner)
            last = advance(keys, max(shell, last), stop, block.keys[i], past_outer)
            ranges[i, SHELL] = shell
            ranges[i, LAST] = last
    first = first_reaching(keys, targets.start, stop, origin, band[OUTER_LO])
    inner = first_reaching(keys, first, stop, origin, band[INNER_LO])
    candidates, early, late = 0, 0, 0
    for i in range(begin, end):
        first = advance(keys, first, stop, block.keys[i], band[OUTER_LO])
        inner = advance(keys, max(first, inner), stop, block.keys[i], band[INNER_LO])
        ranges[i, FIRST] = first
        ranges[i, INNER] = inner
        candidates += ranges[i, LAST] - first
        early += inner - first
        late += ranges[i, LAST] - ranges[i, SHELL]
    return candidates, early, late


@compiled
def new_ranges(events):
    """Room for the ranges of so many base events."""
    return np.empty((events, 4), np.int64)
