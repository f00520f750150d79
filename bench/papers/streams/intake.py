"""What is pushed, checked before anything of it is taken in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.papers.streams.results import Late, LateEvents, LateHistogramEvents
from coincide.model.compiled import compiled
from coincide.model.condition import Window
from coincide.model.errors import DataError, MemoryBudgetError, SchemaError, argument, brief
from coincide.model.sides import LEFT, RIGHT, SIDES
from coincide.model.templates.satisfaction import MOST_PAIRS, KnownLengths, beside, solved_times
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps import IntervalEvents
from coincide.model.timestamps.histograms import HistogramEvents, HistogramPairs
from coincide.model.units import TIME_LIMIT


class Column(NamedTuple):
    """An array that is asked for: what it is called, what it has to be, and what to do where it is not."""

    name: str
    kind: str = "integers (ticks)"
    hint: str = "Round times to int64 ticks first."


ARRIVALS = Column("arrival")


def integers(column: Column, values: npt.ArrayLike) -> np.ndarray:
    """An int64 array of one dimension."""
    array = _array(column.name, values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        _check_range(column.name, array)
        raise SchemaError(
            f"{column.name} must be a one-dimensional array of {column.kind} (found {array.dtype}"
            f" of shape {array.shape}). {column.hint}"
        )
    if array.dtype.kind == "u" and array.size:
        _check_range(column.name, array)
    return _plain(array, np.int64)


def marks_of(sides: npt.ArrayLike) -> np.ndarray:
    """The sides of a mixed push: uint8 array."""
    array = _array("sides", sides)
    expected = f"{argument('sides')} must be a one-dimensional array of 0 (left) and 1 (right)"
    if array.ndim != 1 or (array.dtype.kind not in "iub" and array.size):
        raise SchemaError(
            f"{expected}, one for each event (found {array.dtype} of shape {array.shape})."
        )
    wrong = np.flatnonzero((array != LEFT) & (array != RIGHT))
    if wrong.size:
        at = int(wrong[0])
        raise SchemaError(f"{expected} (found {array[at]} at position {at}).")
    return _plain(array, np.uint8)


def _array(name: str, values: npt.ArrayLike) -> np.ndarray:
    """An array without nulls, of any type and shape."""
    if np.ma.is_masked(values):
        # np.asarray would drop the mask and take what lies beneath it for a value.
        _refuse_null(name, np.ma.getmaskarray(np.ma.asarray(values)))
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"{argument(name)} must be a one-dimensional array of integers (found a"
            f" {type(values).__name__}: {error}). Give one int for each event."
        ) from error
    if array.dtype.kind == "f":
        _refuse_null(name, np.isnan(array))
    elif array.dtype.kind == "O":
        nulls = [is_null(value) for value in array.ravel().tolist()]
        _refuse_null(name, np.array(nulls, bool))
    return array


def _refuse_null(name: str, nulls: np.ndarray) -> None:
    at = np.flatnonzero(nulls)
    if at.size:
        raise DataError(
            f"{name} must hold no nulls, masked entries or NaN (found one at position"
            f" {int(at[0])}). Remove such events."
        )


def is_null(value: object) -> bool:
    """Whether a value of an object array is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except ValueError:  # an array
        return False
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return True


def _check_range(name: str, array: np.ndarray) -> None:
    """Refuse times beyond the limit where they made NumPy choose another type than int64."""
    if array.dtype.kind in "uf":
        beyond = bool((np.abs(array) >= TIME_LIMIT).any())
    else:
        beyond = array.dtype.kind == "O" and any(
            isinstance(value, int) and abs(value) >= TIME_LIMIT for value in array.ravel().tolist()
        )
    if beyond:
        raise DataError(f"{name}: a time reaches 2^61 ticks. Use a coarser unit.")


def _plain(array: np.ndarray, dtype: type) -> np.ndarray:
    """One memory layout only: kernels are compiled anew for each, read-only arrays included."""
    return np.require(array, dtype, ("C", "A", "W"))


