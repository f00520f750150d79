"""The interface of all stream correlators, and those that wait for a block."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from operator import index
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from bench.papers.streams.intake import Batch
from bench.papers.streams.models import StreamOptions, key_regions, max_time_regions, one_class
from bench.papers.streams.results import (
    Late,
    Matches,
    PairRoom,
    StreamStats,
    joined_late,
    joined_matches,
    new_response,
    new_tally,
    stats_of,
)
from bench.papers.streams.state import (
    LATE,
    ON_TIME,
    PAIRS,
    Deferred,
    Due,
    LiveBlockStep,
    Regions,
    Rules,
    new_progress,
    new_waiting,
    roomy_waiting,
    wait_for_block,
)
from coincide.model.classes import ShapeClasses
from coincide.model.errors import ConditionError, DataError, argument
from coincide.model.sides import LEFT, RIGHT, side_index
from coincide.model.units import TIME_LIMIT

_MOST_AT_ONCE = 1 << 14
_UNLIMITED = 2**63 - 1
_NOTHING = np.empty(0, np.int64)


class StreamCorrelator(ABC):
    """Takes events of two streams in, block by block, and gives pairs out.

    Made by `stream_correlator`. An event may come out of order, up to its side's delay: it is *late*
    when its max_time is more than the delay below the clock of its side, which is the latest arrival
    instant so far. Late events take no part and can be had from `take_late`. All others are paired as
    in a batch join of the two streams, each pair being given out once.

    Calls from several threads are taken one after the other. If an exception such as MemoryError or
    KeyboardInterrupt ends a call, what was found and taken before it is kept: the pairs come with the
    next call that returns, and the events not yet taken, which are those of each side from
    ``stats.arrived`` on, can be pushed again. Where it leaves events half correlated, every later push,
    advance and flush raises DataError.

    Parameters
    ----------
    options : StreamOptions
    regions : Regions
    """

    def __init__(self, options: StreamOptions, regions: Regions) -> None:
        self.options = options
        self._regions = regions
        self._intake = options.model.intake(options.limits)
        self._rules = _rules(options, self._intake.rule)
        self._progress = new_progress()
        self._tally = new_tally()
        self._response = new_response()
        self._room = PairRoom()
        self._pending: list[Matches] = []
        self._late: tuple[list[Any], list[Any]] = ([], [])
        self._closed = False
        # True while a kernel runs that leaves half-correlated events behind if it does not end.
        self._halfway = False
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        # A copy of its own, since the arrays are written into as soon as the lock is let go.
        with self._lock:
            return deepcopy({k: v for k, v in vars(self).items() if k != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def push(self, side: str, events: Any, *, arrival: npt.ArrayLike | None = None) -> Matches:
        """Take in a block of events of one side.

        Parameters
        ----------
        side : {"left", "right"}
        events : IntervalEvents, HistogramEvents, (min_time, max_time), or (max_time, template)
            In order of arrival: of a side of intervals their ends, of a side of histograms max_times and
            numbers of templates. int64 arrays of shape (n,), ticks. May be empty.
        arrival : int64 array, shape (n,), optional
            Arrival instants, ticks, not going back. If not given, an event arrives at the largest
            max_time that its side has seen.

        Returns
        -------
        Matches
            The pairs that this made final.

        Raises
        ------
        ConditionError
            If the side is unknown.
        SchemaError
            If the arrays are not one-dimensional arrays of integers of equal size.
        DataError
            If an entry is null; if an event has min_time above max_time, a time beyond 2**61 ticks, a
            length outside the declared limits, or a template that its side does not have; if arrival
            instants go back; after `flush`. Nothing of the block is taken.
        MemoryBudgetError
            If more different lengths come with templates than `most_lengths`. Nothing is taken.

        Notes
        -----
        A large block is taken in parts. If another exception ends the push between them, see
        `StreamCorrelator`: the first ``stats.arrived`` events of the side are taken, late ones
        included, and no others.
        """
        number = side_index(side)
        with self._lock:
            self._check_open()
            clock = self._progress.clock
            return self._push(self._intake.one_sided(number, events, arrival, clock))

    def push_mixed(
        self, sides: npt.ArrayLike, events: Any, *, arrival: npt.ArrayLike | None = None
    ) -> Matches:
        """As `push`, for events of both sides as they arrive among each other.

        Parameters
        ----------
        sides : array of int, shape (n,)
            0 for left, 1 for right.
        events, arrival
            As `push`. Where one side has intervals and the other one histograms: a pair (left events,
            right events), each of which is as `push` takes it.
        """
        with self._lock:
            self._check_open()
            clock = self._progress.clock
            return self._push(self._intake.mixed(sides, events, arrival, clock))

    def advance(self, time: int, side: str | None = None) -> Matches:
        """Let time pass without events: nothing arrives before `time` any more.

        A heartbeat, for streams that fall silent. Whatever waits is re-evaluated, whether or not it is
        due; then what is obsolete goes.

        Parameters
        ----------
        time : int
            Ticks. A clock that is later already stays.
        side : {"left", "right"}, optional
            Whose clock moves; the events of the other side are no later for it. None: both.

        Returns
        -------
        Matches
            The pairs that this made final.

        Raises
        ------
        ConditionError
            If `time` is no int below 2**61 ticks, or the side is unknown.
        DataError
            After `flush`.
        """
        sides = slice(None) if side is None else slice(number := side_index(side), number + 1)
        if (
            isinstance(time, bool)
            or not hasattr(time, "__index__")
            or abs(index(time)) >= TIME_LIMIT
        ):
            raise ConditionError(
                f"{argument('time')} must be an int below 2^61 ticks (found {time!r})."
            )
        with self._lock:
            self._check_open()
            clocks = self._progress.clock[sides]
            np.maximum(clocks, index(time), out=clocks)
            self._time_passed()
            self._fit()
            return self._given_out()

    def flush(self) -> Matches:
        """The pairs that still wait. After this nothing more can be pushed."""
        with self._lock:
            self._check_whole()
            self._finish()
            found = self._given_out()
            self._closed = True
            return found

    def take_late(self, side: str) -> Late:
        """The late events of a side since they were last taken; they are kept until then.

        `LateEvents` of intervals, `LateHistogramEvents` of histograms, both as they were pushed.
        """
        number = side_index(side)
        lots = self._late[number]
        with self._lock:
            late = joined_late([self._intake.late(number, _NOTHING, _NOTHING, _NOTHING), *lots])
            lots.clear()
            return late

    @property
    def stats(self) -> StreamStats:
        """What was looked at, found and kept so far."""
        with self._lock:
            response = self._response if self._rules.response else None
            return stats_of(self._tally, response, self._progress.arrived)

    @abstractmethod
    def _take(self, batch: Batch, late: np.ndarray) -> None:
        """Let a batch of limited size arrive; note the numbers of late events."""

    @abstractmethod
    def _time_passed(self) -> None:
        """What follows from the clocks having moved without an event."""

    @abstractmethod
    def _finish(self) -> None:
        """Find the pairs that still wait."""

    @abstractmethod
    def _fit(self) -> None:
        """Take memory back that obsolete events have left."""

    def _push(self, batch: Batch) -> Matches:
        if self._intake.rule is not self._rules.pair_rule:
            self._rules = self._rules._replace(pair_rule=self._intake.rule)
        for start in range(0, batch.sides.size, _MOST_AT_ONCE):
            part = Batch(*(array[start : start + _MOST_AT_ONCE] for array in batch))
            before = self._tally[LATE] + self._tally[LATE + 1]
            late = np.full(part.sides.size, ON_TIME, np.int64)
            try:
                self._take(part, late)
            finally:
                # What has arrived when something goes wrong has arrived, and is not pushed again.
                if self._tally[LATE] + self._tally[LATE + 1] > before:
                    self._keep_late(part, late)
        return self._given_out()

    def _check_whole(self) -> None:
        if self._halfway:
            raise DataError(
                "an exception ended an earlier call while it correlated events, so pairs may be"
                " missing. Make a new correlator with stream_correlator, and push the events"
                " again."
            )

    def _check_open(self) -> None:
        self._check_whole()
        if self._closed:
            raise DataError(
                "this correlator was flushed and takes no more events. Make a new one with"
                " stream_correlator."
            )

    def _keep_late(self, batch: Batch, late: np.ndarray) -> None:
        for side in (LEFT, RIGHT):
            rows = np.flatnonzero((late != ON_TIME) & (batch.sides == side))
            if rows.size:
                given = late[rows], batch.max_time[rows], batch.shapes[rows]
                self._late[side].append(self._intake.late(side, *given))

    def _space(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the pairs of one kernel's run."""
        return self._room.take() if self._rules.pairs else (_NOTHING, _NOTHING)

    def _keep(self, count: int, left: np.ndarray, right: np.ndarray) -> None:
        """Keep the pairs of one kernel's run until a call can return them."""
        if self._rules.pairs:
            self._pending.append(self._room.give(count, left, right))
        else:
            self._pending.append(Matches(count, _NOTHING, _NOTHING))
        self._tally[PAIRS] += count

    def _given_out(self) -> Matches:
        # Joined first: if there is no memory for that, they stay.
        found = joined_matches(self._pending)
        self._pending = []
        return found


