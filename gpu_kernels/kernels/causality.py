"""Kernels of causality joins, and the layout of their sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from coincide.model.causality.buckets import gap_to_side
from coincide.model.causality.deciding import distance_between, squared_gap
from coincide.model.causality.spaces import H, X, Y, Z
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import device_function, kernel
from gpu_kernels.kernels.join import (
    F64_ARRAY,
    F64_CUBE,
    F64_TABLE,
    I64_ARRAY,
    I64_TABLE,
    SPANS,
    U8_ARRAY,
)
from gpu_kernels.kernels.searching import owner_of, reach


class Placed(NamedTuple):
    """Events of one side, sorted by (bucket, time, row)."""

    times: Any  # int64, shape (n,): ticks
    lengths: Any  # int64, shape (n,): lengths, or numbers of templates; empty of exact instants
    points: Any  # float64, shape (3 or 4, n): x, y, z and h; of events without places shape (0, 0)


PLACED = types.NamedTuple([I64_ARRAY, I64_ARRAY, F64_TABLE], Placed)


class CausalSides(NamedTuple):
    """What decides pairs."""

    base: Placed  # Causes and effects
    targets: Placed  # Causes and effects
    rule: Any  # `coincide.model.causality.deciding.PairRule`, or `TemplateRule` of histograms
    gap: float  # The largest |x - y|² of a pair that can qualify
    plain: bool  # Whether within a window this is all that is asked

    def takes(self, event, target):
        """Whether a pair in whose window on delta the effect is qualifies."""
        own, others = self.base.points, self.targets.points
        gap = dh = 0.0
        if own.shape[0] > 0:
            gap = squared_gap(
                others[X, target] - own[X, event],
                others[Y, target] - own[Y, event],
                others[Z, target] - own[Z, event],
            )
            if not gap <= self.gap:
                return False
            if own.shape[0] > H:
                dh = others[H, target] - own[H, event]
        if self.plain:
            return True
        left = right = 0
        if self.base.lengths.size > 0:
            left = self.base.lengths[event]
        if self.targets.lengths.size > 0:
            right = self.targets.lengths[target]
        delta = self.targets.times[target] - self.base.times[event]
        return self.rule.meets(gap, dh, delta, left, right)


def causal_sides_type(rule: Any) -> Any:
    """The type of `CausalSides` with a type of rule."""
    return types.NamedTuple([PLACED, PLACED, rule, types.float64, types.boolean], CausalSides)


class Bucketed(NamedTuple):
    """The buckets of one side."""

    ranks: Any  # int64, shape (n,): what decides among simultaneous events of one stream
    numbers: Any  # int64, shape (buckets,): ascending
    offsets: Any  # int64, shape (buckets + 1,): first event of each bucket
    boxes: Any  # float64, shape (buckets, 2, 3)


BUCKETED = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, F64_CUBE], Bucketed)


class Linking(NamedTuple):
    """Which buckets hold effects of a cause's bucket, and at what deltas."""

    by_place: bool  # Whether each bucket has links of its own; by cell, all have the same
    sure: bool  # Whether every pair within a window qualifies
    self_join: bool  # Whether both sides have one stream, and the earlier event is the cause
    starts: Any  # int64, shape (buckets + 1,): by place: first link of each bucket of causes
    targets: Any  # int64, shape (links,): by place: buckets of effects
    windows: Any  # int64, shape (links, 2): least and most delta, ticks


LINKING = types.NamedTuple([*[types.boolean] * 3, I64_ARRAY, I64_ARRAY, I64_TABLE], Linking)


class CausalRun(NamedTuple):
    """A run of causes. An *entry* is a cause and a link of its bucket."""

    start: int  # Its first cause
    begins: Any  # int64, shape (causes + 1,): first entry of each
    events: Any  # int64, shape (entries,), written: cause of each entry

    def event_of(self, entry):
        """The base event of an entry."""
        return self.events[entry]


CAUSAL_RUN = types.NamedTuple([types.int64, I64_ARRAY, I64_ARRAY], CausalRun)


