"""The spans of a table in the order of keys and starts, for operators that sweep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.frames import TABLES
from coincide.engine.events.keys import Keys, Names
from coincide.engine.events.schemas import check_name, one_array, plain_type
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.span_ends import ends_of
from coincide.engine.events.spans import Spans
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TablePlan, given_tables, resolved, with_known_columns
from coincide.engine.join.spec import check_output_names
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.model.errors import ConditionError, SchemaError, argument, brief
from coincide.model.options import CorrelateOptions, check_no_most, check_one_device, check_options
from coincide.model.ordering import stable_order
from coincide.model.relations import overlapping
from coincide.model.units import Duration, Tick

EVENTS = "events"
"""What messages call the rows: as the argument."""
END = "end"
"""What ends are called where no column has them."""
_NAMING = f". Name the columns with {argument('time')}=spans('begin', 'end')"
_ROW = "\0row of a table"


class SpanRows(NamedTuple):
    """The spans of a table that hold a moment, in the order of keys and starts."""

    table: pa.Table  # All rows, with all columns that were read
    group: np.ndarray
    start: np.ndarray
    end: np.ndarray
    row: np.ndarray  # The table's
    keys: pa.Table
    names: Spans
    times: tuple[pa.Array, pa.Array]
    scale: TimeScale
    are_left_out: np.ndarray  # Rows of the table without a time or a key, or invalid: bool array

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.scale.tick

    @property
    def columns(self) -> list[str]:
        """What starts and ends are called."""
        return [self.names.start, self.names.end or END]

    def stretches(
        self, of: np.ndarray, start: pa.Array, end: pa.Array, **more: np.ndarray
    ) -> pa.Table:
        """Stretches of time, each with the key of one of the rows."""
        names = [*self.keys.column_names, *self.columns, *more]
        check_output_names(names)
        keys = self.keys.take(pa.array(of)).columns
        return pa.table([*keys, start, end, *map(pa.array, more.values())], names=names)


@dataclass(frozen=True)
class _OneTable(JoinArguments):
    """The question about the spans of one table, as a join of them with themselves."""

    prefixes: ClassVar[tuple[str, str]] = (EVENTS, EVENTS)

    @property
    def sides(self) -> tuple[str, str]:
        """As in `PairArguments`."""
        return self.prefixes

    @property
    def _names_of_columns(self) -> list[str]:
        return ["left_columns", "right_columns"]


def read_spans(
    events: Any,
    time: Spans,
    by: Keys,
    options: CorrelateOptions,
    *,
    gap: Duration | None = None,
    columns: Names = (),
) -> SpanRows:
    """The spans of one table that hold a moment, and have a time and a key; `columns` are read, too."""
    _check_known(time=time)
    check_options(options, CorrelateOptions)
    check_no_most(options, "this answer has no pairs")
    check_one_device(options, "this is none")
    arguments = _OneTable(
        overlapping(gap=gap), left_time=time, by=by, options=options,
        left_columns=columns, how="semi", is_one_stream=True,
    )  # fmt: skip
    (table,) = given_tables(events, None, arguments)
    for name in _columns_of(time):
        check_name(EVENTS, name, table.schema.names, _NAMING)
    arguments = arguments.settled(table.schema, table.schema)
    spec, times = resolved(table.schema, table.schema, arguments)
    payload = [*_columns_of(time), _ROW]
    plan = TablePlan(
        (arguments.keys, arguments.keys), (payload, []), times, options.invalid, spec, pa.schema([])
    )
    side, _, counts = plan.read_stream(_numbered(table))
    summary = JoinSummary(counts, None, None, None, "in memory", plan.tick, sides=arguments.sides)
    JoinReport.tell(summary, None)
    group = grouped_events(side, side)[0].group
    return _in_order(table, side, group, arguments.keys, time, times[0].scales[0])


def read_both(
    left: Any,
    right: Any,
    times: tuple[Spans, Spans],
    by: Keys,
    options: CorrelateOptions,
) -> tuple[SpanRows, SpanRows]:
    """The spans of two tables, in one tick, and all columns of the left one."""
    _check_known(left_time=times[0], right_time=times[1])
    check_options(options, CorrelateOptions)
    check_no_most(options, "this answer has no pairs")
    check_one_device(options, "this is none")
    asked = JoinArguments(
        overlapping(), left_time=times[0], right_time=times[1], by=by,
        options=options, left_columns="*", right_columns=(), how="semi",
    )  # fmt: skip
    if right is None:
        raise SchemaError(f"{argument('right')} must be {TABLES} (found None). Give both sides.")
    given = given_tables(left, right, asked)
    arguments, tables = with_known_columns(given, asked)
    spec, columns = resolved(tables[0].schema, tables[1].schema, arguments)
    keys = arguments.keys, arguments.right_keys
    own, others = ([*_columns_of(time), _ROW] for time in times)
    plan = TablePlan(keys, (own, others), columns, options.invalid, spec, pa.schema([]))
    (one, own_counts), (other, other_counts) = (
        plan.read(side, _numbered(table)) for side, table in enumerate(tables)
    )
    summary = JoinSummary(
        own_counts, other_counts, None, None, "in memory", plan.tick, sides=arguments.sides
    )
    JoinReport.tell(summary, None)
    groups = grouped_events(one, other)
    found = [
        _in_order(table, side, events.group, names, time, scales.scales[0])
        for table, side, events, names, time, scales in zip(
            given, (one, other), groups, keys, times, columns, strict=True
        )
    ]
    return found[0], found[1]


def _check_known(**times: Spans) -> None:
    for name, time in times.items():
        if isinstance(time, Spans) and time.clocks != (None, None):
            raise ConditionError(
                f"{argument(name)} takes no corrected_clock (found {brief(time)}). Name the columns of"
                " the table that coincide.corrected gives."
            )
        if not isinstance(time, Spans) or time.are_uncertain:
            raise ConditionError(
                f"{argument(name)} must be spans('start', 'end'), whose ends are known (found"
                f" {brief(time)}). Name its columns in spans(), without {argument('around')}."
            )


def _columns_of(time: Spans) -> list[str]:
    return [time.start, time.duration or time.end or time.start]


def _numbered(table: pa.Table) -> pa.Table:
    return table.append_column(_ROW, pa.array(np.arange(table.num_rows)))


def _in_order(
    table: pa.Table,
    side: Side,
    group: np.ndarray | None,
    keys: list[str],
    time: Spans,
    scale: TimeScale,
) -> SpanRows:
    group = np.zeros(len(side), np.int64) if group is None else group
    start, end = side.min_time, side.max_time
    holds = np.flatnonzero((group >= 0) & ((time.closed == "both") | (start < end)))
    order = holds[stable_order(start[holds], group[holds])]
    starts, ends, row = (column.take(pa.array(order)) for column in side.payload)
    if time.duration is not None:
        ends = ends_of(end[order], starts, scale)
    own = pa.table(side.keys, names=keys).take(pa.array(order))
    are_out = np.ones(table.num_rows, bool)
    are_out[side.payload[-1].to_numpy()[group >= 0]] = False
    return SpanRows(
        table, group[order], start[order], end[order], row.to_numpy(), own, time, (starts, ends), scale,
        are_out,
    )  # fmt: skip


def of_one_type(times: Sequence[pa.Array], tick: Tick, called: str) -> list[pa.Array]:
    """Times of several columns in a type that holds all of them."""
    kinds = list(dict.fromkeys(plain_type(each.type) for each in times))
    if len(kinds) == 1:
        return [each.cast(kinds[0]) for each in times]
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds):
        zones = [kind.tz for kind in kinds if pa.types.is_timestamp(kind)]
        common = pa.timestamp(tick.unit, next(iter(zones), None))
    else:
        try:
            fields = [pa.schema([("time", kind)]) for kind in kinds]
            common = pa.unify_schemas(fields, promote_options="permissive").field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise SchemaError(
                f"{called} has starts and ends of types that have none in common (found {kinds[0]} and"
                f" {kinds[1]}). Cast one of them."
            ) from None
    # Whole numbers next to floats become floats as these are.
    return [each.cast(common, safe=False) for each in times]


def joined_times(times: Sequence[pa.Array], tick: Tick, called: str) -> pa.Array:
    """The same, one after the other."""
    return one_array(pa.chunked_array(of_one_type(times, tick, called)))
