"""Causality through a bounded window for each key, on DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coincide.engine.causality.arguments import Place
from coincide.engine.events.keys import Names, check_names, names_of
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.engine.windowed_causality.reports import WindowReport
from coincide.engine.windowed_causality.window import WindowedCausality
from coincide.model.causality.condition import CausalityCondition
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, argument
from coincide.model.units import Duration
from coincide.model.windowed_causality import WindowOptions
from spark_plugin.operators.borders import border_crossing_streams

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@documented(WindowedCausality)
def windowed_causality(
    events: DataFrame,
    condition: CausalityCondition,
    *,
    by: str | Sequence[str],
    arrival: str,
    time: str = "time",
    place: Place = (),
    role: str | None = None,
    home: Sequence[float] | float = (),
    columns: Names = ("id",),
    options: WindowOptions = WindowOptions(),
    report: WindowReport | None = None,
) -> DataFrame:
    """Find causes and effects through a window for each key, on Spark.

    What a `coincide.WindowedCausality` of each key would find, given that key's tuples in order of
    arrival. The tuples of a key are brought to one task and put in order there; of those that arrived at
    once the order is that of their valid times, roles, places and columns. No job runs before the result
    is used.

    Parameters
    ----------
    events : DataFrame
        Tuples, in any order.
    condition, time, place, role, home, columns, options
        As in `coincide.WindowedCausality`.
    by : str or sequence of str
        Columns of the key. Tuples of other keys do not meet, nor take each other's place. A null equals
        nothing.
    arrival : str
        Column of the times of arrival, by which tuples are put in order: rows of a DataFrame have none. It
        may be that of valid times.
    report : WindowReport, optional
        Receives what became of the tuples, once the result was computed. Windows are empty by then.

    Returns
    -------
    DataFrame
        Columns `by`, ``cause_...``, ``effect_...``, delta (T_effect - T_cause, bigint, named as
        in `coincide.causality_tables`) and, where there are places, ``distance`` (double).

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If an argument makes no sense, or events are streaming.
    BackendError
        If Spark's Python workers cannot run this.

    Rows that are invalid, and are to be refused, fail the job in which the result is computed: then such
    an error comes from Spark, as a PythonException.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning
        When the report is asked.
    """
    from spark_plugin.frames.windowed_causality import plan_windows

    WindowReport.check(report)
    arguments = WindowArguments(condition, time, place, arrival, role, home, columns, options)
    _check_keys(by, arrival)
    planned = plan_windows(events, arguments, names_of(by), observe=report is not None)
    return planned.reported_to(report)


@documented(windowed_causality, border_crossing_streams)
def windowed_causality_streams(
    events: DataFrame,
    condition: CausalityCondition,
    *,
    by: str | Sequence[str],
    arrival: str,
    delay: Duration,
    ahead: Duration | None = None,
    clock: DataFrame | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "windows",
    time: str = "time",
    place: Place = (),
    role: str | None = None,
    home: Sequence[float] | float = (),
    columns: Names = ("id",),
    options: WindowOptions = WindowOptions(),
) -> DataFrame:
    """Find causes and effects in a streaming DataFrame, through a window for each key.

    All rows together are those of `coincide.windowed_causality` for all tuples that are not late. Tuples
    wait in Spark's state by slices of their arrival, like in `coincide.border_crossing_streams`. The state
    also holds the window of each key.

    Parameters
    ----------
    events : DataFrame
        A stream of tuples. Its times need a unit.
    condition, by, arrival, time, place, role, home, columns, options
        As in `coincide.windowed_causality`. Slices, the watermark and delays go by `arrival`.
    delay, ahead, clock, slice_length, key_buckets, name
        As in `coincide.border_crossing_streams`.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of
        `coincide.windowed_causality`.

    Raises
    ------
    SchemaError, ConditionError, BackendError
        As `coincide.border_crossing_streams`.

    Examples
    --------
    >>> pairs = windowed_causality_streams(
    ...     quakes, CausalityCondition([Temporal(0, "20min"), Spatial(3)]), place=("x", "y"),
    ...     by="region", arrival="seen_at", delay="10s",
    ... )
    """
    from spark_plugin.ways.streaming.monitors import MonitorArguments
    from spark_plugin.ways.streaming.windowed_causality import windows_of_stream

    asked = MonitorArguments(
        operator="windowed_causality_streams", side="events", delay=delay, ahead=ahead, clock=clock,
        slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    arguments = WindowArguments(condition, time, place, arrival, role, home, columns, options)
    _check_keys(by, arrival)
    return windows_of_stream(events, arguments, names_of(by), asked)


def _check_keys(by: str | Sequence[str], arrival: str | None) -> None:
    """Refuse one window over all rows, and rows without an order."""
    check_names("by", by)
    if not names_of(by) or arrival is None:
        raise ConditionError(
            "on Spark each key has a window, and rows have no order. Name the columns of the key"
            f" with {argument('by')}, and the column of arrival times with {argument('arrival')}."
            " For one window over all rows use WindowedCausality."
        )
