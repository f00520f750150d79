"""What right spans cover of left ones, and what they leave of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.keys import Keys
from coincide.engine.events.rows import numbers_in_runs
from coincide.engine.events.span_ends import OPEN_END
from coincide.engine.events.spans import Spans
from coincide.engine.join.coverage import unions_of
from coincide.engine.join.delta import in_unit
from coincide.engine.join.span_rows import SpanRows, joined_times, read_both
from coincide.engine.join.spec import check_output_names
from coincide.model.counters import offsets_of
from coincide.model.docstrings import documented
from coincide.model.options import CorrelateOptions

COVERED = "covered"


def difference(
    left: Any,
    right: Any,
    *,
    left_time: Spans = Spans("start", "end"),
    right_time: Spans = Spans("start", "end"),
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Find what no right span covers of each left one, of each key by itself, in this process.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
    left_time, right_time : Spans
        Columns of starts and ends, made by `spans`.
    by : str or sequence of str and (str, str)
        Columns that are equal in a left span and the right ones that count, as for `correlate_tables`.
    options : CorrelateOptions
        Units, tick, ``invalid``, ``left_longest`` and ``right_longest`` count here.

    Returns
    -------
    pa.Table
        A row for each piece that is left of a left span, with all columns of `left`. The start and the end
        are those of the piece, in the order of `left`, then of time. Moments do not count: a piece is
        longer than 0. Left spans that hold no moment, and rows without a time or a key, have no pieces.
        A column of durations gives way to one of ends, ``end``. Where starts and ends of both sides have
        several types, both columns have one that holds all of them.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> left = [{"id": "a", "start": 0, "end": 9}, {"id": "b", "start": 3, "end": 4}]
    >>> found = difference(left, [{"start": 2, "end": 5}])
    >>> [tuple(row.values()) for row in found.to_pylist()]
    [('a', 0, 2), ('a', 5, 9)]
    """
    own, others = read_both(left, right, (left_time, right_time), by, options)
    met = _Met.of(own, others)
    counts = met.stop - met.start + 1
    span = np.repeat(np.arange(own.row.size), counts)
    number = numbers_in_runs(span != np.concatenate([[-1], span[:-1]]))
    # A piece begins where the span does, or a union ends, and ends where the next one begins.
    union = met.start[span] + number
    is_first, is_last = number == 0, number == counts[span] - 1
    before, after = np.where(is_first, 0, union - 1), np.where(is_last, 0, union)
    begins = np.where(is_first, own.start[span], _taken(met.ends, before))
    stops = np.where(is_last, own.end[span], _taken(met.begins, after))
    n, m = own.row.size, others.row.size
    given = [*own.times, *others.times]
    times = joined_times(given, own.tick, "left and right")
    first, final = _taken(met.first, after), _taken(met.final, before)
    begin = np.where(is_first, span, 2 * n + m + final)
    stop = np.where(is_last, n + span, 2 * n + first)
    kept = np.flatnonzero(begins < stops)
    kept = kept[np.argsort(own.row[span[kept]], kind="stable")]
    table = own.table.take(pa.array(own.row[span[kept]]))
    pieces = [times.take(pa.array(each[kept])) for each in (begin, stop)]
    if own.names.duration is not None:
        table = table.drop_columns(own.names.duration)
        check_output_names([*table.column_names, own.columns[1]])
        table = table.append_column(own.columns[1], pieces[1])
    for name, column in zip(own.columns, pieces, strict=True):
        table = table.set_column(table.column_names.index(name), name, column)
    return table


@documented(difference)
def covered(
    left: Any,
    right: Any,
    *,
    left_time: Spans = Spans("start", "end"),
    right_time: Spans = Spans("start", "end"),
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Find how much of each left span right ones cover, of each key by itself, in this process.

    Parameters
    ----------
    left, right, left_time, right_time, by, options
        As in `coincide.difference`.

    Returns
    -------
    pa.Table
        All columns and rows of `left`, in their order, and ``covered``: int64, the time that right spans
        cover, each moment once. The name says what it counts, such as ``covered_us``. It is null in rows
        without a time or a key, and of what goes on for ever.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning

    Examples
    --------
    >>> left = [{"start": 0, "end": 9}, {"start": 20, "end": 30}]
    >>> covered(left, [{"start": 2, "end": 5}, {"start": 4, "end": 6}])["covered"].to_pylist()
    [4, 0]
    """
    own, others = read_both(left, right, (left_time, right_time), by, options)
    met = _Met.of(own, others)
    until = offsets_of(met.ends - met.begins)
    found = until[met.stop] - until[met.start]
    # Only a part of the first and the last union that are met may lie in the span.
    has_any = met.stop > met.start
    first, last = (np.where(has_any, each, 0) for each in (met.start, met.stop - 1))
    found -= np.where(has_any, np.maximum(own.start - _taken(met.begins, first), 0), 0)
    found -= np.where(has_any, np.maximum(_taken(met.ends, last) - own.end, 0), 0)
    goes_on = has_any & (own.end == OPEN_END) & (_taken(met.ends, last) == OPEN_END)
    name = in_unit(COVERED, own.tick)
    check_output_names([*own.table.column_names, name])
    values, is_null = np.zeros(own.table.num_rows, np.int64), own.are_left_out.copy()
    values[own.row], is_null[own.row] = found, goes_on
    return own.table.append_column(name, pa.array(values, mask=is_null))


class _Met(NamedTuple):
    """The unions of right spans in the order of keys and times, and which of them each left span meets."""

    # Those of no length are left out, as moments do not count.
    begins: np.ndarray  # ticks
    ends: np.ndarray  # ticks
    first: np.ndarray  # right spans that begin and end them
    final: np.ndarray
    start: np.ndarray  # each left span's first union, and after the last one
    stop: np.ndarray

    @classmethod
    def of(cls, left: SpanRows, right: SpanRows) -> _Met:
        """Those that have more than a moment in common with a left span."""
        unions = unions_of(right)
        lasts = right.start[unions.first] < right.end[unions.final]
        first, final = unions.first[lasts], unions.final[lasts]
        begins, ends, group = right.start[first], right.end[final], right.group[first]
        start = _places(group, ends, left.group, left.start, "right")
        stop = _places(group, begins, left.group, left.end, "left")
        # A span of no length in a union meets nothing.
        return cls(begins, ends, first, final, start, np.maximum(start, stop))


def _places(
    groups: np.ndarray, times: np.ndarray, own_groups: np.ndarray, own_times: np.ndarray, side: Any
) -> np.ndarray:
    """Where times would be among others, which are in the order of groups, then of times."""
    ticks = np.unique(times)
    # One number ascends by group, then by time.
    places = groups * (ticks.size + 1) + np.searchsorted(ticks, times)
    own = own_groups * (ticks.size + 1) + np.searchsorted(ticks, own_times, side)
    return np.searchsorted(places, own)


def _taken(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Values by index; zeros if there are no values, as then none of them counts."""
    return values[index] if values.size else np.zeros(index.size, np.int64)
