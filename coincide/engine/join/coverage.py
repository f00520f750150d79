"""What the spans of one table cover together: unions, gaps, and how many of them hold at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.intervals import instant_of
from coincide.engine.events.keys import Keys
from coincide.engine.events.span_ends import ends_of
from coincide.engine.events.spans import Spans
from coincide.engine.join.span_rows import EVENTS, SpanRows, joined_times, read_spans
from coincide.engine.join.spec import check_output_names
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument, brief
from coincide.model.options import CorrelateOptions, check_truth
from coincide.model.ordering import latest_so_far, stable_order
from coincide.model.units import Duration

_TOUCHING = 0
_OVERLAPPING = -1
"""The most time between spans that are united, where a tick is the least that they can overlap."""
UNION = "union", "union_start", "union_end"
"""Columns of `labelled`."""


def merged(
    events: Any,
    gap: Duration | None = None,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
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
    rows = read_spans(events, time, by, options, gap=gap)
    found = unions_of(rows, gap)
    return rows.stretches(found.first, *found.times(rows), spans=found.sizes)


class Unions(NamedTuple):
    """Spans that are united, by their places in `SpanRows`."""

    first: np.ndarray  # the first of each union
    final: np.ndarray  # one that ends last
    sizes: np.ndarray  # how many spans

    def times(self, rows: SpanRows) -> tuple[pa.Array, pa.Array]:
        """When each union begins and ends."""
        starts, ends = rows.times
        return starts.take(pa.array(self.first)), ends.take(pa.array(self.final))


def unions_of(rows: SpanRows, gap: Duration | None = None) -> Unions:
    """The unions of spans that overlap, or touch without a moment missing, or are near enough."""
    group, start, end = rows.group, rows.start, rows.end
    latest = latest_so_far(group, end)
    least = _TOUCHING if rows.names.closed != "neither" else _OVERLAPPING
    apart = rows.tick.count(gap) if gap is not None else least
    begins = np.ones(start.size, bool)
    begins[1:] = (group[1:] != group[:-1]) | (start[1:] - latest[:-1] > apart)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], start.size) - 1
    count = np.diff(np.append(first, start.size))
    reaches = np.flatnonzero(end == np.repeat(latest[last[: first.size]], count))
    return Unions(first, reaches[np.searchsorted(reaches, first)], count)


@documented(merged)
def labelled(
    events: Any,
    gap: Duration | None = None,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Say of each row which union of `merged` it belongs to, in this process.

    Parameters
    ----------
    events, gap, time, by, options
        As in `coincide.merged`.

    Returns
    -------
    pa.Table
        All columns and rows of `events`, in their order, and ``union``: int64, the number of a row of
        `merged`, from 0; and ``union_start`` and ``union_end``, when that begins and ends. They are null in
        rows that `merged` leaves out.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> found = labelled([{"start": 12, "end": 14}, {"start": 0, "end": 5}, {"start": 3, "end": 9}])
    >>> found["union"].to_pylist()
    [1, 0, 0]
    """
    rows = read_spans(events, time, by, options, gap=gap, columns="*")
    found = unions_of(rows, gap)
    number = np.full(rows.table.num_rows, -1)
    number[rows.row] = np.repeat(np.arange(found.sizes.size), found.sizes)
    label = pa.array(number, mask=number < 0)
    columns = [label, *(each.take(label) for each in found.times(rows))]
    check_output_names([*rows.table.column_names, *UNION])
    table = rows.table
    for name, column in zip(UNION, columns, strict=True):
        table = table.append_column(name, column)
    return table