def _rules(options: StreamOptions, rule: Any) -> Rules:
    certain = options.model.certainty(*(one_class(side) for side in options.limits))
    return Rules(
        pair_rule=rule,
        lookup=certain is not None,
        certain=np.inf if certain is None else certain,
        delays=np.array([side.delay for side in options.limits], np.int64),
        block=min(options.block or _UNLIMITED, _UNLIMITED),
        every=min(options.every or _UNLIMITED, _UNLIMITED),
        pairs=options.gives_pairs,
        response=options.response,
    )


ENOUGH = 256
"""Events of a side to see before its shapes are cut into classes."""


class LazyCorrelator(StreamCorrelator):
    """Correlates a block of events at a time, Lee & Lee (2010), Algorithms 4 and 5.

    Or, with live blocks that use a look-up table, Algorithms 6 and 7.
    """

    def __init__(
        self, options: StreamOptions, live: LiveBlockStep, regions: Regions | None = None
    ) -> None:
        super().__init__(options, max_time_regions(options) if regions is None else regions)
        self._live = live
        self._waiting = new_waiting()

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._waiting = roomy_waiting(self._waiting, self._progress, batch.sides.size)
        start = 0
        while start < batch.sides.size:
            given = (start, batch, self._live.counts, self._waiting, self._progress, self._rules)
            start, due = wait_for_block(*given, self._tally, late)
            if due:
                self._evaluate()

    def _time_passed(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()
        else:
            self._live.let_go(self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()

    def _fit(self) -> None:
        self._live.reserve(0)
        self._waiting = roomy_waiting(self._waiting, self._progress, 0)

    def _evaluate(self) -> None:
        self._live.reserve(int(self._progress.waiting.max()))
        given = (self._waiting, self._progress, self._regions, self._rules)
        due = Due(*given, self._tally, self._response, *self._space())
        self._halfway = True
        self._keep(*self._live.evaluate(due))
        self._halfway = False


class ClassedCorrelator(LazyCorrelator):
    """The lazy algorithm with classes, on the axis of keys: of intervals, doubled midpoints.

    Classes are cut once some hundred events of a side were seen; they change the work, never the
    answer.
    """

    def __init__(self, options: StreamOptions, live: LiveBlockStep) -> None:
        self._classes = (one_class(options.limits[LEFT]), one_class(options.limits[RIGHT]))
        self._is_cut = [False, False]
        super().__init__(options, live, key_regions(options, self._classes))

    def _evaluate(self) -> None:
        if not all(self._is_cut):
            self._cut_classes()
        super()._evaluate()

    def _cut_classes(self) -> None:
        cut = (self._cut(LEFT), self._cut(RIGHT))
        is_new = [new is not old for new, old in zip(cut, self._classes, strict=True)]
        if not any(is_new):
            return
        regions = key_regions(self.options, cut)
        live = self._live.reclassed(cut)
        self._halfway = True
        self._classes, self._regions, self._live = cut, regions, live
        self._is_cut = [was or new for was, new in zip(self._is_cut, is_new, strict=True)]
        self._halfway = False

    def _cut(self, side: int) -> ShapeClasses:
        """The classes of a side, cut now if it is time."""
        waiting = int(self._progress.waiting[side])
        if self._is_cut[side] or self._live.counts[side] + waiting < ENOUGH:
            return self._classes[side]
        seen = np.concatenate([self._live.shapes(side), self._waiting.shapes[side, :waiting]])
        limits = self.options.limits[side]
        bounds = limits.shortest, limits.longest
        return self.options.model.stream_classes(side, seen, self.options.classes, bounds)


DEFERRED = get_args(Deferred)
"""The paper's Lazy and Lazy with look-up; then lazy with classes."""

MakeLive = Callable[[Deferred], LiveBlockStep]
"""Makes the live blocks of an algorithm."""


def deferred_correlator(
    algorithm: str, options: StreamOptions, live_blocks: MakeLive
) -> StreamCorrelator:
    """A correlator of a block at a time; `live_blocks` is the backend."""
    if algorithm == "lookup" and not options.model.shape_is_length:
        raise ConditionError(
            "the look-up table works for intervals on both sides only, as it concludes from their"
            " lengths (Lee & Lee (2010), Corollary 2). Use 'lazy' or 'classes' with templates."
        )
    live = live_blocks(cast(Deferred, algorithm))
    return (ClassedCorrelator if algorithm == "classes" else LazyCorrelator)(options, live)
