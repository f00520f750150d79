"""The arguments of a join of streams, and what each push brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.frames import needed_among
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import check_name, decoded, of_dicts, plain_type, type_of
from coincide.engine.events.sides import Side, read_side
from coincide.engine.events.time_columns import resolve_tick, scale_of
from coincide.engine.events.timestamp_names import arrow_clocks
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.derived_joins import ROW_NUMBERS
from coincide.engine.join.join import TablePlan
from coincide.engine.streams.clock import SideClock
from coincide.engine.streams.live import Part, marks_of
from coincide.model.errors import ConditionError, DataError, SchemaError, argument
from coincide.model.options import MATCHINGS
from coincide.model.sides import SIDES
from coincide.model.units import Duration, Tick, size_of


@dataclass(frozen=True)
class StreamArguments:
    """The question of a join of streams."""

    join: JoinArguments
    left_delay: Duration
    right_delay: Duration | None
    left_ahead: Duration | None = None
    right_ahead: Duration | None = None

    def __post_init__(self) -> None:
        word = self.join.choice.one_to_one
        if word is not None and word.of_groups:
            raise ConditionError(
                f"{word.said} must see each connected group of events at once, and in a stream"
                f" a group may never end. Use {MATCHINGS['mutual'].said}, or correlate_tables."
            )
        if self.join.keeps_right:
            raise ConditionError(
                f"{argument('how', self.join.how)} needs whole tables. In streams swap the sides,"
                f" mirror the window, and use {argument('how', 'left')} or"
                f" {argument('how', 'anti')}."
            )
        if word is not None and self.join.is_one_stream:
            raise ConditionError(
                f"{argument('right_delay')} is missing, or you match events of one stream, where"
                f" better matches of both events may still come. Remove {word.option}, or"
                " use correlate_tables."
            )
        delays = (
            (self.left_delay,) if self.right_delay is None else (self.left_delay, self.right_delay)
        )
        for side, delay in zip(SIDES, delays, strict=False):
            if size_of(delay) < 0:
                raise ConditionError(
                    f"{side}_delay is how long after its time an event may arrive, so it cannot"
                    f" be negative (found {delay!r})."
                )
        if self.right_delay is None and self.right_ahead is not None:
            raise ConditionError(
                f"{argument('right_ahead')} needs a second stream, and there is one. Remove it."
            )
        for side, ahead in zip(SIDES, (self.left_ahead, self.right_ahead), strict=True):
            check_ahead(f"{side}_ahead", ahead)

    @property
    def sides(self) -> tuple[str, ...]:
        """What messages call the streams, one or two."""
        return self.join.sides[: 1 if self.join.is_one_stream else 2]

    def settled(self, schemas: Sequence[pa.Schema]) -> StreamArguments:
        """The same for streams of these columns: it is known then which are output and needed."""
        return replace(self, join=self.join.settled(schemas[0], schemas[-1]))

    @property
    def gives_pairs_at_once(self) -> bool:
        """Whether rows are pairs, which are final as soon as both events are there."""
        return self.join.is_pairs_alone and self.join.choice.one_to_one is None

    def delays(self, tick: Tick) -> tuple[int, int]:
        """Both delays in ticks."""
        right = self.left_delay if self.right_delay is None else self.right_delay
        return tick.count(self.left_delay), tick.count(right)

    def aheads(self, tick: Tick) -> tuple[int | None, int | None]:
        """How far ahead of the last ones of its side a row may be, ticks; None: as far as it likes."""
        right = self.left_ahead if self.right_delay is None else self.right_ahead
        left, right = (None if a is None else tick.count(a) for a in (self.left_ahead, right))
        return left, right


def check_ahead(name: str, ahead: Duration | None) -> None:
    """Refuse a negative duration."""
    if ahead is not None and size_of(ahead) < 0:
        raise ConditionError(
            f"{argument(name)} is how far ahead of the last rows a row may be, so it cannot be"
            f" negative (found {ahead!r})."
        )


def given_schema(side: str, given: Any) -> pa.Schema | None:
    """The schema that a caller declares for a side, or that of a table like those to come."""
    if given is None or isinstance(given, pa.Schema):
        return given
    if hasattr(given, "__arrow_c_schema__"):
        return pa.schema(given)
    if isinstance(schema := getattr(given, "schema", None), pa.Schema):
        return schema
    raise SchemaError(
        f"{side}_schema must be a pyarrow.Schema (found {type(given).__name__}). Use the .schema"
        " of a pyarrow.Table."
    )


_ROW = ROW_NUMBERS[-1]
"""A column next to those of the user: the row of the push, to find late ones by."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What a push brings."""

    events: tuple[Part, ...]
    matchless: Part | None
    late: pa.Table
    ahead: pa.Table
    clock: SideClock
    counts: SideCounts
    behind: int = 0
    beyond: tuple[int, int] = (0, 0)  # for the row furthest ahead: by how much, and its max_time

    @property
    def again(self) -> Arrivals:
        """The same without what is counted."""
        return replace(
            self, late=self.late.slice(0, 0), ahead=self.ahead.slice(0, 0), counts=SideCounts()
        )


