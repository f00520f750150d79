"""Clusters of a table's events, in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityCondition
from coincide.errors import SchemaError
from coincide.options import CorrelateOptions
from spark_plugin.worker.arrow.schemas import can_be_key, type_of
from spark_plugin.worker.causality.arguments import (
    MATCHLESS,
    Place,
    check_condition,
    check_places,
    check_time,
    resolved_columns,
)
from spark_plugin.worker.causality.events import placed_stream
from spark_plugin.worker.causality.join import read_placed
from spark_plugin.worker.causality.places import (
    Coordinate,
    check_coordinate_types,
    coordinates,
)
from spark_plugin.worker.column_names import Names, check_names, names_of
from spark_plugin.worker.emission.spec import check_output_names
from spark_plugin.worker.pair_arguments import EVENT, check_options
from spark_plugin.worker.reports.reports import JoinSummary
from spark_plugin.worker.timestamps.names import GivenTimes, arrow_clocks, timestamp_names


@dataclass(frozen=True)
class ClusterArguments:
    """What is asked of a clustering: the arguments of `coincide.clusters`.

    Raises
    ------
    SchemaError
        If the condition is none.
    ConditionError
        If an argument makes no sense, or the condition needs places and none are given.
    """

    condition: CausalityCondition
    time: GivenTimes = "time"
    place: Place = ()
    by: Names = ()
    columns: Names = ("id",)
    options: CorrelateOptions = CorrelateOptions()

    def __post_init__(self) -> None:
        check_condition(self.condition)
        check_names("by", self.by)
        check_names("columns", self.columns)
        check_options(self.options)
        check_time(EVENT, self.time, self.options)
        check_places(self.condition, "place", len(self.coordinates))

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Where events are."""
        return coordinates("place", self.place, self.condition.space)


def cluster_table(table: pa.Table, arguments: ClusterArguments) -> tuple[pa.Table, JoinSummary]:
    """The events of a table with their clusters, and what was found.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    """
    started, options = time.perf_counter(), arguments.options
    by, payload, place = names_of(arguments.by), names_of(arguments.columns), arguments.coordinates
    _check_keys(by, table.schema)
    check_coordinate_types(EVENT, place, table.schema)
    timestamps = timestamp_names(EVENT, arguments.time)
    given = arrow_clocks(EVENT, timestamps, table.schema)
    (columns,) = resolved_columns(
        given, [timestamps], [place], arguments.condition, options, [options.left_longest]
    )
    tick = columns.scales[0].tick
    model = arguments.condition.model(tick, heights=len(place) == 3)
    names = [*by, *payload, "cluster"]
    check_output_names(names)
    side, counts = read_placed(table, columns, by, payload, options.invalid)
    events = placed_stream(side, arguments.condition.space)
    labels, counters = import_module("cpu_fallback.causality").cluster_labels(
        events, model, threads=options.threads or len(os.sched_getaffinity(0))
    )
    cluster = pa.array(labels, mask=labels < 0)
    found = pa.table([*side.keys, *side.payload, cluster], names=names)
    seconds = time.perf_counter() - started
    summary = JoinSummary(
        counts, None, counters, seconds, "in memory", tick,
        sides=(EVENT, EVENT), matchless=MATCHLESS,
    )  # fmt: skip
    return found, summary


def _check_keys(by: Sequence[str], schema: pa.Schema) -> None:
    for name in by:
        kind = type_of(schema, EVENT, name)
        if not can_be_key(kind):
            raise SchemaError(
                f"the key {name!r} is {kind}, which cannot be compared exactly; cast it to a string or an"
                " integer"
            )
