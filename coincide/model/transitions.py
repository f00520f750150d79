"""Region transitions (section 6.2 of the BMQ paper): watches, decisions on dwell times, ordering."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from coincide.model.borders.crossings import OUT
from coincide.model.compiled import compiled
from coincide.model.condition import Window
from coincide.model.ordering import ascends, stable_order
from coincide.model.probability import (
    DECISION_SLACK,
    one_sided_probability,
    trapezoid_cdf,
    window_probability,
)


class DwellRule(NamedTuple):
    """The decision on a dwell time: the longest one of a transition, ticks, and ct - 2^-50."""

    within: int  # The longest dwell time of a transition, ticks
    threshold: float  # The least probability that qualifies: ct − 2⁻⁵⁰

    @classmethod
    def of(cls, window: Window) -> DwellRule:
        """The rule of a timing condition within(0, t)."""
        return cls(window.hi, window.confidence - DECISION_SLACK)


@compiled
def dwell_probabilities(s: int, l1: int, l2: int, within: int) -> tuple[float, float]:
    """P(Δ <= within) and P(Δ > within), given Δ >= 0; s: max_second - max_first; l1, l2: lengths, ticks."""
    soon = window_probability(s, l1, l2, 0, within)
    late = 1.0 - one_sided_probability(s, l1, l2, within)
    if s >= l2:
        return soon, late
    in_order = 1.0 - trapezoid_cdf(-s, l1, l2)
    return soon / in_order, late / in_order


@compiled(allocates=True)
def decide_dwells(
    first_min: np.ndarray,
    first_max: np.ndarray,
    second_min: np.ndarray,
    second_max: np.ndarray,
    within: int,
    threshold: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Which of n pairs of successive events have a dwell time up to a limit, and which one above it."""
    short = np.empty(first_min.size, np.bool_)
    long = np.empty(first_min.size, np.bool_)
    for i in range(first_min.size):
        soon, late = dwell_probabilities(
            second_max[i] - first_max[i],
            first_max[i] - first_min[i],
            second_max[i] - second_min[i],
            within,
        )
        short[i] = soon >= threshold
        long[i] = late >= threshold
    return short, long


@compiled(allocates=True)
def decide_waits(
    first_min: np.ndarray, first_max: np.ndarray, until: int, within: int, threshold: float
) -> np.ndarray:
    """Which of n events lie further back than a limit: P(T_first + within < until) qualifies."""
    passed = np.empty(first_min.size, np.bool_)
    for i in range(first_min.size):
        length = first_max[i] - first_min[i]
        late = 1.0 - one_sided_probability(until - first_max[i], length, 0, within)
        passed[i] = late >= threshold
    return passed


STAYS = 2
"""Added to the kind of the first event (`coincide.model.borders.crossings`) where none followed in time."""

NO_EVENT = -1
"""In place of the row of an event where it has no row."""

TRANSITIONS = ("O>I", "I>O", "O>!I", "I>!O")
"""The word for each kind, in column `transition`: the paper's O▷I, I▷O, O▷¬I and I▷¬O."""


def time_order(midpoints: np.ndarray) -> np.ndarray | None:
    """A stable order by doubled midpoints: int64 array; None where they are in order."""
    return None if ascends(midpoints) else stable_order(midpoints)


NONE = -1
"""In place of the kind of an event where it has no kind."""


def alternating_order(
    keys: np.ndarray, midpoints: np.ndarray, kinds: np.ndarray, before: int
) -> np.ndarray:
    """The order of events whose rows have none of their own."""
    # The first event at one midpoint has the kind that the one before does not have. Where
    # none is before them, it has the kind that more of them have, and an I where there are as
    # many: a stream that is seen for the first time as it goes through a region comes from outside.
    # From there on kinds alternate as long as there are both, and those of one kind stay as they
    # come.
    order = np.empty(keys.size, np.int64)
    _alternate(keys, midpoints, kinds, before, order)
    return order


