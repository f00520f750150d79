"""Ranges of targets: the region bounds of base events as positions in the targets' buffers."""

from __future__ import annotations

import numpy as np

from coincide.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.compiled import compiled
from coincide.shape_classes import class_of
from cpu_fallback.streams.kernels.runs import FIRST, INNER, LAST, SHELL, Targets
from cpu_fallback.streams.kernels.searching import advance, first_reaching


@compiled(allocates=True, forceinline=True)
def ordered_targets(buffers, side):
    """The targets of a side in order of max_time, one class."""
    start, stop = buffers.ends[side, 0]
    keys, shapes, numbers = (
        buffers.keys[side, 0],
        buffers.shapes[side, 0],
        buffers.numbers[side, 0],
    )
    return Targets(keys, shapes, numbers, start, stop, False)


@compiled(allocates=True, forceinline=True)
def classed_targets(buffers, side, k):
    """The targets of a side's class k in order of key."""
    start, stop = buffers.ends[side, k]
    keys, shapes, numbers = (
        buffers.keys[side, k],
        buffers.shapes[side, k],
        buffers.numbers[side, k],
    )
    return Targets(keys, shapes, numbers, start, stop, True)


@compiled
def max_time_ranges(side, block, targets, regions, pair_rule, ranges):
    """Positions of the papers' L_H, L_L, R_L and R_H for each event of a block, by binary search.

    Parameters
    ----------
    side : int
        Of the base events.
    block : Block
        Keys are doubled max_times.
    targets : Targets
        In order of max_time.
    regions : Regions
    pair_rule : NamedTuple
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
    bands, tops = regions.bands[side], regions.tops[side]
    for i in range(block.keys.size):
        shape = block.shapes[i]
        k = class_of(shape, tops)
        origin = block.keys[i] - pair_rule.lean(side, shape)
        first = first_reaching(keys, targets.start, stop, origin, bands[k, 0, OUTER_LO])
        inner = first_reaching(keys, first, stop, origin, bands[k, 0, INNER_LO])
        shell = first_reaching(keys, inner, stop, origin, bands[k, 0, INNER_HI] + 1)
        last = first_reaching(keys, shell, stop, origin, bands[k, 0, OUTER_HI] + 1)
        ranges[i, FIRST] = first
        ranges[i, INNER] = inner
        ranges[i, SHELL] = shell
        ranges[i, LAST] = last
        candidates += last - first
        early += inner - first
        late += last - shell
    return candidates, early, late


@compiled
def key_ranges(block, begin, end, targets, band, ranges):
    """Positions of one band for the events of one class, by cursors that only move forward.

    Parameters
    ----------
    block : Block
        By key.
    begin, end : int64
        Events of the class.
    targets : Targets
        Of one class, in order of key.
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


@compiled(allocates=True)
def new_ranges(events):
    """Room for the ranges of so many base events."""
    return np.empty((events, 4), np.int64)