def check_size(name: str, array: np.ndarray, like: str, size: int) -> None:
    """Refuse an array that has not one entry for each event."""
    if array.size != size:
        raise SchemaError(
            f"{name} has {array.size} entries, but {like} has {size}. Give one for each event."
        )


def without_offsets(table: TemplateTable) -> TemplateTable:
    """The table for events whose max_time is known: equal templates are equal wherever they were seen."""
    return replace(table, offsets=np.zeros_like(table.offsets))


FINE, OUT_OF_RANGE, REVERSED, TOO_LONG, TOO_SHORT, UNKNOWN, ARRIVAL, BACKWARDS = range(8)
"""What can be wrong with an event: its time, ends, length, template, or arrival instant."""


@compiled
def first_interval_trouble(sides, lows, highs, lengths, limit):
    """The first interval that cannot be taken in."""
    for i in range(lows.size):
        low, high, side = lows[i], highs[i], sides[i]
        if low <= -limit or high >= limit or low >= limit or high <= -limit:
            return OUT_OF_RANGE, i
        if low > high:
            return REVERSED, i
        if high - low > lengths[side, 1]:
            return TOO_LONG, i
        if high - low < lengths[side, 0]:
            return TOO_SHORT, i
    return FINE, lows.size


@compiled
def first_template_trouble(sides, max_times, templates, counts, limit):
    """The first event of a template that cannot be taken in."""
    for i in range(max_times.size):
        if not 0 <= templates[i] < counts[sides[i]]:
            return UNKNOWN, i
        if not -limit < max_times[i] < limit:
            return OUT_OF_RANGE, i
    return FINE, max_times.size


@compiled
def first_arrival_trouble(sides, arrival, clock, limit):
    """The first event whose arrival instant cannot be."""
    left, right = clock[0], clock[1]
    for i in range(arrival.size):
        if not -limit < arrival[i] < limit:
            return ARRIVAL, i
        if arrival[i] < (left if sides[i] == LEFT else right):
            return BACKWARDS, i
        if sides[i] == LEFT:
            left = arrival[i]
        else:
            right = arrival[i]
    return FINE, arrival.size


NO_ARRIVAL = np.empty(0, np.int64)


class Batch(NamedTuple):
    """Checked events of one or both sides, in order of arrival."""

    sides: np.ndarray  # uint8, shape (n,)
    max_time: np.ndarray  # int64, shape (n,): ticks
    shapes: np.ndarray  # int64, shape (n,): as the timestamps' model gives them
    arrival: np.ndarray  # int64, shape (n,) or (0,)


