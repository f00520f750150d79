"""Causality joins, and clusters, of tables in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from coincide.cause_and_effect.points import PlacedEvents
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.schemas import (
    can_be_key,
    check_keys,
    type_of,
    with_like_keys,
)
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.tables import read_side
from spark_plugin.worker.causality.arguments import MATCHLESS, CausalityArguments
from spark_plugin.worker.causality.emission import CausalitySpec, causal_emission
from spark_plugin.worker.causality.emptiness import explain_no_effects
from spark_plugin.worker.causality.events import moved_sides, placed_events, placed_stream
from spark_plugin.worker.causality.places import (
    PlacedColumns,
    check_coordinate_types,
    names_of_coordinates,
    read_coordinates,
)
from spark_plugin.worker.emission.spec import output_schema
from spark_plugin.worker.join import as_schema
from spark_plugin.worker.reports.accidental import AccidentalPairs
from spark_plugin.worker.reports.emptiness import NoPairs, evidence_of
from spark_plugin.worker.reports.key_overlap import key_overlap
from spark_plugin.worker.reports.reports import JoinSummary
from spark_plugin.worker.shifted_sides import check_shifted, without_payload
from spark_plugin.worker.shifts import ShiftPlan
from spark_plugin.worker.timestamps.names import arrow_clocks

_BATCH_PAIRS = 1_000_000


class TableCausality:
    """A causality join of two tables, or of one with itself, batch by batch.

    Everything that can be known without the rows is checked when it is made.

    Parameters
    ----------
    causes : pa.Table
    effects : pa.Table or None
        None where the arguments say that there is one stream.
    arguments : CausalityArguments
    """

    def __init__(
        self, causes: pa.Table, effects: pa.Table | None, arguments: CausalityArguments
    ) -> None:
        keys, options = arguments.keys, arguments.options
        given = [causes] if effects is None else [causes, effects]
        schemas = with_like_keys([table.schema for table in given], keys)
        self._tables = [as_schema(*each, keys) for each in zip(given, schemas, strict=True)]
        # Of one stream the columns of both sides are looked for in the one table.
        schemas = [schemas[0], schemas[-1]]
        self._keys, self._payload, self._invalid = keys, arguments.payload, options.invalid
        kinds = [
            [type_of(schema, side, name) for name in keys]
            for schema, side in zip(schemas, arguments.sides, strict=True)
        ]
        check_keys(keys, *([(str(k), can_be_key(k)) for k in side] for side in kinds))
        for side, place, schema in zip(arguments.sides, arguments.places, schemas, strict=True):
            check_coordinate_types(side, place, schema)
        self._columns = arguments.resolved(
            [
                clock
                for side, names, schema in zip(
                    arguments.sides, arguments.timestamps, schemas, strict=True
                )
                for clock in arrow_clocks(side, names, schema)
            ]
        )
        self.tick = self._columns[0].scales[0].tick
        self._sides = arguments.sides
        self._spec = arguments.spec(self._columns, len(os.sched_getaffinity(0)), _BATCH_PAIRS)
        self._shifts = ShiftPlan.of(arguments.shifts, self._spec, self.tick)
        fields = [
            [pa.field(f"{prefix}_{name}", type_of(schema, side, name)) for name in names]
            for schema, side, prefix, names in zip(
                schemas, arguments.sides, self._spec.prefixes, self._payload, strict=True
            )
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
        causes, effects, counts = self._read()
        space = self._spec.space
        events: tuple[PlacedEvents, PlacedEvents | None]
        if self._spec.is_one_stream:
            events = placed_stream(causes, space), None
        else:
            events = placed_events(causes, effects, space)
        emission = causal_emission(causes, effects, events, self._spec, self.schema)
        yield from emission
        accidental = self._accidental(causes, effects, events)
        seconds = time.perf_counter() - started
        no_pairs = None if emission.counters.pairs else self._no_pairs(causes, effects, events)
        self.summary = JoinSummary(
            counts[0], counts[1], emission.counters, seconds, "in memory", self.tick, no_pairs,
            sides=self._sides, matchless=MATCHLESS, accidental=accidental,
        )  # fmt: skip

    def _accidental(
        self, causes: Side, effects: Side, events: tuple[PlacedEvents, PlacedEvents | None]
    ) -> AccidentalPairs | None:
        """The pairs of these events by each shift; nothing but their number is computed."""
        if self._shifts is None:
            return None
        check_shifted(self._shifts, self._spec, causes, effects)
        counts = []
        for spec in self._shifts.specs:
            assert isinstance(spec, CausalitySpec)
            own, others = events[0], events[0] if events[1] is None else events[1]
            moved = moved_sides(own, others, spec.shift, spec.is_one_stream)
            bare = without_payload(causes), effects
            counts.append(causal_emission(*bare, moved, spec, pa.schema([])).counters.pairs)
        return self._shifts.counted(counts)

    def _no_pairs(
        self, causes: Side, effects: Side, events: tuple[PlacedEvents, PlacedEvents | None]
    ) -> NoPairs:
        scales = [columns.scales[0] for columns in self._columns]
        own, others = map(evidence_of, (causes, effects), scales)
        keys = None if self._spec.is_one_stream else key_overlap(causes, effects, self._keys)
        return explain_no_effects(own, others, self._spec, keys, events)

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, SideCounts | None]]:
        """Both sides, and what their rows were; of one stream no one counts the second."""
        own, others = self._payload
        columns, keys, invalid = self._columns, self._keys, self._invalid
        if not self._spec.is_one_stream:
            (causes, own_counts), (effects, counts) = (
                read_placed(table, each, keys, payload, invalid)
                for table, each, payload in zip(self._tables, columns, self._payload, strict=True)
            )
            return causes, effects, (own_counts, counts)
        events, own_counts = read_placed(
            self._tables[0], columns[0], keys, [*own, *others], invalid
        )
        causes = replace(events, payload=events.payload[: len(own)])
        return causes, replace(events, payload=events.payload[len(own) :]), (own_counts, None)


def read_placed(
    table: pa.Table, columns: PlacedColumns, by: list[str], payload: list[str], invalid: str
) -> tuple[Side, SideCounts]:
    """The events of a side, and where they are, its invalid rows refused or left out."""
    names = names_of_coordinates(columns.place)
    side, counts = read_side(table, columns, by, [*payload, *names], invalid)  # type: ignore[arg-type]
    given, coordinates = side.payload[: len(payload)], side.payload[len(payload) :]
    # A side of no columns has its rows all the same.
    kept = pa.table({"": pa.nulls(len(side)), **dict(zip(names, coordinates, strict=True))})
    found = read_coordinates(columns.scales[0].column.side, columns.place, kept)
    return replace(side, payload=given, places=list(map(pa.array, found))), counts
