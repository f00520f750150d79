"""Kernels with a thread for each item: where base events stand among the targets, and probabilities."""

from __future__ import annotations

import numpy as np
from numba import cuda, types

from coincide.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.timestamps.dispatch import difference
from gpu_kernels.kernels.compilation import TILE, kernel, rule_kernel
from gpu_kernels.kernels.layout import BASE, F64_ARRAY, I64_ARRAY, I64_CUBE, RUN, SPANS, TARGETS
from gpu_kernels.kernels.searching import owner_of, reach


@kernel(BASE, TARGETS, I64_CUBE, RUN, SPANS, types.boolean, I64_ARRAY, I64_ARRAY)
def place(base, targets, bands, run, spans, shells, counts, parts):
    """Find the spans of a run of base events, a thread for each entry.

    The ends are those of `cpu_fallback.join.placement`; each search goes only as far as the last one left.

    Parameters
    ----------
    base : Base
    targets : Targets
    bands : int64 array, shape (K1, K2, 4)
        Of the timestamps' model: bounds on a target's place less a base event's key.
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
    event = run.event_of(entry)
    k1 = base.classes[event]
    k2 = entry - (event - run.start) * run.classes
    groups = base.offsets.size - 1
    group = owner_of(base.offsets, 0, groups + 1, event)
    first = inner = shell = last = 0
    if group < groups:
        key = base.keys[event]
        places, end = targets.places, targets.offsets[k2, group + 1]
        first = reach(places, targets.offsets[k2, group], end, key, bands[k1, k2, OUTER_LO])
        last = reach(places, first, end, key, bands[k1, k2, OUTER_HI] + 1)
        inner, shell = first, last
        # Where a shell is empty its two ends are one.
        if bands[k1, k2, INNER_LO] != bands[k1, k2, OUTER_LO]:
            inner = reach(places, first, last, key, bands[k1, k2, INNER_LO])
        if bands[k1, k2, INNER_HI] != bands[k1, k2, OUTER_HI]:
            shell = reach(places, inner, last, key, bands[k1, k2, INNER_HI] + 1)
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


@rule_kernel(lambda rule: (rule, *[I64_ARRAY] * 4, F64_ARRAY))
def pair_probabilities(rule, left_keys, left_shapes, right_keys, right_shapes, out):
    """Satisfaction probabilities of n pairs, a thread for each.

    Parameters
    ----------
    rule : NamedTuple
        `coincide.timestamps.protocol.Rule`.
    left_keys, left_shapes, right_keys, right_shapes : int64 arrays, shape (n,)
    out : float64 array, shape (n,), written
    """
    i = cuda.grid(1)
    if i < out.size:
        l1, l2 = left_shapes[i], right_shapes[i]
        out[i] = rule.probability(difference(rule, left_keys[i], l1, right_keys[i], l2), l1, l2)
