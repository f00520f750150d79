"""Causality joins, and clusters, of tables in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from coincide.cause_and_effect.points import PlacedEvents
from coincide.results import JoinCounters
from coincide.units import Tick
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.schemas import (
    arrow_time_column,
    can_be_key,
    check_keys,
    type_of,
    with_like_keys,
)
from spark_plugin.worker.arrow.sides import Side, grouped_events
from spark_plugin.worker.arrow.tables import read_side
from spark_plugin.worker.arrow.time_columns import TimeColumn
from spark_plugin.worker.causality.arguments import CAUSE_AND_EFFECT, CausalityArguments
from spark_plugin.worker.causality.emission import CausalitySpec, causal_emission, output_schema
from spark_plugin.worker.causality.places import (
    PlacedColumns,
    check_coordinate_types,
    names_of_coordinates,
    read_coordinates,
)
from spark_plugin.worker.join import as_schema
from spark_plugin.worker.reports.reports import JoinSummary

_BATCH_PAIRS = 1_000_000


class TableCausality:
    """A causality join of two tables, batch by batch.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, causes: pa.Table, effects: pa.Table, arguments: CausalityArguments) -> None:
        keys, options = arguments.keys, arguments.options
        schemas = with_like_keys([causes.schema, effects.schema], keys)
        tables = zip((causes, effects), schemas, strict=True)
        self._tables = [as_schema(*each, keys) for each in tables]
        self._keys, self._payload, self._invalid = keys, arguments.payload, options.invalid
        kinds = [
            [type_of(schema, side, name) for name in keys]
            for schema, side in zip(schemas, CAUSE_AND_EFFECT, strict=True)
        ]
        check_keys(keys, *([(str(k), can_be_key(k)) for k in side] for side in kinds))
        for side, place, schema in zip(CAUSE_AND_EFFECT, arguments.places, schemas, strict=True):
            check_coordinate_types(side, place, schema)
        self._columns = arguments.resolved(
            [
                clock
                for side, names, schema in zip(
                    CAUSE_AND_EFFECT, arguments.times, schemas, strict=True
                )
                for clock in clocks(side, names, schema)
            ]
        )
        place = arguments.places[0]
        self.tick = self._columns[0].scales[0].tick
        self._spec = CausalitySpec(
            arguments.condition.model(self.tick, heights=len(place) == 3), bool(place),
            arguments.how, arguments.emit, threads_of(options.threads),
            options.batch_pairs or _BATCH_PAIRS,
        )  # fmt: skip
        fields = [
            [pa.field(f"{side}_{name}", type_of(schema, side, name)) for name in names]
            for schema, side, names in zip(schemas, CAUSE_AND_EFFECT, self._payload, strict=True)
        ]
        own = [pa.field(name, kind) for name, kind in zip(keys, kinds[0], strict=True)]
        self.schema = output_schema(self._spec, own, *fields)
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` stands when the last batch was taken.

        Raises
        ------
        DataError
            If rows are invalid and ``options.invalid`` is ``"raise"``.
        """
        started = time.perf_counter()
        read = [
            read_placed(table, columns, self._keys, payload, self._invalid)
            for table, columns, payload in zip(
                self._tables, self._columns, self._payload, strict=True
            )
        ]
        (causes, own_places, own_counts), (effects, places, counts) = read
        events = placed_events(causes, own_places, effects, places, self._columns)
        emission = causal_emission(causes, effects, events, self._spec, self.schema)
        yield from emission
        seconds = time.perf_counter() - started
        self.summary = _summary(own_counts, counts, emission.counters, seconds, self.tick)


def clocks(side: str, names: Sequence[str], schema: pa.Schema) -> list[TimeColumn]:
    """What the time columns of a side mean."""
    return [arrow_time_column(side, name, type_of(schema, side, name)) for name in names]


def threads_of(given: int | None) -> int:
    """Threads that a join in this process uses."""
    return given or len(os.sched_getaffinity(0))


def read_placed(
    table: pa.Table, columns: PlacedColumns, by: list[str], payload: list[str], invalid: str
) -> tuple[Side, np.ndarray | None, SideCounts]:
    """The events of a side, and where they are, its invalid rows refused or left out.

    Returns
    -------
    Side
    Points or None
        None where events have no places.
    SideCounts
    """
    names = names_of_coordinates(columns.place)
    side, counts = read_side(table, columns, by, [*payload, *names], invalid)  # type: ignore[arg-type]
    given, coordinates = side.payload[: len(payload)], side.payload[len(payload) :]
    # A side of no columns has its rows all the same.
    kept = pa.table({"": pa.nulls(len(side)), **dict(zip(names, coordinates, strict=True))})
    found = read_coordinates(columns.scales[0].column.side, columns.place, kept)
    points = columns.space.points(found) if found else None
    side = Side(side.max_time, side.shapes, side.model, side.matchable, side.keys, given)
    return side, points, counts


def placed_events(
    causes: Side,
    own_points: np.ndarray | None,
    effects: Side,
    points: np.ndarray | None,
    columns: Sequence[PlacedColumns],
) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides as a causality join takes them."""
    grouped = grouped_events(causes, effects)
    own, others = (
        PlacedEvents(
            np.ascontiguousarray(side.max_time),
            where,
            None if _are_instants(side, each) else np.ascontiguousarray(side.shapes),
            events.group,
            events.groups,
        )
        for side, where, events, each in zip(
            (causes, effects), (own_points, points), grouped, columns, strict=True
        )
    )
    return own, others


def _are_instants(side: Side, columns: PlacedColumns) -> bool:
    first, last = (scale.column.name for scale in columns.scales)
    return first == last or not side.shapes.any()


def _summary(
    causes: SideCounts, effects: SideCounts, counters: JoinCounters, seconds: float, tick: Tick
) -> JoinSummary:
    return JoinSummary(
        causes, effects, counters, seconds, "in memory", tick,
        sides=CAUSE_AND_EFFECT, matchless="time, place or key",
    )  # fmt: skip
