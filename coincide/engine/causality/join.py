"""Causality joins of tables in one process, without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from coincide.engine.causality.arguments import (
    CausalityArguments,
    PlacedColumns,
    check_coordinate_types,
    names_of_coordinates,
    read_coordinates,
)
from coincide.engine.causality.emptiness import explain_no_effects, warn_of_names, warn_of_reach
from coincide.engine.causality.pairing import CausalPairing, placed_events
from coincide.engine.events.sides import Side, SideCounts, read_side
from coincide.engine.join.emission import Emission
from coincide.engine.join.join import TableJoin, TablePlan
from coincide.engine.join.output_shapes import emission_of
from coincide.engine.reports.emptiness import NoPairs, evidence_of


@dataclass(frozen=True)
class CausalPlan(TablePlan):
    """A causality join of tables of two schemas: everything but the rows, resolved and checked."""

    spec: Any  # a CausalitySpec

    def join(self, left: Side, right: Side) -> Emission:
        """The output batches of a join of these events."""
        found = emission_of(left, right, self.spec, self.schema)
        assert isinstance(found.pairing, CausalPairing)
        warn_of_reach(self.spec.space, self.spec.model, found.pairing.events)
        return found

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """Why a join of these events finds nothing, places included."""
        own, others = map(evidence_of, (left, right), [each.scales[0] for each in self.times])
        keys = None if self.spec.is_one_stream else self.key_overlap(left, right)
        events = placed_events(left, right, self.spec)
        return explain_no_effects(own, others, self.spec, keys, events)

    def _read(
        self, side: int, table: pa.Table, parts: Sequence[list[str]]
    ) -> tuple[Side, SideCounts]:
        names = [name for part in parts for name in part]
        times: Any = self.times[side]
        return read_placed(table, times, self.by[side], names, self.invalid)


class TableCausality(TableJoin):
    """A causality join of two tables, or of one with itself, batch by batch."""

    plan_kind = CausalPlan

    def __init__(
        self, causes: pa.Table, effects: pa.Table | None, arguments: CausalityArguments
    ) -> None:
        given = causes, causes if effects is None else effects
        for side, place, table in zip(arguments.sides, arguments.places, given, strict=True):
            check_coordinate_types(side, place, table.schema)
        warn_of_names(arguments.condition, arguments.places)
        super().__init__(causes, effects, arguments)


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
