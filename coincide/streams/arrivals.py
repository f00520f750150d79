"""Arrivals: clocks, numbers, late events, and the re-evaluation condition of the lazy algorithms."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.sides import LEFT, RIGHT
from coincide.streams.shared import BUFFER_MAX, BUFFER_SUM, LATE, NEVER, SAMPLES

ON_TIME = -1
"""Entry of a list of late events' numbers for an event that is not late."""


@compiled(forceinline=True)
def admit(i, batch, progress, delays, tally, late):
    """Let event i of a batch arrive: whether it is in time.

    The clock of its side moves to its arrival instant, or to its max_time if it has none. The event is
    late if its max_time is more than the delay below the clock.
    """
    side = batch.sides[i]
    instant = batch.arrival[i] if batch.arrival.size else batch.max_time[i]
    progress.clock[side] = max(progress.clock[side], instant)
    progress.arrived[side] += 1
    if batch.max_time[i] < progress.clock[side] - delays[side]:
        tally[LATE + side] += 1
        late[i] = progress.arrived[side] - 1
        return False
    return True


@compiled(forceinline=True)
def sample_lengths(tally, left, right):
    """Note the lengths of both buffers after an arrival."""
    tally[SAMPLES] += 1
    tally[BUFFER_SUM + LEFT] += left
    tally[BUFFER_SUM + RIGHT] += right
    tally[BUFFER_MAX + LEFT] = max(tally[BUFFER_MAX + LEFT], left)
    tally[BUFFER_MAX + RIGHT] = max(tally[BUFFER_MAX + RIGHT], right)


@compiled(forceinline=True)
def now_of(progress):
    """The streams' time: the later of the two clocks, ticks."""
    return max(progress.clock[LEFT], progress.clock[RIGHT])


@compiled(forceinline=True)
def live_events(buffers, side):
    """Events in the buffers of a side."""
    live = 0
    for k in range(buffers.ends.shape[1]):
        live += buffers.ends[side, k, 1] - buffers.ends[side, k, 0]
    return live


@compiled(allocates=True)
def live_counts(buffers):
    """Events in the buffers of both sides: int64 array, shape (2,)."""
    return np.array([live_events(buffers, LEFT), live_events(buffers, RIGHT)])


@compiled
def wait_for_block(start, batch, live, waiting, progress, rules, tally, late):
    """Put events aside until re-evaluation is due, Lee & Lee (2010), Algorithm 4.

    Parameters
    ----------
    start : int64
        First event of the batch to take.
    batch : Batch
    live : int64 array, shape (2,)
        Events in the buffers.
    waiting : Waiting, written
        With room for the rest of the batch.
    progress : Progress, written
    rules : Rules
    tally : int64 array, written
    late : int64 array, shape (n,), written
        Arrival numbers of late events.

    Returns
    -------
    int64
        First event not taken.
    bool
        Whether re-evaluation is due.
    """
    left = live[LEFT] + progress.waiting[LEFT]
    right = live[RIGHT] + progress.waiting[RIGHT]
    samples, left_sum, right_sum = 0, 0, 0
    due = False
    i = start
    while i < batch.sides.size and not due:
        if admit(i, batch, progress, rules.delays, tally, late):
            due = _put_aside(i, batch, waiting, progress) >= rules.block
            due = due or _time_is_up(progress, rules.every)
            # As `sample_lengths`; nothing leaves the buffers here, so the last lengths are the largest.
            left += batch.sides[i] == LEFT
            right += batch.sides[i] == RIGHT
            samples += 1
            left_sum += left
            right_sum += right
        i += 1
    tally[SAMPLES] += samples
    for side, total, longest in ((LEFT, left_sum, left), (RIGHT, right_sum, right)):
        tally[BUFFER_SUM + side] += total
        tally[BUFFER_MAX + side] = max(tally[BUFFER_MAX + side], longest)
    return i, due


@compiled(forceinline=True)
def _put_aside(i, batch, waiting, progress):
    """Let event i of a batch wait: how many of its side do."""
    side = batch.sides[i]
    at = progress.waiting[side]
    waiting.max_times[side, at] = batch.max_time[i]
    waiting.shapes[side, at] = batch.shapes[i]
    waiting.numbers[side, at] = progress.arrived[side] - 1
    progress.waiting[side] = at + 1
    return at + 1


@compiled(forceinline=True)
def _time_is_up(progress, every):
    now = now_of(progress)
    if progress.evaluated_at[0] == NEVER:
        progress.evaluated_at[0] = now
    return now - progress.evaluated_at[0] >= every


@compiled
def base_limit(progress, delays, side):
    """Twice the smallest max_time that can still arrive on a side: the max(e_inv) of the papers."""
    return 2 * max(progress.clock[side] - delays[side], NEVER)
