"""The stream algorithms of Lee & Lee (2010) that correlate each event when it comes: simple, and eager."""

from __future__ import annotations

from typing import Literal

import numpy as np

from bench.papers.streams.correlator import StreamCorrelator
from bench.papers.streams.intake import Batch
from bench.papers.streams.kernels.buffering import (
    Block,
    grown,
    invalidate,
    let_go,
    merge_block,
)
from bench.papers.streams.kernels.lazy import correlate_ranges
from bench.papers.streams.kernels.runs import FIRST, INNER, new_ranges, probe_runs, targets_of
from bench.papers.streams.live_blocks import new_buffers, roomy_buffers
from bench.papers.streams.models import (
    StreamOptions,
    keep_while_possible,
    max_time_regions,
    one_class,
    tops_of,
)
from bench.papers.streams.state import (
    BUFFER_MAX,
    BUFFER_SUM,
    INVALIDATED,
    NEVER,
    SAMPLES,
    Regions,
    admit,
    base_limit,
    now_of,
)
from coincide.model.compiled import compiled
from coincide.model.sides import LEFT, RIGHT

Immediate = Literal["simple", "simple-sort", "eager"]


class ImmediateCorrelator(StreamCorrelator):
    """Correlates each event as it arrives, Lee & Lee (2010), Algorithms 1 to 3."""

    def __init__(self, options: StreamOptions, algorithm: str) -> None:
        regions = max_time_regions if algorithm == "eager" else impossible_regions
        super().__init__(options, regions(options))
        self._algorithm = algorithm
        self._buffers = new_buffers(1)

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._buffers = roomy_buffers(self._buffers, batch.sides.size)
        given = (batch, self._buffers, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, late, *self._space())
        self._halfway = True
        if self._algorithm == "eager":
            self._keep(*correlate_eagerly(*given, *written))
        else:
            ordered = self._algorithm == "simple-sort"
            self._keep(*correlate_simple(*given, ordered, *written))
        self._halfway = False

    def _time_passed(self) -> None:
        release = let_go_unsorted if self._algorithm == "simple" else let_go
        release(self._buffers, self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        """Nothing waits."""

    def _fit(self) -> None:
        self._buffers = roomy_buffers(self._buffers, 0)


def impossible_regions(options: StreamOptions) -> Regions:
    """No regions: a target is obsolete only when no base event to come can reach it at all."""
    keep = [[keep_while_possible(options, base)] for base in (LEFT, RIGHT)]
    nothing = np.zeros((2, 1, 1, 4), np.int64)
    tops = tops_of((one_class(options.limits[LEFT]), one_class(options.limits[RIGHT])))
    return Regions(nothing, tops, tops, np.array(keep, np.int64))


@compiled(allocates=True)
def block_of_one():
    """Room for a Block of a single event."""
    arrays = np.empty((3, 1), np.int64)
    return Block(arrays[0], arrays[1], arrays[2], np.array([0, 1], np.int64))


@compiled(forceinline=True)
def load_event(block, i, batch, progress):
    """Make event i of a batch, which has just arrived, the only one of a block."""
    block.keys[0] = 2 * batch.max_time[i]
    block.shapes[0] = batch.shapes[i]
    block.numbers[0] = progress.arrived[batch.sides[i]] - 1


@compiled(forceinline=True)
def sample_lengths(tally, ends):
    """Note the lengths of both buffers, of one class, after an arrival."""
    tally[SAMPLES] += 1
    for side in (LEFT, RIGHT):
        live = ends[side, 0, 1] - ends[side, 0, 0]
        tally[BUFFER_SUM + side] += live
        tally[BUFFER_MAX + side] = max(tally[BUFFER_MAX + side], live)


@compiled(allocates=True)
def correlate_simple(
    batch, buffers, progress, regions, rules, ordered, tally, response, late, left_out, right_out
):
    """Simple and Simple-Sort timing correlation, Lee & Lee (2010), Algorithm 1."""
    at = np.int64(0)
    block, ranges = block_of_one(), new_ranges(np.int64(1))
    # Not literals, for which callees would be compiled once more.
    start, stop, column = np.int64(0), np.int64(1), np.int64(FIRST)
    for i in range(batch.sides.size):
        if not admit(i, batch, progress, rules.delays, tally, late):
            continue
        side = np.int64(batch.sides[i])
        load_event(block, i, batch, progress)
        targets = targets_of(buffers, 1 - side, 0, False)
        ranges[0, FIRST] = targets.start
        ranges[0, INNER] = targets.stop
        if rules.pairs:
            left_out = grown(left_out, at, at + targets.stop - targets.start)
            right_out = grown(right_out, at, at + targets.stop - targets.start)
        at = probe_runs(
            side, block, start, stop, ranges, column, targets, now_of(progress), rules, tally, response,
            left_out, right_out, at,
        )  # fmt: skip
        limit = base_limit(progress, rules.delays, side)
        if ordered:
            invalidate(buffers, 1 - side, limit, regions.keep[side], tally)
            merge_block(buffers, side, block)
        else:
            _remove_obsolete(buffers, 1 - side, limit, regions.keep[side, 0], tally)
            _append_event(buffers, side, block)
        sample_lengths(tally, buffers.ends)
    return at, left_out, right_out


@compiled
def _remove_obsolete(buffers, side, limit, keep, tally):
    """Let go of obsolete events of an unsorted buffer; the last event takes the place of each."""
    keys, shapes, numbers = (
        buffers.keys[side, 0],
        buffers.shapes[side, 0],
        buffers.numbers[side, 0],
    )
    t, stop = buffers.ends[side, 0]
    before = stop
    while t < stop:
        if keys[t] - limit < keep:
            stop -= 1
            keys[t] = keys[stop]
            shapes[t] = shapes[stop]
            numbers[t] = numbers[stop]
        else:
            t += 1
    buffers.ends[side, 0, 1] = stop
    tally[INVALIDATED + side] += before - stop


@compiled
def _append_event(buffers, side, block):
    at = buffers.ends[side, 0, 1]
    buffers.keys[side, 0, at] = block.keys[0]
    buffers.shapes[side, 0, at] = block.shapes[0]
    buffers.numbers[side, 0, at] = block.numbers[0]
    buffers.ends[side, 0, 1] = at + 1


@compiled
def let_go_unsorted(buffers, progress, regions, rules, tally):
    """Let go of obsolete events on both sides of unsorted buffers."""
    for side in (LEFT, RIGHT):
        if progress.clock[1 - side] != NEVER:
            limit = base_limit(progress, rules.delays, 1 - side)
            _remove_obsolete(buffers, side, limit, regions.keep[1 - side, 0], tally)


@compiled(allocates=True)
def correlate_eagerly(
    batch, buffers, progress, regions, rules, tally, response, late, left_out, right_out
):
    """Eager timing correlation, Lee & Lee (2010), Algorithm 2."""
    at = np.int64(0)
    block, ranges = block_of_one(), new_ranges(np.int64(1))
    for i in range(batch.sides.size):
        if not admit(i, batch, progress, rules.delays, tally, late):
            continue
        side = np.int64(batch.sides[i])
        load_event(block, i, batch, progress)
        at, left_out, right_out = correlate_ranges(
            side, block, ranges, False, buffers, regions, rules, now_of(progress), tally,
            response, left_out, right_out, at,
        )  # fmt: skip
        limit = base_limit(progress, rules.delays, side)
        invalidate(buffers, 1 - side, limit, regions.keep[side], tally)
        merge_block(buffers, side, block)
        sample_lengths(tally, buffers.ends)
    return at, left_out, right_out
