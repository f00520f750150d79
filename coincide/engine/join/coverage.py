"""What the spans of one table cover together: their union, and how many of them hold at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.keys import Keys
from coincide.engine.events.schemas import check_name, one_array, plain_type
from coincide.engine.events.sides import grouped_events
from coincide.engine.events.span_ends import ends_of
from coincide.engine.events.spans import Spans
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TablePlan, given_tables, resolved
from coincide.engine.join.spec import check_output_names
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.model.errors import ConditionError, SchemaError, argument, brief
from coincide.model.options import CorrelateOptions
from coincide.model.ordering import latest_so_far, stable_order
from coincide.model.relations import overlapping
from coincide.model.units import Duration, Tick

_EVENTS = "events"
"""What messages call the rows: as the argument."""
_NAMING = f". Name the columns with {argument('time')}=spans('begin', 'end')"
_TOUCHING = 0
_OVERLAPPING = -1
"""The most time between spans that are united, where a tick is the least that they can overlap."""


def merged(
    events: Any,
    gap: Duration | None = None,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
    case_fold: bool = False,
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Unite the spans of a table that overlap, of each key by itself, in this process.

    Spans are also united if they touch and one of them has the moment at which they do.

    Parameters
    ----------
    events : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
    gap : int, str or timedelta, optional
        The most time between spans that are united all the same.
    time : Spans
        Columns of starts and ends, made by `spans`.
    by : str or sequence of str
        Columns whose values are united by themselves.
    case_fold : bool
        Whether texts of `by` are equal if they are so in lower case, letter by letter.
    options : CorrelateOptions
        Units, tick, ``invalid`` and ``left_longest`` count here.

    Returns
    -------
    pa.Table
        Columns `by`, the start and the end, and ``spans``: int64, how many rows it unites. In the order of
        keys as they first come, then of time. Spans that hold no moment, and rows without a time or a
        key, are left out. Each start and each end is one of `events`, of the same type; without a column
        of ends they are computed, in a column ``end``. The end of what goes on is null.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> merged([{"start": 0, "end": 5}, {"start": 3, "end": 9}, {"start": 12, "end": 14}]).to_pylist()
    [{'start': 0, 'end': 9, 'spans': 2}, {'start': 12, 'end': 14, 'spans': 1}]
    """
    rows = _read(_CoverageArguments.of(time, by, case_fold, options, gap), events)
    group, start, end = rows.group, rows.start, rows.end
    latest = latest_so_far(group, end)
    least = _TOUCHING if time.closed != "neither" else _OVERLAPPING
    apart = rows.tick.count(gap) if gap is not None else least
    begins = np.ones(start.size, bool)
    begins[1:] = (group[1:] != group[:-1]) | (start[1:] - latest[:-1] > apart)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], start.size) - 1
    count = np.diff(np.append(first, start.size))
    reaches = np.flatnonzero(end == np.repeat(latest[last[: first.size]], count))
    final = reaches[np.searchsorted(reaches, first)]
    starts, ends = rows.times
    return rows.table(
        first, starts.take(pa.array(first)), ends.take(pa.array(final)), "spans", count
    )


