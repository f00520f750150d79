"""Counts of spans that overlap, by where the others begin and end: no pair is looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.counters import offsets_of
from coincide.model.ordering import ascends, stable_order
from cpu_fallback.blocks import run_tasks
from cpu_fallback.join.buffers import BaseBuffer, TargetBuffer, group_of, next_group


class SortedEnds(NamedTuple):
    """When targets begin and when they end, each ascending within a group."""

    starts: np.ndarray  # int64, ticks
    stops: np.ndarray  # int64, ticks
    offsets: np.ndarray  # int64, shape (groups + 1,): the first of each group, in either


def are_instants(side: BaseBuffer | TargetBuffer) -> bool:
    """Whether no event of a side lasts."""
    return not side.shapes.any()


def sorted_ends(targets: TargetBuffer, shortest: int, threads: int) -> SortedEnds:
    """The ends of all targets that last long enough."""
    listed, groups = targets.offsets[-1, -1], targets.offsets.shape[1] - 1
    keys, shapes = targets.keys[:listed], targets.shapes[:listed]
    group = _group_of_each(targets) if groups > 1 else None
    if shortest:
        lasts = shapes >= shortest
        keys, shapes = keys[lasts], shapes[lasts]
        group = None if group is None else group[lasts]
    counts = [keys.size] if group is None else np.bincount(group, minlength=groups)
    offsets = offsets_of(np.asarray(counts, np.int64))
    if not shapes.any():
        instants = _by_group(keys >> 1, group)
        return SortedEnds(instants, instants, offsets)
    ends = (keys - shapes) >> 1, (keys + shapes) >> 1
    tasks: list[Callable[[], Any]] = [partial(_by_group, each, group) for each in ends]
    starts, stops = run_tasks(tasks, threads)
    return SortedEnds(starts, stops, offsets)


def _group_of_each(targets: TargetBuffer) -> np.ndarray:
    sizes = np.diff(targets.offsets, axis=1)
    classes, groups = sizes.shape
    found: np.ndarray = np.repeat(np.tile(np.arange(groups), classes), sizes.ravel())
    return found


def _by_group(ends: np.ndarray, group: np.ndarray | None) -> np.ndarray:
    if group is None and ascends(ends):
        return ends
    order = stable_order(ends)
    if group is not None:
        order = order[stable_order(group[order])]
    return ends[order]


@compiled(allocates=True)
def count_block_by_ends(start, stop, base, ends, bounds, counts):
    """As `cpu_fallback.join.kernels.count_block`: what begins in time, less what ends too soon."""
    tally = np.zeros(3, np.int64)
    group = group_of(base, start)
    known = begun = gone = np.int64(-1)
    for i in range(start, stop):
        group = next_group(base, group, i)
        if group == base.offsets.size - 1:
            counts[i:stop] = 0
            break
        low, high = ends.offsets[group], ends.offsets[group + 1]
        if group != known:
            known, begun, gone = group, low, low
        length = base.shapes[i]
        first, last = (base.keys[i] - length) >> 1, (base.keys[i] + length) >> 1
        begun = _moved(ends.starts, begun, low, high, last + bounds.after_hi + 1)
        gone = _moved(ends.stops, gone, low, high, first + bounds.before_lo)
        counts[i] = begun - gone if length >= bounds.left_shortest else 0
        tally[0] += counts[i]
    return tally


@compiled
def _moved(values, position, low, high, bound):
    """The first position from `low` to `high` whose value reaches `bound`: a gallop either way."""
    step = np.int64(1)
    if position < high and values[position] < bound:
        low = position + 1
        while low + step <= high and values[low + step - 1] < bound:
            low += step
            step *= 2
        high = min(high, low + step)
    else:
        high = position
        while high - step >= low and values[high - step] >= bound:
            high -= step
            step *= 2
        low = max(low, high - step)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low
