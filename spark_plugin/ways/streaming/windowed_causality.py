"""Causality through windows of a stream of tuples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from coincide.engine.events.timestamps import IntervalModel
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.model.errors import options_called
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.windowed_causality import ARRIVED, TupleFrame
from spark_plugin.tasks.monitors import CheckedPackTask
from spark_plugin.tasks.windowed_causality_streams import WindowMonitors, valid_tuples
from spark_plugin.tasks.wire import KEY_HASH
from spark_plugin.ways.streaming.monitors import MonitorArguments
from spark_plugin.ways.streaming.settings import told

_STATIC = "windowed_causality, which takes all tuples at once"


def windows_of_stream(
    events: DataFrame, arguments: WindowArguments, by: Sequence[str], asked: MonitorArguments
) -> DataFrame:
    """The causes and effects in a streaming DataFrame."""
    asked.check(events, "WindowedCausality", _STATIC)
    given = TupleFrame.of(events, arguments, by)
    with options_called("WindowOptions"):
        grid = asked.grid(events.sparkSession, given.columns.tick, beyond=0, has_keys=True)
    # Invalid tuples never reach a window.
    decided = told(arguments, ("options",)) | told(arguments.options, ("invalid",))
    decided |= {f"{name}_kind": given.rows.kind(name).simpleString() for name in given.rows.fields}
    settings = asked.settings(grid, given.columns.tick, {**decided, "by": list(by)})
    rows = given.stream_rows(f"{asked.name}_{asked.side}")
    task = CheckedPackTask(
        "left", arrow_schema(rows.drop(ARRIVED, KEY_HASH).schema), IntervalModel(), grid, settings,
        check=partial(valid_tuples, given.tuples), ends=(ARRIVED, ARRIVED),
    )  # fmt: skip
    monitors = partial(WindowMonitors, columns=given.tuples)
    return asked.monitored(rows, task, monitors, given.made, {}, given.columns.tick)