def coverage(
    events: Any,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
    case_fold: bool = False,
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Find how many spans of a table hold at a time, of each key by itself, in this process.

    Parameters
    ----------
    events, time, by, case_fold, options
        Like those for `merged`.

    Returns
    -------
    pa.Table
        Columns `by`, the start and the end of a stretch of time, and ``depth``: int64, how many spans hold
        all of it, at least one. In the order of keys as they first come, then of time. Moments do not
        count: a stretch is longer than 0. Times are those of `events`, of the same type. Where starts and
        ends have two types, both columns have one that holds all of them.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> found = coverage([{"start": 0, "end": 5}, {"start": 3, "end": 9}])
    >>> [tuple(row.values()) for row in found.to_pylist()]
    [(0, 3, 1), (3, 5, 2), (5, 9, 1)]
    """
    rows = _read(_CoverageArguments.of(time, by, case_fold, options), events)
    at = np.concatenate([rows.start, rows.end])
    group = np.tile(rows.group, 2)
    row = np.tile(np.arange(rows.start.size), 2)
    order = stable_order(at, group)
    change = np.where(order < rows.start.size, 1, -1)
    at, group, row = at[order], group[order], row[order]
    # A key ends at depth 0, so the next one begins there.
    depth = np.cumsum(change)
    is_last = np.ones(at.size, bool)
    is_last[:-1] = (at[1:] != at[:-1]) | (group[1:] != group[:-1])
    edges = np.flatnonzero(is_last)
    changes = np.diff(depth[edges], prepend=0) != 0
    edges = edges[changes]
    filled = np.flatnonzero(depth[edges] > 0)
    begin, stop = edges[filled], edges[filled + 1]
    times = one_array(pa.chunked_array(_of_one_type(rows)))
    starts, ends = (times.take(pa.array(order[each])) for each in (begin, stop))
    return rows.table(row[begin], starts, ends, "depth", depth[begin])


@dataclass(frozen=True)
class _CoverageArguments(JoinArguments):
    """What is asked of the spans of one table, as a join of them with themselves."""

    prefixes: ClassVar[tuple[str, str]] = (_EVENTS, _EVENTS)

    @classmethod
    def of(
        cls,
        time: Spans,
        by: Keys,
        case_fold: bool,
        options: CorrelateOptions,
        gap: Duration | None = None,
    ) -> _CoverageArguments:
        if not isinstance(time, Spans) or time.are_uncertain:
            raise ConditionError(
                f"{argument('time')} must be spans('start', 'end'), whose ends are known (found"
                f" {brief(time)}). Name its columns in spans(), without {argument('around')}."
            )
        return cls(
            overlapping(gap=gap), left_time=time, by=by, case_fold=case_fold, options=options,
            left_columns=(), how="semi", is_one_stream=True,
        )  # fmt: skip

    @property
    def sides(self) -> tuple[str, str]:
        """As in `PairArguments`."""
        return self.prefixes

    @property
    def _names_of_columns(self) -> list[str]:
        return ["left_columns", "right_columns"]


class _Rows(NamedTuple):
    """The spans that hold a moment, in the order of keys and starts."""

    group: np.ndarray
    start: np.ndarray
    end: np.ndarray
    keys: pa.Table
    names: Spans
    times: tuple[pa.Array, pa.Array]
    tick: Tick

    def table(
        self, of: np.ndarray, start: pa.Array, end: pa.Array, name: str, count: np.ndarray
    ) -> pa.Table:
        """Stretches of time, each with the key of one of the rows."""
        names = [*self.keys.column_names, self.names.start, self.names.end or "end", name]
        check_output_names(names)
        keys = self.keys.take(pa.array(of)).columns
        return pa.table([*keys, start, end, pa.array(count)], names=names)


def _read(arguments: _CoverageArguments, events: Any) -> _Rows:
    (table,) = given_tables(events, None, arguments)
    schema, time = table.schema, arguments.left_time
    assert isinstance(time, Spans)
    columns = [time.start, time.duration or time.end or time.start]
    for name in columns:
        check_name(_EVENTS, name, schema.names, _NAMING)
    arguments = arguments.settled(schema, schema)
    spec, times = resolved(schema, schema, arguments)
    keys = arguments.keys
    plan = TablePlan(
        (keys, keys),
        (columns, []),
        times,
        arguments.options.invalid,
        spec,
        pa.schema([]),
    )
    side, _, counts = plan.read_stream(table)
    JoinReport.tell(
        JoinSummary(counts, None, None, None, "in memory", plan.tick, sides=arguments.sides), None
    )
    group = grouped_events(side, side, case_fold=arguments.case_fold)[0].group
    group = np.zeros(len(side), np.int64) if group is None else group
    start, end = side.min_time, side.max_time
    holds = np.flatnonzero((group >= 0) & ((time.closed == "both") | (start < end)))
    order = holds[stable_order(start[holds], group[holds])]
    starts, ends = (column.take(pa.array(order)) for column in side.payload)
    if time.duration is not None:
        ends = ends_of(end[order], starts, times[0].scales[0])
    return _Rows(
        group[order], start[order], end[order], pa.table(side.keys, names=keys).take(pa.array(order)),
        time, (starts, ends), plan.tick,
    )  # fmt: skip


def _of_one_type(rows: _Rows) -> list[pa.Array]:
    """Starts and ends in a type that holds both."""
    kinds = [plain_type(each.type) for each in rows.times]
    if kinds[0] == kinds[1]:
        return [each.cast(kinds[0]) for each in rows.times]
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds):
        zones = [kind.tz for kind in kinds if pa.types.is_timestamp(kind)]
        common = pa.timestamp(rows.tick.unit, next(iter(zones), None))
    else:
        try:
            fields = [pa.schema([("time", kind)]) for kind in kinds]
            common = pa.unify_schemas(fields, promote_options="permissive").field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise SchemaError(
                f"{_EVENTS} has starts and ends of types that have none in common (found {kinds[0]} and"
                f" {kinds[1]}). Cast one of them."
            ) from None
    # Whole numbers next to floats become floats as these are.
    return [each.cast(common, safe=False) for each in rows.times]
