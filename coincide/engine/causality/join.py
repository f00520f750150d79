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
from coincide.engine.causality.emission import (
    CausalitySpec,
    moved_effects,
    placed_events,
    placed_stream,
)
from coincide.engine.causality.emptiness import explain_no_effects, warn_of_names, warn_of_reach
from coincide.engine.causality.shapes import causal_emission
from coincide.engine.events.sides import Side, SideCounts, read_side
from coincide.engine.join.emission import Emission
from coincide.engine.join.join import TableJoin, TablePlan
from coincide.engine.join.shifts import ShiftPlan, check_shifted, without_payload
from coincide.engine.reports.emptiness import NoPairs, evidence_of
from coincide.engine.reports.reports import AccidentalPairs
from coincide.model.causality.spaces import PlacedEvents


@dataclass(frozen=True)
class CausalPlan(TablePlan):
    """A causality join of tables of two schemas: everything but the rows, resolved and checked."""

    spec: Any  # a CausalitySpec

    def join(self, left: Side, right: Side) -> Emission:
        """The output batches of a join of these events."""
        events = self._events(left, right)
        warn_of_reach(self.spec.space, self.spec.model, events)
        return causal_emission(left, right, events, self.spec, self.schema)

    def accidental(
        self, shifts: ShiftPlan | None, left: Side, right: Side
    ) -> AccidentalPairs | None:
        """The pairs of these events by each shift; nothing but their number is computed."""
        if shifts is None:
            return None
        check_shifted(shifts, self.spec, left, right)
        bare, counts, events = (without_payload(left), right), [], self._events(left, right)
        own, others = events[0], events[0] if events[1] is None else events[1]
        for spec in shifts.specs:
            assert isinstance(spec, CausalitySpec)
            effects, moved = moved_effects(bare[1], others, spec.shift)
            found = causal_emission(bare[0], effects, (own, moved), spec, pa.schema([]))
            counts.append(found.counters.pairs)
        return shifts.counted(counts)

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """Why a join of these events finds nothing; beside the rest, what places tell."""
        own, others = map(evidence_of, (left, right), [each.scales[0] for each in self.times])
        keys = None if self.spec.is_one_stream else self.key_overlap(left, right)
        return explain_no_effects(own, others, self.spec, keys, self._events(left, right))

    def _events(self, left: Side, right: Side) -> tuple[PlacedEvents, PlacedEvents | None]:
        """Both sides as the join takes them; of one stream there is one."""
        spec = self.spec
        if spec.is_one_stream:
            return placed_stream(left, spec.space, case_fold=spec.case_fold), None
        return placed_events(left, right, spec.space, case_fold=spec.case_fold)

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
