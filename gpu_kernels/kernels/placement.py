"""Kernels with a thread for each item: where base events stand among the targets, and probabilities."""

from __future__ import annotations

import numpy as np
from numba import cuda, types

from coincide.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.probability import window_probability
from gpu_kernels.kernels.compilation import TILE, kernel
from gpu_kernels.kernels.layout import BASE, F64_ARRAY, I64_ARRAY, I64_CUBE, RUN, SPANS, TARGETS
from gpu_kernels.kernels.searching import event_of, owner_of, reach


@kernel(BASE, TARGETS, I64_CUBE, RUN, SPANS, types.boolean, I64_ARRAY, I64_ARRAY)
def place(base, targets, bands, run, spans, shells, counts, parts):
    """Find the spans of a run of base events, a thread for each entry.

    The ends are those of `cpu_fallback.join.placement`; each search goes only as far as the last one left.

    Parameters
    ----------
    base : Base
    targets : Targets
    bands : int64 array, shape (K1, K2, 4)
        From `coincide.bands.band_table`: bounds on a target's key less a base event's midpoint.
    run : Run
    spans : Spans, written
    shells : bool
        Whether to count the candidates in the shells, and to write `parts`, which else stands for
        nothing; else all candidates are counted.
    counts : int64 array, shape (entries,), written
        Candidates of each entry.
    parts : int64 array, shape (3 * entries,), written
        Matches in the inner range of each entry, between zeros for the early and the late shell.
    """
    entry = cuda.grid(1)
    if entry >= spans.first.size:
        return
    event = event_of(run, entry)
    k1 = base.classes[event]
    k2 = entry - (event - run.start) * run.classes
    groups = base.offsets.size - 1
    group = owner_of(base.offsets, 0, groups + 1, event)
    first = inner = shell = last = 0
    if group < groups:
        midpoint = base.midpoints[event]
        keys, end = targets.keys, targets.offsets[k2, group + 1]
        first = reach(keys, targets.offsets[k2, group], end, midpoint, bands[k1, k2, OUTER_LO])
        last = reach(keys, first, end, midpoint, bands[k1, k2, OUTER_HI] + 1)
        inner, shell = first, last
        # Where a shell is empty its two ends are one.
        if bands[k1, k2, INNER_LO] != bands[k1, k2, OUTER_LO]:
            inner = reach(keys, first, last, midpoint, bands[k1, k2, INNER_LO])
        if bands[k1, k2, INNER_HI] != bands[k1, k2, OUTER_HI]:
            shell = reach(keys, inner, last, midpoint, bands[k1, k2, INNER_HI] + 1)
    spans.first[entry] = first
    spans.inner[entry] = inner
    spans.shell[entry] = shell
    counts[entry] = last - first
    if shells:
        counts[entry] -= shell - inner
        parts[3 * entry] = parts[3 * entry + 2] = 0
        parts[3 * entry + 1] = shell - inner


@kernel(I64_ARRAY, I64_ARRAY)
def tile_owners(scan, owners):
    """Find whose the first item of each tile is, and of the tile past the last, or the last owner of all.

    Parameters
    ----------
    scan : int64 array, shape (owners + 1,)
        Exclusive scan of the items of each owner.
    owners : int64 array, shape (tiles + 1,), written
    """
    tile = cuda.grid(1)
    if tile < owners.size:
        owners[tile] = owner_of(scan, 0, scan.size - 1, np.int64(tile) * TILE)


@kernel(*[I64_ARRAY] * 4, types.int64, types.int64, F64_ARRAY)
def pair_probabilities(min_left, max_left, min_right, max_right, lo, hi, out):
    """P(lo <= T_right - T_left <= hi) of n pairs, a thread for each.

    Parameters
    ----------
    min_left, max_left, min_right, max_right : int64 arrays, shape (n,)
        Timestamps, ticks.
    lo, hi : int64
        The window, ticks.
    out : float64 array, shape (n,), written
    """
    i = cuda.grid(1)
    if i < out.size:
        l1, l2 = max_left[i] - min_left[i], max_right[i] - min_right[i]
        out[i] = window_probability(max_right[i] - max_left[i], l1, l2, lo, hi)