probe = tiles.probe.declaring(
    lambda rule: (
        *(causal_sides_type(rule), CAUSAL_RUN, SPANS, I64_ARRAY, I64_ARRAY),
        *(U8_ARRAY, I64_ARRAY, I64_ARRAY),
    )
)
copy = tiles.copy.declaring(CAUSAL_RUN, *tiles.copy.types[1:])


@kernel(
    *(PLACED, PLACED, types.float64, BUCKETED, BUCKETED),
    *(LINKING, CAUSAL_RUN, SPANS, I64_ARRAY, I64_ARRAY),
)
def place_causes(base, targets, gap, own, others, linking, run, spans, counts, parts):
    """Find the effects in the window of each link of a run of causes, a thread for each entry."""
    entry = cuda.grid(1)
    if entry >= spans.first.size:
        return
    cause = owner_of(run.begins, 0, run.begins.size - 1, entry)
    link, event = entry - run.begins[cause], run.start + cause
    bucket = owner_of(own.offsets, 0, own.offsets.size - 1, event)
    if linking.by_place:
        link += linking.starts[bucket]
        target = linking.targets[link]
    else:
        target = _cell(others.numbers, own.numbers[bucket] + linking.targets[link])
    first = last = np.int64(0)
    if target >= 0 and (linking.sure or _is_near(base.points, gap, others.boxes, event, target)):
        lo, hi = linking.windows[link, 0], linking.windows[link, 1]
        time, times = base.times[event], targets.times
        first, last = _span(time, times, own, others, event, target, lo, hi, linking.self_join)
    run.events[entry] = event
    spans.first[entry] = first
    spans.inner[entry] = first if linking.sure else last
    spans.shell[entry] = last
    counts[entry] = 0 if linking.sure else last - first
    parts[3 * entry] = parts[3 * entry + 2] = 0
    parts[3 * entry + 1] = last - first if linking.sure else 0


@device_function
def _cell(numbers, number):
    """The bucket of a number; -1 for none."""
    bucket = reach(numbers, 0, numbers.size, 0, number)
    if bucket < numbers.size and numbers[bucket] == number:
        return np.int64(bucket)
    return np.int64(-1)


@device_function
def _is_near(own, farthest, boxes, event, bucket):
    """Whether the box of a bucket is near enough."""
    if own.shape[0] == 0:
        return True
    dx = gap_to_side(own[X, event], boxes[bucket, 0, X], boxes[bucket, 1, X])
    dy = gap_to_side(own[Y, event], boxes[bucket, 0, Y], boxes[bucket, 1, Y])
    dz = gap_to_side(own[Z, event], boxes[bucket, 0, Z], boxes[bucket, 1, Z])
    return squared_gap(dx, dy, dz) <= farthest


@device_function
def _span(time, times, own, others, event, bucket, lo, hi, self_join):
    """The first effect of a bucket in a cause's window, and past the last."""
    end = others.offsets[bucket + 1]
    first = reach(times, others.offsets[bucket], end, time, lo)
    if self_join and lo == 0:
        # The cause is the event of the lower rank, where two of one stream are simultaneous.
        later = reach(times, first, end, time, 1)
        first = reach(others.ranks, first, later, own.ranks[event], 1)
    return first, reach(times, first, end, time, hi + 1)


@kernel(PLACED, PLACED, types.float64, I64_ARRAY, I64_ARRAY, I64_ARRAY, F64_ARRAY)
def measure(base, targets, curvature, causes, effects, deltas, distances):
    """Delta and distance of pairs, a thread for each."""
    i = cuda.grid(1)
    if i >= deltas.size:
        return
    cause, effect = causes[i], effects[i]
    deltas[i] = targets.times[effect] - base.times[cause]
    if distances.size > 0:
        own, others = base.points, targets.points
        gap = squared_gap(
            others[X, effect] - own[X, cause],
            others[Y, effect] - own[Y, cause],
            others[Z, effect] - own[Z, cause],
        )
        dh = others[H, effect] - own[H, cause] if own.shape[0] > H else 0.0
        distances[i] = distance_between(curvature, gap, dh)
