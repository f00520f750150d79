"""Tables whose times are put right by the errors of their clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.events.corrected import CorrectedColumns, corrected_clock
from coincide.engine.events.frames import arrow_table, own_names
from coincide.engine.events.invalid_rows import example_of
from coincide.engine.events.keys import Keys
from coincide.engine.events.schemas import arrow_time_column, as_times, computed_time, type_of
from coincide.engine.events.sides import read_side
from coincide.engine.events.time_columns import TimeScale, resolve_tick, scale_of
from coincide.engine.reports.warnings import warn
from coincide.model.errors import SchemaError, UnmatchableRowsWarning
from coincide.model.options import CorrelateOptions
from coincide.model.sides import SIDES
from coincide.model.units import TIME_LIMIT

_EXACT = 2**53
"""Floats hold whole numbers below."""


def corrected(
    table: Any,
    time: str | Sequence[str],
    errors: Any,
    *,
    by: Keys = (),
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Put the times of a table right by the errors of their clock, for whatever takes no corrected clock.

    Such are `coincide.spans`, `coincide.merged`, `coincide.border_crossing_tables` and
    `coincide.transition_tables`. ``around("t", "10ms")`` of the result says what the clock's spread is.

    Parameters
    ----------
    table : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Events, spans or readings.
    time : str or sequence of str
        Columns of stamps of this clock, such as ``("start", "end")``.
    errors : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, path, or
        DataFrame of Spark
        As `coincide.corrected_clock` takes them.
    by : str or sequence of str and (str, str)
        Columns that name the clock, as those of `coincide.corrected_clock`.
    options : CorrelateOptions
        ``unit`` and ``tick`` count here. If times are numbers, they must be those with which errors
        were found.

    Returns
    -------
    pa.Table
        All columns in their order, those of `time` corrected. A stamp before the first segment, after the
        last or between two has no one time: such rows are left out. A null stays null. Dates become
        timestamps. Numbers keep their unit: they are int64 where a tick is one unit, and float64 where it
        is not.

    Raises
    ------
    ConditionError
        If `by` is missing where there are several clocks.
    SchemaError
        If a column is missing or of a type that cannot serve, or a table is a DataFrame of Spark.
    DataError
        If a time is infinite, NaN or out of range.

    Warns
    -----
    UnmatchableRowsWarning
        If rows are left out.
    """
    side = SIDES[0]
    if hasattr(table, "sparkSession"):
        raise SchemaError(
            f"a table is a DataFrame of Spark (found {type(table).__name__}). Give its .toArrow()."
        )
    names = [time] if isinstance(time, str) else list(time)
    clocks = [corrected_clock(name, errors, by=by) for name in names]
    own = [each for clock in clocks for each, _ in clock.by]
    found = arrow_table(side, table, list(dict.fromkeys([*own_names(table, side), *names, *own])))
    columns = [arrow_time_column(side, name, type_of(found.schema, side, name)) for name in names]
    tick = resolve_tick(columns, options)
    given, lost = found, np.zeros(len(found), bool)
    for column, clock in zip(columns, clocks, strict=True):
        scale = scale_of(column, tick, options)
        events, _ = read_side(given, CorrectedColumns((scale, scale), given=clock), [], [], "raise")
        is_known = np.ones(len(events), bool) if events.matchable is None else events.matchable
        is_known = is_known & (np.asarray(events.shapes) == 0)
        lost |= ~is_known & given[column.name].is_valid().to_numpy()
        kind = found.schema.field(column.name).type
        values = _as_given(events.max_time, ~is_known, kind, scale)
        found = found.set_column(found.column_names.index(column.name), column.name, values)
    if not lost.any():
        return found
    # A null would say of an end that it has not come, which is not known of a stamp without a time.
    warn(
        f"table, {len(given):,} rows: skipped {int(lost.sum()):,} with {' or '.join(names)} at a time that"
        f" no segment of the clock covers (found {example_of(given, lost, names)}).",
        UnmatchableRowsWarning,
    )
    return found.filter(pa.array(~lost))


def _as_given(ticks: np.ndarray, null: np.ndarray, kind: pa.DataType, scale: TimeScale) -> pa.Array:
    """Ticks as times of the type of a column, or as numbers in its unit."""
    ticks = np.where(null, 0, ticks)
    if scale.column.nanoseconds is not None:
        times = pa.array(ticks, pa.int64(), mask=null)
        return as_times(times, computed_time(kind, scale.tick), scale.tick)
    if scale.factor == 1 and scale.column.family == "integer":
        return pa.array(ticks, pa.int64(), mask=null)
    largest = int(np.abs(ticks).max(initial=0))
    if not scale.column.family == "float" and min(largest, TIME_LIMIT) >= _EXACT:
        raise SchemaError(
            f"left.{scale.column.name} cannot hold corrected times exactly (found {largest} ticks)."
            " Cast it to a timestamp, or give a tick of one unit."
        )
    numbers = ticks * float(scale.factor.denominator) / float(scale.factor.numerator)
    return pa.array(numbers, pa.float64(), mask=null)
