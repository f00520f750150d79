"""From a table to the tuples that arrive: ticks, points and roles; what cannot match, or is invalid."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.causality.arguments import PlacedColumns, check_coordinate_types
from coincide.engine.causality.join import read_placed
from coincide.engine.causality.pairing import points_of
from coincide.engine.events.intervals import IntervalColumns, ReadIntervals
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import arrow_time_column, type_of
from coincide.engine.events.sides import Side, SideCounts
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_columns import TimeScale, resolve_tick, scale_of
from coincide.engine.events.timestamps import Faults
from coincide.engine.windowed_causality.arguments import EVENT, WindowArguments
from coincide.model.errors import DataError, SchemaError, option, options_called, several
from coincide.model.windowed_causality import CAUSE, EFFECT

_ROLES = ("cause", "effect")


@dataclass(frozen=True)
class ArrivingColumns(IntervalColumns):
    """Exact instants, and when they arrived: `coincide.engine.events.timestamps.TimestampColumns`."""

    arrival: TimeScale | None = None

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        own = super().names
        return own if self.arrival is None else (*own, self.arrival.column.name)

    def read(self, table: pa.Table) -> ReadIntervals:  # noqa: D102
        scale = self.scales[0]
        ticks = Ticks(table.column(scale.column.name), scale)
        if self.arrival is None:
            return ReadIntervals(ticks, ticks, 0)
        return _ReadArriving(ticks, Ticks(table.column(self.arrival.column.name), self.arrival))


class _ReadArriving(ReadIntervals):
    """A row is as good as its time and its arrival, of which either may be the later one."""

    def __init__(self, time: Ticks, arrival: Ticks) -> None:
        super().__init__(time, time, 0)
        self._arrival = ReadIntervals(arrival, arrival, 0)

    @property
    def are_valid(self) -> bool:
        return super().are_valid and self._arrival.are_valid

    @property
    def null(self) -> np.ndarray:
        return super().null | self._arrival.null

    def faults(self) -> Faults:
        yield from super().faults()
        yield from self._arrival.faults()


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
        times = ArrivingColumns(
            (scales[0], scales[0]), None, (0, 0), scales[1] if scales[1:] else None
        )
        check_coordinate_types(EVENT, arguments.coordinates, schema)
        self.placed = PlacedColumns(times, arguments.coordinates, arguments.condition.space)
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
            and self.placed == other.placed
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
        """What rows are that match nothing, whatever stands in them: their times and places are checked."""
        _, counts = self._side(table, [])
        return replace(counts, unmatchable=counts.rows - counts.dropped)

    def _side(self, table: pa.Table, names: list[str]) -> tuple[Side, SideCounts]:
        with options_called("WindowOptions"):
            return read_placed(table, self.placed, [], names, self.arguments.options.invalid)

    def _arrived(self, extra: dict[str, pa.Array], times: np.ndarray) -> np.ndarray:
        scale = self.placed.times.arrival  # type: ignore[attr-defined]
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
        """Which rows do not arrive before one that stands before them; how many do, and by how much."""
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
