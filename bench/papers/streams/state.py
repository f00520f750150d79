"""What a correlator keeps, shared by the backends: events not yet processed, arrivals, live blocks."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from coincide.model.classes import ShapeClasses
from coincide.model.compiled import compiled
from coincide.model.sides import LEFT, RIGHT
from coincide.model.units import TIME_LIMIT

SMALLEST = 1024
"""Events for which there is room at least."""
_WASTEFUL = 8


def new_waiting(capacity: int = SMALLEST) -> Waiting:
    """Room for events that wait."""
    return Waiting(*(np.empty((2, capacity), np.int64) for _ in range(3)))


def new_progress() -> Progress:
    """Before the first event."""
    return Progress(
        np.full(2, NEVER, np.int64),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.full(1, NEVER, np.int64),
    )


def roomy_waiting(waiting: Waiting, progress: Progress, extra: int) -> Waiting:
    """Room for `extra` more events that wait: the same if there is room, and not far too much of it."""
    used, capacity = int(progress.waiting.max()), waiting.numbers.shape[1]
    if used + extra <= capacity and not is_wasteful(capacity, used + extra):
        return waiting
    roomy = new_waiting(max(SMALLEST, 2 * (used + extra)))
    for old, new in zip(waiting, roomy, strict=True):
        new[:, :used] = old[:, :used]
    return roomy


def is_wasteful(capacity: int, needed: int) -> bool:
    """Whether room is left over from a burst, which would otherwise be held for ever."""
    return capacity > SMALLEST and capacity > _WASTEFUL * needed


NEVER = -TIME_LIMIT
"""A clock that has not begun."""

(
    EVALUATIONS,
    SURE,
    HITS,
    PAIRS,
    SAMPLES,
    INVALIDATED,
    LATE,
    BUFFER_SUM,
    BUFFER_MAX,
) = (0, 1, 2, 3, 4, 5, 7, 9, 11)
"""Entries of a tally. From INVALIDATED on, one for each side."""
TALLY_SIZE = 13

RESPONSE_SUM, RESPONSE_MAX = range(2)
"""Entries of the response times."""


class Waiting(NamedTuple):
    """Events that wait for the next re-evaluation, in order of arrival; `Progress` has their number."""

    max_times: np.ndarray  # int64, shape (2, capacity): ticks
    shapes: np.ndarray  # int64, shape (2, capacity): as the timestamps' model gives them
    numbers: np.ndarray  # int64, shape (2, capacity): arrival numbers


class Progress(NamedTuple):
    """How far the streams have come."""

    clock: np.ndarray  # int64, shape (2,)
    arrived: np.ndarray  # int64, shape (2,): events arrived, and those not yet processed
    waiting: np.ndarray  # int64, shape (2,): events arrived, and those not yet processed
    evaluated_at: np.ndarray  # int64, shape (1,): time of the last re-evaluation, ticks


class Rules(NamedTuple):
    """The options that kernels need."""

    pair_rule: Any  # Decides pairs: `coincide.model.timestamps.protocol.Rule`
    lookup: bool  # Whether a look-up table may spare evaluations
    certain: float  # The probability from which on it may: `StreamModel.certainty`
    delays: np.ndarray  # int64, shape (2,): ticks
    block: int  # The re-evaluation condition: events of a side, ticks
    every: int  # The re-evaluation condition: events of a side, ticks
    pairs: bool  # Whether to write pairs, or only count them
    response: bool  # Whether to note response times


class Regions(NamedTuple):
    """Where the targets of a base event lie, per base side, class of the base and class of targets."""

    bands: np.ndarray  # int64, shape (2, K1, K2, 4)
    tops: np.ndarray  # int64, shape (2, K1): largest shape of each class of a base side
    target_tops: np.ndarray  # int64, shape (2, K2): largest shape of each class of a side's targets
    keep: np.ndarray  # int64, shape (2, K2)


class LiveEvents(NamedTuple):
    """The live events of one side, by class, ascending by key within."""

    keys: np.ndarray  # int64, shape (n,)
    shapes: np.ndarray  # int64, shape (n,)
    numbers: np.ndarray  # int64, shape (n,): arrival numbers
    offsets: np.ndarray  # int64, shape (K + 1,): first event of each class


class Due(NamedTuple):
    """What a block is correlated with once it is due, and what is written then."""

    waiting: Waiting
    progress: Progress  # written
    regions: Regions
    rules: Rules
    tally: np.ndarray  # int64, shape (TALLY_SIZE,), added to
    response: np.ndarray  # float64, shape (2,), added to
    left_out: np.ndarray  # int64: room for pairs, of any size; empty if the rules ask for counts
    right_out: np.ndarray  # int64: as `left_out`


Deferred = Literal["lazy", "lookup", "classes"]
"""The algorithms that correlate a block at a time."""


class LiveBlockStep(Protocol):
    """The live events of both sides, wherever they are kept.

    A method that raises MemoryError has changed nothing, but for `evaluate`, whose backend says.
    """

    @property
    def counts(self) -> np.ndarray:
        """Live events, left and right: int64 array, shape (2,)."""

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side: int64 array, shape (n,)."""

    def reserve(self, extra: int) -> None:
        """Have room for `extra` more events a class, and give back what is far too much."""

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> LiveBlockStep:
        """The same events in other classes, of the left and the right side."""

    def evaluate(self, due: Due) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait, keep them, and let go of obsolete ones."""
        # The number of pairs, and `left_out` and `right_out`, or larger ones.

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events; writes the tally."""

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory."""


ON_TIME = -1
"""Entry of a list of late events' numbers for an event that is not late."""


@compiled(forceinline=True)
def admit(i, batch, progress, delays, tally, late):
    """Let event i of a batch arrive: whether it is in time."""
    # The clock of its side moves to its arrival instant, or to its max_time if it has none. The
    # event is late if its max_time is more than the delay below the clock.
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
def now_of(progress):
    """The streams' time: the later of the two clocks, ticks."""
    return max(progress.clock[LEFT], progress.clock[RIGHT])


@compiled
def wait_for_block(start, batch, live, waiting, progress, rules, tally, late):
    """Put events aside until re-evaluation is due, Lee & Lee (2010), Algorithm 4."""
    left = live[LEFT] + progress.waiting[LEFT]
    right = live[RIGHT] + progress.waiting[RIGHT]
    samples, left_sum, right_sum = 0, 0, 0
    due = False
    i = start
    while i < batch.sides.size and not due:
        if admit(i, batch, progress, rules.delays, tally, late):
            due = _put_aside(i, batch, waiting, progress) >= rules.block
            due = due or _time_is_up(progress, rules.every)
            # Nothing leaves the buffers here, so the last lengths are the largest.
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