@documented(merged)
def coverage(
    events: Any,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
    bounds: tuple[Any, Any] | None = None,
    zeros: bool = False,
) -> pa.Table:
    """Find how many spans of a table hold at a time, of each key by itself, in this process.

    Parameters
    ----------
    events, time, by, options
        As in `coincide.merged`.
    bounds : (time, time), optional
        Two times like those of starts: what lies outside them is left out.
    zeros : bool
        Whether stretches that no span covers are in the output, too, of depth 0. They lie between the spans
        of a key; with `bounds` also between these and the bounds.

    Returns
    -------
    pa.Table
        Columns `by`, the start and the end of a stretch of time, and ``depth``: int64, how many spans hold
        all of it, at least one but for `zeros`. Neighbours of equal depth are one stretch. In the order of
        keys as they first come, then of time. Moments do not count: a stretch is longer than 0. Times are
        those of `events`, of the same type. Where starts and ends have two types, both columns have one
        that holds all of them.

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
    check_truth("zeros", zeros)
    rows = read_spans(events, time, by, options)
    found, (starts, ends) = _stretches(rows, _bounds(rows, bounds, options), zeros)
    return rows.stretches(found.row, starts, ends, depth=found.depth)


@documented(merged)
def gaps(
    events: Any,
    bounds: tuple[Any, Any] | None = None,
    *,
    time: Spans = Spans("start", "end"),
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Find the time that no span of a table covers, of each key by itself, in this process.

    Parameters
    ----------
    events, time, by, options
        As in `coincide.merged`.
    bounds : (time, time), optional
        Two times like those of starts, between which gaps are sought. Default: between the spans of each
        key. For bounds of each key use `difference` of these and the events.

    Returns
    -------
    pa.Table
        Columns `by`, the start and the end of a gap, as `coverage` has them. Keys without a span that
        holds a moment have no rows.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> gaps([{"start": 0, "end": 5}, {"start": 8, "end": 9}], (-1, 9)).to_pylist()
    [{'start': -1, 'end': 0}, {'start': 5, 'end': 8}]
    """
    rows = read_spans(events, time, by, options)
    found, times = _stretches(rows, _bounds(rows, bounds, options), zeros=True)
    is_gap = found.depth == 0
    starts, ends = (each.filter(pa.array(is_gap)) for each in times)
    return rows.stretches(found.row[is_gap], starts, ends)


class _Stretches(NamedTuple):
    """Stretches of time in which depth is the same."""

    row: np.ndarray  # one of the key, of `SpanRows`
    depth: np.ndarray


_Ends = tuple[int, int]


def _bounds(rows: SpanRows, given: Any, options: CorrelateOptions) -> _Ends | None:
    """The two times that are given, in ticks."""
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ConditionError(
            f"{argument('bounds')} takes two times, the first and the last one (found {brief(given)})."
        )
    first, last = (instant_of("bounds", each, rows.scale, options) for each in given)
    if first >= last:
        raise ConditionError(
            f"{argument('bounds')} must end after they begin (found {brief(given)}). Swap the two."
        )
    return first, last


def _stretches(
    rows: SpanRows, bounds: _Ends | None, zeros: bool
) -> tuple[_Stretches, tuple[pa.Array, pa.Array]]:
    """Stretches of each key between its first and last time, or the bounds, and when they begin and end."""
    n = rows.start.size
    keys, firsts = np.unique(rows.group, return_index=True)
    if bounds is None:
        keys = firsts = keys[:0]
    elif not rows.keys.column_names:  # what no span covers is known of no spans, too
        keys = firsts = np.zeros(1, np.int64)
    ends = np.repeat(np.array(bounds or (), np.int64), keys.size)
    at = np.concatenate([rows.start, rows.end, ends])
    group = np.concatenate([rows.group, rows.group, np.tile(keys, 2 * bool(keys.size))])
    row = np.concatenate([np.tile(np.arange(n), 2), np.tile(firsts, 2 * bool(keys.size))])
    order = stable_order(at, group)
    change = np.where(order < n, 1, np.where(order < 2 * n, -1, 0))
    at, group, row = at[order], group[order], row[order]
    # A key ends at depth 0, so the next one begins there.
    depth = np.cumsum(change)
    is_last = np.ones(at.size, bool)
    is_last[:-1] = (at[1:] != at[:-1]) | (group[1:] != group[:-1])
    edges = np.flatnonzero(is_last)
    is_edge = np.diff(depth[edges], prepend=0) != 0
    if bounds is not None:
        is_edge |= np.isin(at[edges], bounds)
    edges = edges[is_edge]
    begin, stop = edges[:-1], edges[1:]
    is_found = (group[begin] == group[stop]) & (zeros | (depth[begin] > 0))
    if bounds is not None:
        is_found &= (at[begin] >= bounds[0]) & (at[stop] <= bounds[1])
    begin, stop = begin[is_found], stop[is_found]
    given = [*rows.times, _as_starts(rows, ends)]
    times = joined_times(given, rows.tick, EVENTS)
    starts, stops = (times.take(pa.array(order[each])) for each in (begin, stop))
    return _Stretches(row[begin], depth[begin]), (starts, stops)


def _as_starts(rows: SpanRows, ticks: np.ndarray) -> pa.Array:
    """Bounds in ticks as times of the type of starts, if that has them."""
    starts, _ = rows.times
    found = ends_of(ticks, starts, rows.scale)
    try:
        return found.cast(starts.type)
    except pa.ArrowInvalid:
        return found