@compiled
def _alternate(
    keys: np.ndarray, midpoints: np.ndarray, kinds: np.ndarray, before: int, order: np.ndarray
) -> None:
    start, last = 0, before
    while start < keys.size:
        if start > 0 and keys[start] != keys[start - 1]:
            last = NONE
        stop = middle = start
        while (
            stop < keys.size and keys[stop] == keys[start] and midpoints[stop] == midpoints[start]
        ):
            if kinds[stop] == OUT:
                middle += 1
            stop += 1
        out, into = start, middle
        wants_in = stop - middle >= middle - start if last == NONE else last == OUT
        for place in range(start, stop):
            if into < stop and (wants_in or out == middle):
                order[place] = into
                into += 1
                wants_in = False
            else:
                order[place] = out
                out += 1
                wants_in = True
        last = kinds[order[stop - 1]]
        start = stop


Repeated = Literal["raise", "first", "last"]
"""What to do with an event of the kind of the one before it."""

REPEATED: tuple[str, ...] = get_args(Repeated)


class Crossings(NamedTuple):
    """Events: int8 kinds, times in ticks, and two of their query and stream.

    `latest`: the largest doubled midpoint up to the event; `told`: whether its stay was given out.
    """

    kind: np.ndarray  # int8, shape (n,): `coincide.model.borders.crossings.OUT` or ``IN``
    min_time: np.ndarray  # int64, shape (n,): ticks
    max_time: np.ndarray  # int64, shape (n,): ticks
    latest: np.ndarray  # int64, shape (n,)
    told: np.ndarray  # bool, shape (n,)

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


class Transitions(NamedTuple):
    """Region transitions: rows of the events that begin them, int8 places in `TRANSITIONS`, ticks."""

    row: np.ndarray  # int64, shape (m,): which event begins it
    next: np.ndarray  # int64, shape (m,): which event ends it; -1 where none is known
    transition: np.ndarray  # int8, shape (m,)
    min_time: np.ndarray  # int64, shape (m,)
    max_time: np.ndarray  # int64, shape (m,)
    neither: int = 0
    both: int = 0

    @classmethod
    def nothing(cls) -> Transitions:
        """None."""
        none = np.zeros(0, np.int64)
        return cls(none, none, none.astype(np.int8), none, none)

    def rows(self, taken: slice) -> Transitions:
        """A run of them, not copied; the numbers count all."""
        return self._replace(
            row=self.row[taken],
            next=self.next[taken],
            transition=self.transition[taken],
            min_time=self.min_time[taken],
            max_time=self.max_time[taken],
        )


def repeats(keys: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Which events have the kind of the one before them: bool array, shape (n,)."""
    same = np.zeros(keys.size, bool)
    same[1:] = (keys[1:] == keys[:-1]) & (kind[1:] == kind[:-1])
    return same


def first_of_each(keys: np.ndarray) -> np.ndarray:
    """The first row of each run of equal keys: int64 array."""
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: keys.size])


def last_of_each(keys: np.ndarray) -> np.ndarray:
    """The last row of each run of equal keys: int64 array."""
    return np.flatnonzero(np.append(keys[1:] != keys[:-1], True)[: keys.size])


def decided_by_the_next(keys: np.ndarray, events: Crossings, rule: DwellRule) -> Transitions:
    """What successive events say of each other: in order, those of equal keys next to each other."""
    # A repeated event ends the watch before it: a stay if it came late enough, and never a
    # transition.
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
    # What is seen inside twice has left in between, and nothing tells when.
    following = np.where(alternate[which // 2], row + 1, NO_EVENT)
    return Transitions(
        row,
        following,
        (events.kind[row] + STAYS * is_stay).astype(np.int8),
        events.min_time[ends] + delay,
        events.max_time[ends] + delay,
        neither,
        both,
    )


def decided_by_the_clock(events: Crossings, until: int, rule: DwellRule) -> Transitions:
    """The stays of events that nothing followed, once all is known up to a time."""
    passed = decide_waits(events.min_time, events.max_time, until, rule.within, rule.threshold)
    row = np.flatnonzero(passed & ~events.told)
    return Transitions(
        row,
        np.full(row.size, NO_EVENT),
        (events.kind[row] + STAYS).astype(np.int8),
        events.min_time[row] + rule.within,
        events.max_time[row] + rule.within,
    )