def read_arrivals(
    plan: TablePlan,
    number: int,
    table: pa.Table,
    clock: SideClock,
    delay: int,
    *,
    ahead: int | None = None,
    taken: int = 0,
) -> Arrivals:
    """The rows of a push, in order of arrival."""
    # An event arrives at the largest max_time that its side has seen, over all keys. It is late if
    # its own is more than the delay below that. One that is too far ahead of the last ones is neither
    # late nor seen.
    sides, counts = _read(plan, number, table)
    can_match = sides[0].matchable
    matchless = None
    if can_match is not None:
        null = np.flatnonzero(~can_match)
        none = np.zeros(null.size, np.int64)
        matchless = Part(replace(sides[0].rows(null), ranks=none), none.astype(np.uint16))
        sides = [_chosen(side, can_match) for side in sides]
    max_time = sides[0].max_time
    after, clocks, beyond = clock.ticked(max_time, ahead)
    is_ahead = beyond > 0
    is_late = (max_time < clocks - delay) & ~is_ahead
    late = set_aside = table.slice(0, 0)
    behind, furthest = 0, (0, 0)
    if is_late.any() or is_ahead.any():
        behind = int((clocks - max_time)[is_late].max(initial=0))
        if is_ahead.any():
            far = int(beyond.argmax())
            furthest = int(beyond[far]), int(max_time[far])
        rows = _rows(plan, number, table, counts)
        rows = rows if can_match is None else rows[can_match]
        late, set_aside = (table.take(pa.array(rows[mask])) for mask in (is_late, is_ahead))
        sides = [_chosen(side, ~(is_late | is_ahead)) for side in sides]
    ranks = np.arange(taken, taken + len(sides[0]))
    sides = [replace(side, ranks=ranks) for side in sides]
    marks = marks_of(sides[0].keys, len(sides[0]))
    events = tuple(Part(side, marks) for side in sides)
    return Arrivals(events, matchless, late, set_aside, after, counts, behind, furthest)


def _read(plan: TablePlan, number: int, table: pa.Table) -> tuple[list[Side], SideCounts]:
    """The events of a table; of one stream as left events and as right ones."""
    if plan.spec.is_one_stream:
        left, right, counts = plan.read_stream(table)
        return [left, right], counts
    side, counts = plan.read(number, table)
    return [side], counts


def _rows(plan: TablePlan, number: int, table: pa.Table, counts: SideCounts) -> np.ndarray:
    """The row of each event in the table, from which invalid rows have been dropped."""
    rows = np.arange(table.num_rows)
    if not counts.dropped:
        return rows
    (side, *_), _ = _read(plan, number, table.append_column(_ROW, pa.array(rows)))
    found: np.ndarray = side.identity[-1].to_numpy()
    return found


def _chosen(side: Side, mask: np.ndarray) -> Side:
    return replace(side.rows(np.flatnonzero(mask)), matchable=None)


_TEXTS = {pa.string(), pa.large_string()}
_BYTES = {pa.binary(), pa.large_binary()}


def needed_schema(side: str, schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns that are needed, in plain types."""
    return pa.schema([(name, type_of(schema, side, name)) for name in names])


def open_names(schema: pa.Schema, number: int, join: JoinArguments) -> list[str]:
    """Columns of a side of which some are needed, before the other side's are known."""
    names = join.columns[number]
    if not join.is_open:
        return names
    needed = [*names, *needed_among(schema.names, join.words_of_needed)]
    in_order = (name for name in schema.names if name in needed)
    return list(dict.fromkeys([*in_order, *names]))


def in_schema(side: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The needed columns of a later table, in the types of the first."""
    columns = []
    for field in schema:
        check_name(side, field.name, table.column_names)
        columns.append(_as_type(side, field, table.column(field.name)))
    return pa.table(columns, schema=schema)


def _as_type(side: str, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    found = plain_type(column.type)
    if found != field.type and not _is_alike(found, field.type):
        raise SchemaError(
            f"{side}.{field.name} was {field.type} in the first table (found {found}). Make a new"
            f" stream. Or cast the column{of_dicts([(field.type, found)])}."
        )
    try:
        return decoded(column, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(f"{side}.{field.name}: {error}. Push fewer rows at once.") from error


def _is_alike(found: pa.DataType, first: pa.DataType) -> bool:
    """Whether types differ in how writers store values: an empty column may have none at all."""
    return pa.types.is_null(found) or any({found, first} <= kinds for kinds in (_TEXTS, _BYTES))


def check_alone(number: int, table: pa.Table, arguments: StreamArguments) -> None:
    """Refuse the rows of a side whose match's columns are not known yet, where they are invalid."""
    # The tick of both together may be finer: what this side's own would round is looked at once it
    # is known.
    side, join = SIDES[number], arguments.join
    names = join.times[number]
    clocks = arrow_clocks(side, names, table.schema)
    tick = resolve_tick(clocks, join.options)
    scales = [scale_of(clock, tick, join.options) for clock in clocks]
    try:
        columns = names.resolve((scales[0], scales[1]), join.longest(tick)[number])
    except ConditionError:
        return
    keys = (join.keys, join.right_keys)[number]
    read_side(table, columns, keys, join.payload[number], join.options.invalid)