class OneKindIntake(ABC):
    """Makes batches of events of one kind on both sides, two columns of integers, and gives late ones back.

    `rule` is the `Rule` that knows every shape so far; None where another intake has it.
    """

    COLUMNS: tuple[Column, Column]

    def __init__(self, rule: Any = None) -> None:
        self.rule = rule

    def one_sided(
        self, side: int, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Events of one side as a batch; see `mixed`."""
        columns = self._columns(events, (side,))
        marks = np.full(columns[0].size, side, np.uint8)
        return self._checked(marks, columns, arrival, clock)

    def mixed(
        self, sides: npt.ArrayLike, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """Events of both sides as a batch: `sides` is 0 (left) or 1, `arrival` in ticks."""
        # `clock` is the latest arrival instant of each side so far: int64 array, shape (2,).
        columns = self._columns(events, (LEFT, RIGHT))
        marks = marks_of(sides)
        check_size("sides", marks, self.COLUMNS[0].name, columns[0].size)
        return self._checked(marks, columns, arrival, clock)

    @abstractmethod
    def late(
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> Late:
        """Late events of a side, as they were pushed: int64 arrays, shape (n,), as in batches."""

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
    """Refuse events that have groups."""
    if group is not None:
        raise DataError(
            "a stream correlator has no groups. Push events without group, or use"
            " coincide.stream_tables, which joins tables by keys."
        )


def where_tables_go(events: object) -> str:
    """For messages: what takes tables, if it is one that was given."""
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return " Use coincide.stream_tables for tables."
    return ""


def _untimely(
    trouble: int, at: int, marks: np.ndarray, instants: np.ndarray, clock: np.ndarray
) -> str:
    arrival, side = int(instants[at]), int(marks[at])
    if trouble == ARRIVAL:
        return f"arrives at {arrival}, beyond 2^61 ticks. Use a coarser unit."
    earlier = instants[:at][marks[:at] == side]
    last = int(max(clock[side], earlier.max(initial=clock[side])))
    return (
        f"arrives at {arrival}, before an earlier event or heartbeat of its side, at {last}. Push"
        " the events of a side in order of arrival."
    )


class IntervalIntake(OneKindIntake):
    """Takes `IntervalEvents` and pairs of arrays (min_time, max_time)."""

    COLUMNS = (Column("min_time"), Column("max_time"))

    def __init__(self, lengths: np.ndarray, rule: Any = None) -> None:
        super().__init__(rule)
        self._lengths = lengths

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> LateEvents:
        return LateEvents(numbers, max_time - shapes, max_time)

    def _given(self, events: Any, sides: tuple[int, ...]) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        if isinstance(events, IntervalEvents):
            refuse_groups(events.group)
            return events.min_time, events.max_time
        if isinstance(events, tuple) and len(events) == 2:
            return events
        raise SchemaError(
            f"{argument('events')} must be IntervalEvents or a pair of arrays (min_time,"
            f" max_time) (found {type(events).__name__}).{where_tables_go(events)}"
        )

    def _first_trouble(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[int, int]:
        return first_interval_trouble(marks, first, second, self._lengths, TIME_LIMIT)

    def _batch(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray, arrival: np.ndarray
    ) -> Batch:
        return Batch(marks, second, second - first, arrival)

    def _described(self, first: int, second: int) -> str:
        return f"[{first}, {second}]"

    def _complaint(self, trouble: int, side: int, first: int, second: int) -> str:
        name, length = SIDES[side], second - first
        shortest, longest = self._lengths[side].tolist()
        if trouble == OUT_OF_RANGE:
            return "reaches 2^61 ticks. Use a coarser unit."
        if trouble == REVERSED:
            return "has min_time above max_time. Swap the two, or remove the event."
        if trouble == TOO_LONG:
            return (
                f"is {length} ticks long, but {name}_longest is {longest}. Give a larger"
                f" {name}_longest, or remove the event."
            )
        return (
            f"is {length} ticks long, but {name}_shortest is {shortest}. Give a smaller"
            f" {name}_shortest, or remove the event."
        )


class LengthNumbers:
    """Numbers lengths in the order in which they come, and solves the table for them.

    Numbers stay, so that what a kernel keeps of earlier events remains true.
    """

    def __init__(self, window: Window, side: int, table: TemplateTable, most: int) -> None:
        self._window, self._side, self._table = window, side, table
        self._most = min(most, MOST_PAIRS // len(table))
        nothing = np.empty(0, np.int64)
        empty = np.empty((0, len(table)) if side == LEFT else (len(table), 0), np.int64)
        times = SatisfactionTimes(empty, empty, nothing, nothing, nothing)
        # One object, so that no exception can leave a part of it behind.
        self._known = self._all_known(nothing, times)

    @property
    def rule(self) -> Any:
        """Decides pairs of all lengths so far."""
        return self._known.rule

    @property
    def lengths(self) -> np.ndarray:
        """Lengths by number: int64 array, ticks."""
        return self._known.lengths.lengths

    def numbered(self, lengths: np.ndarray) -> np.ndarray:
        """The numbers of lengths, new ones included: int64 array, shape (n,)."""
        if not self._known.lengths.has_all(lengths):
            self._known = self._with(np.setdiff1d(lengths, self._known.lengths.ordered))
        return self._known.lengths.numbered(lengths)

    def _with(self, new: np.ndarray) -> _Known:
        count = self.lengths.size + new.size
        if count > self._most:
            name, other = SIDES[self._side], SIDES[1 - self._side]
            raise MemoryBudgetError(
                f"{name}: the intervals have {count:,} different lengths, and each counts as a"
                f" template. Next to the {len(self._table):,} of {other}_templates, {self._most:,}"
                " are allowed. Round the intervals to fewer lengths, or give a larger"
                f" {argument('most_lengths')} (at most {MOST_PAIRS // len(self._table):,})."
            )
        solved = solved_times(*self._tables(new), self._window)
        times = beside(self._known.lengths.times, solved, self._side)
        return self._all_known(np.concatenate([self.lengths, new]), times)

    def _all_known(self, lengths: np.ndarray, times: SatisfactionTimes) -> _Known:
        rule = _Solved(self._window, *self._tables(lengths), times).rule
        return _Known(KnownLengths.of(lengths, times), rule)

    def _tables(self, lengths: np.ndarray) -> tuple[TemplateTable, TemplateTable]:
        own = TemplateTable.of_lengths(lengths)
        return (own, self._table) if self._side == LEFT else (self._table, own)


@dataclass(frozen=True)
class _Solved(HistogramPairs):
    """A pair of tables of which the satisfaction times are known."""

    times: SatisfactionTimes

    @property
    def table(self) -> SatisfactionTimes:
        return self.times


class _Known(NamedTuple):
    """What is known of the lengths so far."""

    lengths: KnownLengths
    rule: Any


class MixedIntake:
    """As `OneKindIntake`, of two kinds. The shape of an interval is the number of its length."""

    def __init__(
        self,
        interval_side: int,
        intervals: IntervalIntake,
        templates: TemplateIntake,
        numbers: LengthNumbers,
    ) -> None:
        self._interval_side = interval_side
        self._kinds = (intervals, templates) if interval_side == LEFT else (templates, intervals)
        self._numbers = numbers

    @property
    def rule(self) -> Any:
        """Another one when new lengths have come."""
        return self._numbers.rule

    def one_sided(  # noqa: D102
        self, side: int, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        return self._numbered(side, self._kinds[side].one_sided(side, events, arrival, clock))

    def mixed(
        self, sides: npt.ArrayLike, events: Any, arrival: npt.ArrayLike | None, clock: np.ndarray
    ) -> Batch:
        """The batch of a pair of the left side's events and the right side's, which `sides` interleaves."""
        marks = marks_of(sides)
        if not isinstance(events, tuple) or len(events) != 2:
            raise SchemaError(
                "a mixed push of intervals and templates takes a pair (left events, right events)"
                f" (found {type(events).__name__}). Give each side as push takes it, and their"
                " order of arrival as sides."
            )
        instants = NO_ARRIVAL
        if arrival is not None:
            instants = integers(ARRIVALS, arrival)
            check_size(ARRIVALS.name, instants, "sides", marks.size)
        rows = [np.flatnonzero(marks == side) for side in (LEFT, RIGHT)]
        parts = []
        for side in (LEFT, RIGHT):
            when = None if arrival is None else instants[rows[side]]
            part = self._kinds[side].one_sided(side, events[side], when, clock)
            if part.sides.size != rows[side].size:
                raise SchemaError(
                    f"{argument('sides')} has {rows[side].size} entries for side {side}"
                    f" ({SIDES[side]}), but that side has {part.sides.size} events. Give one entry"
                    " for each event."
                )
            parts.append(part)
        # Lengths are numbered last, when nothing else can be wrong.
        parts = [self._numbered(side, part) for side, part in enumerate(parts)]
        max_time, shapes = np.empty(marks.size, np.int64), np.empty(marks.size, np.int64)
        for at, part in zip(rows, parts, strict=True):
            max_time[at], shapes[at] = part.max_time, part.shapes
        return Batch(marks, max_time, shapes, instants)

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> Late:
        given = self._numbers.lengths[shapes] if side == self._interval_side else shapes
        return self._kinds[side].late(side, numbers, max_time, given)

    def _numbered(self, side: int, batch: Batch) -> Batch:
        if side != self._interval_side:
            return batch
        return batch._replace(shapes=self._numbers.numbered(batch.shapes))


_TEMPLATE = Column(
    "template",
    "integers (numbers of templates) or of text (their ids)",
    "Give the ids, or number them with TemplateTable.numbered(ids).",
)


class TemplateIntake(OneKindIntake):
    """Takes `HistogramEvents` and pairs of arrays (max_time, template)."""

    COLUMNS = (Column("max_time"), _TEMPLATE)

    def __init__(self, tables: tuple[TemplateTable, TemplateTable], rule: Any = None) -> None:
        super().__init__(rule)
        self._tables = tables
        self._counts = np.array([len(table) for table in tables], np.int64)

    def late(  # noqa: D102
        self, side: int, numbers: np.ndarray, max_time: np.ndarray, shapes: np.ndarray
    ) -> LateHistogramEvents:
        return LateHistogramEvents(numbers, max_time, shapes)

    def _given(self, events: Any, sides: tuple[int, ...]) -> tuple[npt.ArrayLike, npt.ArrayLike]:
        if isinstance(events, HistogramEvents):
            refuse_groups(events.group)
            for side in sides:
                self._check_table(events.table, side)
            return events.max_time, events.template
        if isinstance(events, tuple) and len(events) == 2:
            return events[0], self._numbered(events[1], sides)
        raise SchemaError(
            f"{argument('events')} must be HistogramEvents or a pair of arrays (max_time,"
            f" template) (found {type(events).__name__}).{where_tables_go(events)}"
        )

    def _numbered(self, template: npt.ArrayLike, sides: tuple[int, ...]) -> npt.ArrayLike:
        """Numbers of templates; ids become numbers."""
        if not _is_text(template):
            return template
        table, name = self._tables[sides[0]], SIDES[sides[0]]
        if any(self._tables[side] != table for side in sides):
            raise SchemaError(
                "template: in a mixed push an id does not name its side. Number the ids with"
                " TemplateTable.numbered(ids) of each side, or push one side at a time."
            )
        ids = [None if is_null(each) else each for each in np.asarray(template).tolist()]
        numbers = table.numbered(ids)
        if (unknown := np.flatnonzero(numbers < 0)).size:
            at = int(unknown[0])
            raise DataError(
                f"{name}: event {at} of this push has a template that is not among the"
                f" {len(table):,} of {name}_templates (found {brief(ids[at])}). Remove the event,"
                " or add a template."
            )
        return numbers

    def _check_table(self, table: TemplateTable, side: int) -> None:
        own = self._tables[side]
        if table is not own and table != own and without_offsets(table) != own:
            raise SchemaError(
                f"the events have another TemplateTable than {SIDES[side]}_templates. Number"
                f" their templates with {SIDES[side]}_templates.numbered(ids)."
            )

    def _first_trouble(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> tuple[int, int]:
        return first_template_trouble(marks, first, second, self._counts, TIME_LIMIT)

    def _batch(
        self, marks: np.ndarray, first: np.ndarray, second: np.ndarray, arrival: np.ndarray
    ) -> Batch:
        return Batch(marks, first, second, arrival)

    def _described(self, first: int, second: int) -> str:
        return f"of template {second} at {first}"

    def _complaint(self, trouble: int, side: int, first: int, second: int) -> str:
        if trouble == OUT_OF_RANGE:
            return "reaches 2^61 ticks. Use a coarser unit."
        name, count = SIDES[side], int(self._counts[side])
        unknown = "; TemplateTable.numbered gives -1 for an unknown id" if second == -1 else ""
        return (
            f"has a template that is not in {name}_templates, which are numbered 0 to"
            f" {count - 1}{unknown}. Remove the event, or add a template."
        )


def _is_text(values: npt.ArrayLike) -> bool:
    """Whether values are ids, nulls aside."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and array.ndim == 1:
        return any(isinstance(each, str) for each in array.tolist())
    return array.dtype.kind in "UT" and array.ndim == 1


Intake = OneKindIntake | MixedIntake
