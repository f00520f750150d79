"""What is pushed, checked before anything of it is taken in.

A model of timestamps says how its events are checked and made into shapes, in an `Intake`: those of
intervals and of templates are in modules of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from coincide.errors import DataError
from coincide.sides import LEFT, RIGHT, SIDES
from coincide.streams.arrays import ARRIVALS, Column, check_size, integers, marks_of
from coincide.streams.checks import ARRIVAL, FINE, first_arrival_trouble
from coincide.streams.results import Late
from coincide.units import TIME_LIMIT

NO_ARRIVAL = np.empty(0, np.int64)


class Batch(NamedTuple):
    """Checked events of one or both sides, in order of arrival.

    Parameters
    ----------
    sides : uint8 array, shape (n,)
    max_time, shapes : int64 arrays, shape (n,)
        Ticks; as the timestamps' model gives them.
    arrival : int64 array, shape (n,) or (0,)
        Arrival instants, ticks; none: each event comes as late as its side's largest max_time.
    """

    sides: np.ndarray
    max_time: np.ndarray
    shapes: np.ndarray
    arrival: np.ndarray


class Intake(Protocol):
    """Makes batches of what is pushed, and gives late events back as they were pushed."""

    @property
    def rule(self) -> Any:
        """The `Rule` that knows every shape of the batches made so far. Seldom another than before."""

    def one_sided(
        self, side: int, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Events of one side as a batch.

        Parameters
        ----------
        side : int
            From `side_index`.
        events, arrival, clock
            As `mixed`, which also says what is raised.
        """

    def mixed(
        self, sides: npt.ArrayLike, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Events of both sides as a batch.

        Parameters
        ----------
        sides : array of int, shape (n,)
            0 for left, 1 for right.
        events
            As `StreamCorrelator.push_mixed` takes them.
        arrival : int64 array, shape (n,), or None
            Arrival instants, ticks.
        clock : int64 array, shape (2,)
            Latest arrival instant of each side so far.

        Raises
        ------
        SchemaError
            If arrays are not one-dimensional arrays of integers, of equal size.
        DataError
            If an entry is null; if an event cannot be one of its side; if arrival instants go back.
        """

    def late(
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> Late:
        """Late events of a side, from int64 arrays, shape (n,): arrival numbers, and as in batches."""


class OneKindIntake(ABC):
    """An `Intake` of events of one kind on both sides: two columns of integers.

    Parameters
    ----------
    rule : NamedTuple, optional
        None where another intake has it.
    """

    COLUMNS: tuple[Column, Column]

    def __init__(self, rule: Any = None) -> None:
        self.rule = rule

    def one_sided(
        self, side: int, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """As `Intake`, like all that follow."""
        columns = self._columns(events, (side,))
        marks = np.full(columns[0].size, side, np.uint8)
        return self._checked(marks, columns, arrival, clock)

    def mixed(
        self, sides: npt.ArrayLike, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Events of both sides as a batch."""
        columns = self._columns(events, (LEFT, RIGHT))
        marks = marks_of(sides)
        check_size("sides", marks, self.COLUMNS[0].name, columns[0].size)
        return self._checked(marks, columns, arrival, clock)

    @abstractmethod
    def late(
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> Late:
        """Late events of a side."""

    @abstractmethod
    def _given(self, events: Any, sides: tuple[int, ...]) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        """The columns of events of these sides, as they were pushed."""

    @abstractmethod
    def _first_trouble(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[int, int]:
        """The first event that cannot be one of its side: what is wrong, or FINE, and where."""

    @abstractmethod
    def _described(self, first: int, second: int) -> str:
        """An event, in few words."""

    @abstractmethod
    def _complaint(self, trouble: int, side: int, first: int, second: int) -> str:
        """What is wrong with an event, and what to do."""

    @abstractmethod
    def _batch(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray, arrival: np.ndarray
    ) -> Batch:
        """The batch of checked columns."""

    def _columns(self, events: Any, sides: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        given = self._given(events, sides)
        one, other = self.COLUMNS
        first, second = integers(one, given[0]), integers(other, given[1])
        check_size(other.name, second, one.name, first.size)
        return first, second

    def _checked(
        self,
        marks: np.ndarray,
        columns: tuple[np.ndarray, np.ndarray],
        arrival: npt.ArrayLike | None,
        clock: np.ndarray,
    ) -> Batch:
        instants = NO_ARRIVAL
        if arrival is not None:
            instants = integers(ARRIVALS, arrival)
            check_size("arrival", instants, self.COLUMNS[0].name, marks.size)
        trouble, at = self._first_trouble(marks, *columns)
        if instants.size:
            untimely, when = first_arrival_trouble(marks, instants, clock, TIME_LIMIT)
            if when < at:
                raise DataError(
                    self._where(marks, columns, int(when))
                    + _untimely(untimely, int(when), marks, instants, clock)
                )
        if trouble != FINE:
            event = int(marks[at]), *(int(column[at]) for column in columns)
            raise DataError(self._where(marks, columns, int(at)) + self._complaint(trouble, *event))
        return self._batch(marks, *columns, instants)

    def _where(self, marks: np.ndarray, columns: tuple[np.ndarray, np.ndarray], at: int) -> str:
        event = self._described(*(int(column[at]) for column in columns))
        return f"{SIDES[int(marks[at])]}: event {at} of this push, {event}, "


def refuse_groups(group: object) -> None:
    """Refuse events that have groups.

    Raises
    ------
    DataError
    """
    if group is not None:
        raise DataError(
            "a stream correlator knows no groups; coincide.stream_tables joins tables by keys. Push events"
            " without group"
        )


def where_tables_go(events: object) -> str:
    """For messages: what takes tables, if it is one that was given."""
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return ". coincide.stream_tables takes tables"
    return ""


def _untimely(
    trouble: int, at: int, marks: np.ndarray, instants: np.ndarray, clock: np.ndarray
) -> str:
    arrival, side = int(instants[at]), int(marks[at])
    if trouble == ARRIVAL:
        return f"arrives at {arrival}, beyond 2^61 ticks; use a coarser unit"
    earlier = instants[:at][marks[:at] == side]
    last = int(max(clock[side], earlier.max(initial=clock[side])))
    return (
        f"arrives at {arrival}, before an earlier event or heartbeat of its side, at {last};"
        " push the events of a side in order of arrival"
    )
