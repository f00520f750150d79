"""The interface of all stream correlators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import index

import numpy as np
import numpy.typing as npt

from cpu_fallback.streams.intake import Batch, Events, checked_batch, declared_lengths
from cpu_fallback.streams.kernels.arrivals import ON_TIME
from cpu_fallback.streams.options import StreamOptions
from cpu_fallback.streams.output import PairRoom
from cpu_fallback.streams.region_tables import Regions
from cpu_fallback.streams.results import LateEvents, Matches, joined_late, joined_matches
from cpu_fallback.streams.sides import LEFT, RIGHT, side_index
from cpu_fallback.streams.state import Buffers, Rules, new_buffers, new_progress
from cpu_fallback.streams.statistics import (
    LATE,
    PAIRS,
    StreamStats,
    new_tally,
    stats_of,
)
from event_model.bands import guard
from event_model.errors import ConditionError, DataError
from event_model.probability import DECISION_SLACK
from event_model.units import TIME_LIMIT

_MOST_AT_ONCE = 1 << 14
_UNLIMITED = 2**63 - 1
_NOTHING = np.empty(0, np.int64)


class StreamCorrelator(ABC):
    """Takes events of two streams in, block by block, and gives pairs out.

    Made by `stream_correlator`. An event may come out of order, up to its side's delay: it is *late*
    when its max_time is more than the delay below the clock of its side, which is the latest arrival
    instant so far. Late events take no part and can be had from `take_late`. All others are paired as
    in a batch join of the two streams, each pair being given out once.

    Parameters
    ----------
    options : StreamOptions
    regions : Regions
    """

    def __init__(self, options: StreamOptions, regions: Regions) -> None:
        self.options = options
        self._regions = regions
        self._rules = _rules(options)
        self._lengths = declared_lengths(options.limits)
        self._buffers: Buffers = new_buffers(1)
        self._progress = new_progress()
        self._tally = new_tally()
        self._response = np.zeros(2)
        self._room = PairRoom()
        self._late: tuple[list[LateEvents], list[LateEvents]] = ([], [])
        self._closed = False

    def push(self, side: str, events: Events, *, arrival: npt.ArrayLike | None = None) -> Matches:
        """Take in a block of events of one side.

        Parameters
        ----------
        side : {"left", "right"}
        events : IntervalEvents or (min_time, max_time)
            In order of arrival; int64 arrays of shape (n,), ticks. May be empty.
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
            If an event has min_time above max_time, a time beyond 2**61 ticks, or a length outside the
            declared limits; if arrival instants go back; after `flush`. Nothing of the block is taken.
        """
        return self._push(side_index(side), events, arrival)

    def push_mixed(
        self, sides: npt.ArrayLike, events: Events, *, arrival: npt.ArrayLike | None = None
    ) -> Matches:
        """As `push`, for events of both sides as they arrive among each other.

        Parameters
        ----------
        sides : array of int, shape (n,)
            0 for left, 1 for right.
        events, arrival
            As `push`.
        """
        return self._push(sides, events, arrival)

    def advance(self, time: int) -> Matches:
        """Let time pass on both sides without events: nothing arrives before `time` any more.

        A heartbeat, for streams that fall silent: what is due is re-evaluated, what is obsolete goes.

        Parameters
        ----------
        time : int
            Ticks. Earlier than the clocks: nothing happens.

        Raises
        ------
        ConditionError
            If `time` is no int below 2**61 ticks.
        DataError
            After `flush`.
        """
        self._check_open()
        if (
            isinstance(time, bool)
            or not hasattr(time, "__index__")
            or abs(index(time)) >= TIME_LIMIT
        ):
            raise ConditionError(f"time must be an int below 2^61 ticks; found {time!r}")
        np.maximum(self._progress.clock, index(time), out=self._progress.clock)
        return self._time_passed()

    def flush(self) -> Matches:
        """The pairs that still wait. After this nothing more can be pushed."""
        if self._closed:
            return joined_matches([])
        self._closed = True
        return self._finish()

    def take_late(self, side: str) -> LateEvents:
        """The late events of a side since they were last taken."""
        lots = self._late[side_index(side)]
        late = joined_late(lots)
        lots.clear()
        return late

    @property
    def stats(self) -> StreamStats:
        """What was looked at, found and kept so far."""
        return stats_of(self._tally, self._response, self._progress.arrived)

    @abstractmethod
    def _take(self, batch: Batch, late: np.ndarray) -> list[Matches]:
        """Let a batch of limited size arrive; note the numbers of late events."""

    @abstractmethod
    def _time_passed(self) -> Matches:
        """What follows from the clocks having moved without an event."""

    @abstractmethod
    def _finish(self) -> Matches:
        """The pairs that still wait."""

    def _push(
        self, sides: npt.ArrayLike | int, events: Events, arrival: npt.ArrayLike | None
    ) -> Matches:
        self._check_open()
        batch = checked_batch(sides, events, arrival, self._lengths, self._progress.clock)
        found: list[Matches] = []
        for start in range(0, batch.sides.size, _MOST_AT_ONCE):
            part = Batch(*(array[start : start + _MOST_AT_ONCE] for array in batch))
            before = self._tally[LATE] + self._tally[LATE + 1]
            late = np.full(part.sides.size, ON_TIME, np.int64)
            found += self._take(part, late)
            if self._tally[LATE] + self._tally[LATE + 1] > before:
                self._keep_late(part, late)
        return joined_matches(found)

    def _check_open(self) -> None:
        if self._closed:
            raise DataError(
                "this correlator has been flushed and takes no more events; make a new one with"
                " stream_correlator"
            )

    def _keep_late(self, batch: Batch, late: np.ndarray) -> None:
        for side in (LEFT, RIGHT):
            rows = np.flatnonzero((late != ON_TIME) & (batch.sides == side))
            if rows.size:
                self._late[side].append(
                    LateEvents(late[rows], batch.min_time[rows], batch.max_time[rows])
                )

    def _space(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the pairs of one kernel's run."""
        return self._room.take() if self._rules.pairs else (_NOTHING, _NOTHING)

    def _result(self, count: int, left: np.ndarray, right: np.ndarray) -> Matches:
        self._tally[PAIRS] += count
        if not self._rules.pairs:
            return Matches(count, _NOTHING, _NOTHING)
        return self._room.give(count, left, right)


def _rules(options: StreamOptions) -> Rules:
    window, limits = options.window, options.limits
    threshold = window.confidence - DECISION_SLACK
    longest = limits[LEFT].longest, limits[RIGHT].longest
    return Rules(
        lo=window.lo,
        hi=window.hi,
        threshold=threshold,
        certain=min(threshold + guard(*longest), 1.0),
        one_tail=window.width >= sum(longest),
        delays=np.array([side.delay for side in limits], np.int64),
        block=options.block or _UNLIMITED,
        every=options.every or _UNLIMITED,
        pairs=options.emit == "pairs",
    )
