"""Causality through a bounded window, as an object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.causality.arguments import Place, coordinates_in
from coincide.engine.causality.emptiness import warn_of_names
from coincide.engine.causality.pairing import points_of
from coincide.engine.events.frames import Numbers, is_nothing
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import Names
from coincide.engine.events.places import check_coordinate_types, names_of_coordinates
from coincide.engine.events.pushes import Pushes
from coincide.engine.events.row_numbers import ID, are_default
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import arrow_time_column, column_of, one_array, type_of
from coincide.engine.events.sides import Side, read_side
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_columns import TimeScale, resolve_tick, scale_of
from coincide.engine.events.timestamps import Faults, ReadTimes
from coincide.engine.join.delta import DELTA, in_unit
from coincide.engine.join.spec import check_output_names
from coincide.engine.windowed_causality.arguments import EVENT, WindowArguments
from coincide.engine.windowed_causality.reports import WindowSummary, tell
from coincide.model.causality.condition import CausalityCondition
from coincide.model.causality.spaces import no_points
from coincide.model.errors import DataError, SchemaError, option, options_called, several
from coincide.model.units import Tick
from coincide.model.windowed_causality import (
    CAUSE,
    EFFECT,
    WindowCounts,
    WindowOptions,
    WindowTerms,
)

_ROLES = ("cause", "effect")


@dataclass(frozen=True)
class ArrivingColumns(IntervalColumns):
    """Exact instants, and when they arrived."""

    arrival: TimeScale | None = None

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        own = super().names
        return own if self.arrival is None else (*own, self.arrival.column.name)

    def read(self, table: pa.Table) -> ReadTimes:  # noqa: D102
        happened, *arrived = (
            self._instants(table, scale)
            for scale in (self.scales[0], self.arrival)
            if scale is not None
        )
        if not arrived:
            return happened
        # A row is as good as its time and its arrival; either may be the later one.
        later, lost = arrived[0], arrived[0].null

        def faults() -> Faults:
            for reason, mask in chain(happened.faults(), later.faults()):
                yield reason, mask & ~lost

        are_valid = happened.are_valid and later.are_valid
        return replace(happened, are_valid=are_valid, faults=faults, lost=lost)

    def _instants(self, table: pa.Table, scale: TimeScale) -> ReadTimes:
        ticks = Ticks(column_of(table, EVENT, scale.column.name), scale)
        return self.between(ticks, ticks)


@dataclass(frozen=True, eq=False)
class Arriving:
    """Tuples that arrived, in their order, without those that match nothing."""

    times: np.ndarray
    clocks: np.ndarray
    points: np.ndarray | None
    roles: np.ndarray
    payload: list[pa.Array]
    counts: SideCounts
    backwards: int = 0
    behind: int = 0


class WindowColumns:
    """What the columns of the tables that are pushed mean."""

    def __init__(self, schema: pa.Schema, arguments: WindowArguments) -> None:
        self.arguments = arguments
        given = [arrow_time_column(EVENT, n, type_of(schema, EVENT, n)) for n in arguments.clocks]
        options = arguments.reading
        with options_called("WindowOptions"):
            self.tick = resolve_tick(given, options)
        scales = [scale_of(each, self.tick, options) for each in given]
        check_coordinate_types(EVENT, arguments.coordinates, schema)
        self.times = ArrivingColumns(
            (scales[0], scales[0]), arrival=scales[1] if scales[1:] else None,
            coordinates=coordinates_in(arguments.condition.space, arguments.coordinates),
        )  # fmt: skip
        kinds = [type_of(schema, EVENT, name) for name in arguments.payload]
        self.payload = [pa.field(*each) for each in zip(arguments.payload, kinds, strict=True)]
        if arguments.role is not None:
            kind = type_of(schema, EVENT, arguments.role)
            if not is_string(kind):
                raise SchemaError(
                    f"{EVENT}.{arguments.role} must be one of the words cause and effect (found"
                    f" {kind})."
                )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WindowColumns)
            and self.times == other.times
            and self.payload == other.payload
        )

    __hash__ = None  # type: ignore[assignment]

    def read(self, table: pa.Table, clock: int | None) -> Arriving:
        """The tuples of a table."""
        arguments = self.arguments
        names = [*arguments.payload, *arguments.other_columns]
        side, counts = self._side(table, names)
        extra = dict(zip(names[::-1], side.payload[::-1], strict=True))
        roles, counts = self._roles(extra, side, counts)
        good = roles > 0 if side.matchable is None else (roles > 0) & side.matchable
        times, backwards, behind = side.max_time, 0, 0
        arrived = self._arrived(extra, times)
        if arguments.arrival is not None:
            good, backwards, behind = self._forwards(arrived, good, clock)
        rows = np.flatnonzero(good)
        kept = side if rows.size == len(side) else side.rows(rows)
        now = arrived[rows]
        if now.size and arguments.arrival is None:
            now = np.maximum.accumulate(now)
        return Arriving(
            kept.max_time, now, points_of(kept, arguments.condition.space), roles[rows],
            kept.payload[: len(arguments.payload)], counts, backwards, behind,
        )  # fmt: skip

    def unmatchable(self, table: pa.Table) -> SideCounts:
        """What rows are that match nothing, whatever is in them: their times and places are checked."""
        _, counts = self._side(table, [])
        return replace(counts, unmatchable=counts.rows - counts.dropped)

    def _side(self, table: pa.Table, names: list[str]) -> tuple[Side, SideCounts]:
        with options_called("WindowOptions"):
            return read_side(table, self.times, [], names, self.arguments.options.invalid)

    def _arrived(self, extra: dict[str, pa.Array], times: np.ndarray) -> np.ndarray:
        scale = self.times.arrival
        if scale is None:
            return times
        return Ticks(pa.chunked_array([extra[scale.column.name]]), scale).ticks

    def _roles(
        self, extra: dict[str, pa.Array], side: Side, counts: SideCounts
    ) -> tuple[np.ndarray, SideCounts]:
        """Roles, 0 of a row that has none; such rows match nothing."""
        name = self.arguments.role
        if name is None:
            return np.full(len(side), CAUSE | EFFECT), counts
        words = extra[name]
        found = pc.index_in(words, value_set=pa.array(_ROLES, words.type))
        unknown = pc.and_(pc.is_null(found), pc.is_valid(words))
        wrong = int(pc.sum(unknown).as_py() or 0)
        if wrong:
            raise DataError(
                f"{EVENT}.{name} must hold the words cause and effect, but"
                f" {several(wrong, 'row')} hold others (found"
                f" {words.filter(unknown)[0].as_py()!r}). Write one of these words, or null for a"
                " tuple without a role."
            )
        roles = np.array([CAUSE, EFFECT])[found.fill_null(0).to_numpy(zero_copy_only=False)]
        roles[pc.is_null(found).to_numpy(zero_copy_only=False)] = 0
        # Rows without a time or a place are counted already.
        lacks = roles == 0 if side.matchable is None else (roles == 0) & side.matchable
        missing = int(lacks.sum())
        if missing:
            counts = replace(counts, unmatchable=counts.unmatchable + missing)
        return roles, counts

    def _forwards(
        self, arrived: np.ndarray, good: np.ndarray, clock: int | None
    ) -> tuple[np.ndarray, int, int]:
        """Which rows do not arrive before one that is before them; how many do, and by how much."""
        rows = np.flatnonzero(good)
        own = arrived[rows]
        start = -(2**62) if clock is None else clock
        clocks = np.maximum.accumulate(np.concatenate([[start], own]))[:-1]
        late = own < clocks
        count = int(late.sum())
        if count and self.arguments.options.invalid == "raise":
            row = int(rows[np.argmax(late)])
            raise DataError(
                f"{EVENT}.{self.arguments.arrival} goes back in {several(count, 'row')} (found"
                f" row {row:,} of the push). Push tuples in the order of their arrival, or skip"
                f" such rows with {option('invalid', 'drop', 'WindowOptions')}."
            )
        good[rows[late]] = False
        return good, count, int((clocks - own)[late].max(initial=0))


class WindowedCausality:
    """Finds causes and effects in one pass through a window of n tuples.

    Causality join query processing (section 3.2 of Kwon & Li, 2009). Each tuple that arrives meets those in
    the window, in either role: a cause that arrives after its effect meets it too. Then, if the window
    is full, one goes, by the policy, and the new one is kept. (``"expected"`` may send the new one away at
    once.) However tuples are cut into pushes, the pairs are the same. It pickles.

    Parameters
    ----------
    condition : CausalityCondition
        On exact instants.
    time : str
        Column of valid times: when it happened.
    place : sequence of str and float
        The coordinates, in the order of the condition's space: columns, or numbers that hold for every
        event; () where the condition is on times alone. A row where one is null or NaN matches nothing,
        and takes no place in the window.
    arrival : str, optional
        Column of the times of arrival, which must not go back, of the same kind as valid times. ``"fcfo"``
        counts `max_stay` by it, and ``"expected"`` ages; without it the latest valid time is the clock.
    role : str, optional
        Column of the words cause and effect; a null matches nothing. None: every tuple may be both. If
        both orders of a pair qualify, the earlier is the cause, and of simultaneous ones the one that
        arrived first.
    home : sequence of float
        Where the window is: ``"fcfo"`` and ``"fhcfo"`` let the nearest tuples go.
    columns : str or sequence of str
        Output columns, named ``cause_<name>`` and ``effect_<name>``.
    options : WindowOptions

    Raises
    ------
    SchemaError, ConditionError
        If an argument makes no sense.
    """

    def __init__(
        self,
        condition: CausalityCondition,
        *,
        time: str = "time",
        place: Place = (),
        arrival: str | None = None,
        role: str | None = None,
        home: Sequence[float] | float = (),
        columns: Names = ("id",),
        options: WindowOptions = WindowOptions(),
    ) -> None:
        self._arguments = WindowArguments(
            condition, time, place, arrival, role, home, columns, options
        )
        self._pushes = pushes_of(self._arguments)
        self._terms: WindowTerms | None = None
        self._join: Any = None
        self._numbers = np.zeros(0, np.int64)
        self._payload: list[pa.Array] = []
        self._rows, self._backwards, self._pairs = SideCounts(), 0, 0
        self._clock: int | None = None
        self._before = WindowCounts()

    def push(self, events: Any) -> pa.Table:
        """Take tuples in the order in which they arrived, and return the pairs that they show.

        Parameters
        ----------
        events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
            The first table, which may be empty, says of which types the columns are. An empty list is
            nothing, and says nothing.

        Returns
        -------
        pa.Table
            The columns as ``cause_...`` and ``effect_...``, delta (T_effect - T_cause, int64, named as by
            `coincide.causality_tables`) and, where there are places, ``distance`` (float64); by the tuple
            that came last.

        Raises
        ------
        SchemaError
            If a column is missing, of a type that cannot serve, or of another than in the first push.
        DataError
            If rows are invalid, and are to be refused. Nothing of the push is taken then.

        Warns
        -----
        DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
        """
        if is_nothing(events):
            return pa.table({}) if self._join is None else self._schema.empty_table()
        if self._join is None:
            warn_of_names(self._arguments.condition, [self._arguments.coordinates])
        found, arriving = self._taken(events)
        tell(arriving.counts, arriving.backwards, self._columns.tick, arriving.behind)
        return found

    def take(self, table: pa.Table) -> pa.Table:
        """As `push`, without warnings: `summary` tells what is lost."""
        return self._taken(table)[0]

    def _taken(self, events: Any) -> tuple[pa.Table, Arriving]:
        table, columns = self._pushes.read(events)
        check_output_names(output_names(self._arguments, columns.tick))
        arriving = columns.read(table, self._clock)
        self._pushes.keep(table, columns)
        if self._join is None:
            self._begin()
        found = self._take(arriving)
        self._rows += arriving.counts
        self._backwards += arriving.backwards
        self._pairs += found.num_rows
        return found, arriving

    def flush(self) -> pa.Table:
        """End of the stream: the window is emptied, and what is pushed next meets nothing of before.

        Returns
        -------
        pa.Table
            No rows: pairs are returned as soon as they are found, so none wait.
        """
        if self._join is None:
            return pa.table({})
        self._before = self._before.then(self._join.counts)
        self._begin()
        self._numbers, self._payload, self._clock = np.zeros(0, np.int64), [], None
        return self._schema.empty_table()

    def summary(self) -> WindowSummary:
        """What became of all that was pushed, and what share of the pairs is likely to have been found."""
        counts = WindowCounts() if self._join is None else self._join.counts
        return WindowSummary(
            self._rows, self._backwards, self._before.then(counts), self._pairs,
            None if self._pushes.columns is None else self._pushes.columns.tick,
        )  # fmt: skip

    @property
    def _columns(self) -> WindowColumns:
        return self._pushes.known("push")

    def _begin(self) -> None:
        if self._terms is None:
            tick = self._columns.tick
            self._terms = self._arguments.terms(self._arguments.model(tick), tick)
        self._join = import_module("cpu_fallback.windowed_causality").WindowJoin(self._terms)

    @property
    def _schema(self) -> pa.Schema:
        kinds = output_kinds([field.type for field in self._columns.payload])
        names = output_names(self._arguments, self._columns.tick)
        return pa.schema(list(zip(names, kinds, strict=False)))

    def _take(self, arriving: Arriving) -> pa.Table:
        join, first = self._join, self._join.arrived
        payload = arriving.payload
        if self._numbers.size:
            pairs = zip(self._payload, payload, strict=True)
            payload = [one_array(pa.chunked_array(each)) for each in pairs]
        batches = list(self._batches(arriving, first, payload))
        kept = join.kept()
        places = pa.array(self._rows_of(kept, first))
        self._numbers, self._payload = kept, [column.take(places) for column in payload]
        if arriving.clocks.size:
            self._clock = int(arriving.clocks[-1])
        return pa.Table.from_batches(batches, self._schema)

    def _batches(
        self, arriving: Arriving, first: int, payload: list[pa.Array]
    ) -> Iterator[pa.RecordBatch]:
        points = no_points() if arriving.points is None else arriving.points
        placed, schema = bool(self._arguments.coordinates), self._schema
        taken = self._join.take(arriving.times, arriving.clocks, points, arriving.roles)
        for part in taken:
            sides = [pa.array(self._rows_of(each, first)) for each in (part.causes, part.effects)]
            measures = [pa.array(part.deltas), *([pa.array(part.distances)] if placed else [])]
            columns = [column.take(rows) for rows in sides for column in payload]
            yield pa.RecordBatch.from_arrays([*columns, *measures], schema=schema)

    def _rows_of(self, numbers: np.ndarray, first: int) -> np.ndarray:
        """The places of tuples behind those that were kept before `first` arrived: these are searched."""
        rows: np.ndarray = numbers + (self._numbers.size - first)
        early = np.flatnonzero(numbers < first)
        rows[early] = np.searchsorted(self._numbers, numbers[early])
        return rows


def pushes_of(arguments: WindowArguments) -> Pushes[WindowColumns]:
    """The tables of tuples that are pushed."""
    names, places = arguments.read_columns, names_of_coordinates(arguments.coordinates)
    columns_of = partial(WindowColumns, arguments=arguments)
    return Pushes(
        f"{EVENT}s", [*names, *arguments.payload], Numbers(arguments.clocks, places), columns_of,
        arguments.options.invalid, numbered=are_default(arguments.columns) and ID not in names,
    )  # fmt: skip


def output_names(arguments: WindowArguments, tick: Tick) -> list[str]:
    """The names of the columns of pairs; without places there is no distance."""
    payload = [f"{side}_{name}" for side in ("cause", "effect") for name in arguments.payload]
    return [*payload, in_unit(DELTA, tick), *(["distance"] if arguments.coordinates else [])]


def output_kinds(payload: Sequence[pa.DataType]) -> list[pa.DataType]:
    """The types of the same columns, distance included."""
    return [*payload, *payload, pa.int64(), pa.float64()]
