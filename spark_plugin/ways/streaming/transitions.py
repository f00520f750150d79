"""Region transitions of a stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from coincide.engine.events.timestamps import IntervalModel
from coincide.engine.transitions.arguments import TransitionArguments
from coincide.model.errors import ConditionError, argument
from coincide.model.units import Duration, Tick
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.frames.transitions import RESULT_WORDS, CrossingFrame
from spark_plugin.tasks.counting import valid_rows
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.transition_streams import TransitionMonitors
from spark_plugin.tasks.transitions import HIGH, KIND, LOW, QUERY, STREAM, EventRows
from spark_plugin.ways.streaming.arguments import ticks
from spark_plugin.ways.streaming.monitors import MonitorArguments
from spark_plugin.ways.streaming.settings import told

_STATIC = "transitions, which takes all events at once"


def transitions_of_stream(
    events: DataFrame,
    arguments: TransitionArguments,
    longest: Duration | None,
    asked: MonitorArguments,
) -> DataFrame:
    """The region transitions of a streaming DataFrame."""
    asked.check(events, "transition_tables", _STATIC)
    given = CrossingFrame.of(events, arguments)
    check_distinct_names(given.columns.schema.names)
    tick = given.columns.tick
    most = _longest(arguments, longest, tick)
    grid = asked.grid(events.sparkSession, tick, beyond=most, has_keys=True)
    kinds = {name: given.rows.kind(name).simpleString() for name in arguments.columns}
    settings = asked.settings(grid, tick, {**decided_by(arguments, kinds), "tick": str(tick.unit)})
    rows = given.stream_rows(f"{asked.name}_{asked.side}", most)
    task = CheckedPackTask(
        "left", arrow_schema(rows.select(QUERY, STREAM, LOW, HIGH, KIND).schema), IntervalModel(),
        grid, settings, check=partial(valid_rows, EventRows, given.columns), ends=(LOW, HIGH), longest=most,
        drops_longer=arguments.options.invalid == "drop",
    )  # fmt: skip
    made = list(zip(given.columns.schema.names, given.result_kinds, strict=True))
    monitors = partial(TransitionMonitors, columns=given.columns)
    return asked.monitored(rows, task, monitors, made, RESULT_WORDS, tick)


def decided_by(arguments: TransitionArguments, kinds: Mapping[str, str]) -> dict[str, Any]:
    """All that decides what is found, but for repeated events: a late one may ask for another way."""
    return {
        **told(arguments, ("repeated", "options")),
        **{f"{name}_kind": kind for name, kind in kinds.items()},
    }


def _longest(arguments: TransitionArguments, given: Duration | None, tick: Tick) -> int:
    """From the min to the max time of an event at most, ticks."""
    lower, upper = arguments.clocks
    if lower == upper and given is None:
        return 0
    if given is None:
        raise ConditionError(
            f"{argument('longest')} is missing: events are in order of their midpoints, and the"
            " lengths say when no earlier one is to come. State the longest, for example"
            f" {argument('longest', '1min')}."
        )
    return ticks("longest", given, tick)
