"""One watch for each region and stream: an event opens it, and the next one, or the clock, decides it.

Tran-Seq (section 6.4 of the BMQ paper) as arrays. Its two windows, of I and of O events, hold at most
one event of a query and stream, the last; here the windows are one array of such events.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from coincide.region_transitions.decision import DwellRule, decide_dwells, decide_waits
from coincide.region_transitions.kinds import STAYS

Repeated = Literal["raise", "first", "last"]
"""What to do with an event of the kind of the one before it."""

REPEATED: tuple[str, ...] = get_args(Repeated)


class Crossings(NamedTuple):
    """Events, in any order or the order that a function asks for.

    Parameters
    ----------
    kind : int8 array, shape (n,)
        `coincide.borders.crossings.OUT` or ``IN``.
    min_time, max_time : int64 arrays, shape (n,)
        Ticks.
    latest : int64 array, shape (n,)
        The largest doubled midpoint of the query and stream, up to this event: half ticks.
    told : bool array, shape (n,)
        Whether the stay that this event begins was given out already.
    """

    kind: np.ndarray
    min_time: np.ndarray
    max_time: np.ndarray
    latest: np.ndarray
    told: np.ndarray

    @classmethod
    def of(cls, kind: np.ndarray, min_time: np.ndarray, max_time: np.ndarray) -> Crossings:
        """New events."""
        return cls(kind, min_time, max_time, min_time + max_time, np.zeros(kind.size, bool))

    def rows(self, index: np.ndarray) -> Crossings:
        """Some of them, copied: an int64 or bool array."""
        return Crossings(*(column[index] for column in self))

    def with_inserted(self, before: np.ndarray, others: Crossings) -> Crossings:
        """These and others, each of which goes before one of these: int64 array, ascending."""
        return Crossings(
            *(np.insert(own, before, new) for own, new in zip(self, others, strict=True))
        )


class Found(NamedTuple):
    """Region transition events, as rows of the events that begin them.

    Parameters
    ----------
    row : int64 array, shape (m,)
        Which event begins it.
    transition : int8 array, shape (m,)
        A position in `coincide.region_transitions.kinds.TRANSITIONS`.
    min_time, max_time : int64 arrays, shape (m,)
        When it happened: of a transition the second event, of a stay the first one and t, ticks.
    neither, both : int
        Dwell times of which nothing qualifies, and those that are told as a transition and as a stay.
    """

    row: np.ndarray
    transition: np.ndarray
    min_time: np.ndarray
    max_time: np.ndarray
    neither: int = 0
    both: int = 0


def repeats(keys: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Which events are of the kind of the one before them: bool array, shape (n,).

    Parameters
    ----------
    keys, kind : arrays, shape (n,)
        Of events in order, those of equal keys next to each other.
    """
    same = np.zeros(keys.size, bool)
    same[1:] = (keys[1:] == keys[:-1]) & (kind[1:] == kind[:-1])
    return same


def first_of_each(keys: np.ndarray) -> np.ndarray:
    """The first row of each run of equal keys: int64 array."""
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])


def last_of_each(keys: np.ndarray) -> np.ndarray:
    """The last row of each run of equal keys: int64 array."""
    return np.flatnonzero(np.append(keys[1:] != keys[:-1], True)[: keys.size])


def decided_by_the_next(keys: np.ndarray, events: Crossings, rule: DwellRule) -> Found:
    """What successive events say of each other.

    A repeated event ends the watch before it: a stay if it came late enough, and never a transition.

    Parameters
    ----------
    keys : int64 array, shape (n,)
    events : Crossings
        In order, those of equal keys next to each other.
    rule : DwellRule
    """
    first = np.flatnonzero(keys[1:] == keys[:-1])
    second = first + 1
    short, long = decide_dwells(
        events.min_time[first], events.max_time[first],
        events.min_time[second], events.max_time[second], rule.within, rule.threshold,
    )  # fmt: skip
    alternate = events.kind[first] != events.kind[second]
    short &= alternate
    told = events.told[first]
    neither = int((alternate & ~(short | long | told)).sum())
    both = int((short & (long | told)).sum())
    # A stay comes true before a transition does: where both qualify it is given out first.
    which = np.flatnonzero(np.column_stack((long & ~told, short)).ravel())
    is_stay = which % 2 == 0
    row = first[which // 2]
    ends = row + ~is_stay
    delay = np.where(is_stay, rule.within, 0)
    return Found(
        row,
        (events.kind[row] + STAYS * is_stay).astype(np.int8),
        events.min_time[ends] + delay,
        events.max_time[ends] + delay,
        neither,
        both,
    )


def decided_by_the_clock(events: Crossings, until: int, rule: DwellRule) -> Found:
    """The stays of events that nothing followed, once all is known up to a time.

    Parameters
    ----------
    events : Crossings
    until : int
        No event is to come that could lie before it, ticks.
    rule : DwellRule
    """
    passed = decide_waits(events.min_time, events.max_time, until, rule.within, rule.threshold)
    row = np.flatnonzero(passed & ~events.told)
    return Found(
        row,
        (events.kind[row] + STAYS).astype(np.int8),
        events.min_time[row] + rule.within,
        events.max_time[row] + rule.within,
    )
