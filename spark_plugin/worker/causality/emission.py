"""From a causality join to Arrow batches: the shapes of `correlate`, with delta and distance of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.points import PlacedEvents
from coincide.options import Emit, How
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission, MakeBatch, arrow_int64
from spark_plugin.worker.emission.lists import Lists
from spark_plugin.worker.emission.pairs import Pairs
from spark_plugin.worker.emission.rows import Counts, LeftRows
from spark_plugin.worker.emission.spec import check_output_names, hands_out_partners


@dataclass(frozen=True)
class CausalitySpec:
    """What a causality join computes, resolved to ticks: everything but the data.

    Parameters
    ----------
    model : CausalityModel
    placed : bool
        Whether events have places: then pairs have a distance.
    how, emit, threads, batch_pairs
        As `spark_plugin.worker.emission.spec.JoinSpec`.
    """

    model: CausalityModel
    placed: bool
    how: How = "inner"
    emit: Emit = "pairs"
    threads: int = 1
    batch_pairs: int = 1_000_000

    @property
    def one_row_per_event(self) -> bool:
        """Whether columns of effects are absent: semi and anti."""
        return self.how in ("semi", "anti")

    @property
    def hands_out_partners(self) -> bool:
        """Whether columns of effects are in the output."""
        return hands_out_partners(self.how, self.emit)


def output_schema(
    spec: CausalitySpec, by: list[pa.Field], causes: list[pa.Field], effects: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, causes', effects' or `matches`, delta, distance."""
    fields = [*by, *causes]
    if spec.emit == "counts":
        fields.append(pa.field("matches", pa.int64(), nullable=False))
    elif spec.hands_out_partners:
        wrap = pa.list_ if spec.emit == "lists" else lambda kind: kind
        measures = [pa.field("delta", pa.int64())]
        if spec.placed:
            measures.append(pa.field("distance", pa.float64()))
        fields += [pa.field(f.name, wrap(f.type)) for f in (*effects, *measures)]
    check_output_names([field.name for field in fields])
    return pa.schema(fields)


class _Causal(Emission):
    """The output batches of a causality join of two sides, which to the join are `events`."""

    def __init__(
        self,
        causes: Side,
        effects: Side,
        events: tuple[PlacedEvents, PlacedEvents],
        spec: Any,
        schema: pa.Schema,
    ) -> None:
        self._placed_events = events
        super().__init__(causes, effects, spec, schema, import_module("cpu_fallback.causality"))

    def _make_join(self) -> Any:
        spec: Any = self._spec
        return self._backend.CausalityJoin(
            *self._placed_events, spec.model, threads=spec.threads, empty=arrow_int64
        )

    @property
    def _measures(self) -> bool:
        return self._spec.hands_out_partners

    def _measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> list[np.ndarray]:
        return self._wanted(self.join.measured(left_rows, right_rows))

    def _wanted(self, measures: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Delta, and the distance where there is one."""
        return list(measures)[: 2 if self._spec.placed else 1]  # type: ignore[attr-defined]


class _CausalPairs(_Causal, Pairs):
    """Delta and distance come from where the pair is found, which has its events at hand."""

    @property
    def _direct(self) -> bool:
        columns = self._left_columns, self._right_columns
        return all(len(side) == 1 and side[0].values is not None for side in columns)

    def _pairs(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._direct:
            yield partial(self._direct_batch, start, stop)
            return
        own, others, *measures = join.measured_pairs(start, stop, join.left_order, join.right_order)
        yield from self._matched(own, others, self._wanted(measures))

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        values = self._left_direct, self._right_direct
        own, others, *measures = self.join.measured_pairs(start, stop, *values)
        ids = self._left_columns[0].wrap(own), self._right_columns[0].wrap(others)
        measured = [pa.array(each) for each in self._wanted(measures)]
        return pa.RecordBatch.from_arrays([*ids, *measured], schema=self.schema)


class _CausalLists(_Causal, Lists):
    pass


class _CausalCounts(_Causal, Counts):
    pass


class _CausalRows(_Causal, LeftRows):
    pass


_SHAPES: dict[Emit, type[_Causal]] = {
    "pairs": _CausalPairs,
    "lists": _CausalLists,
    "counts": _CausalCounts,
}


def causal_emission(
    causes: Side,
    effects: Side,
    events: tuple[PlacedEvents, PlacedEvents],
    spec: CausalitySpec,
    schema: pa.Schema,
) -> Emission:
    """The output batches of a causality join of two sides, which to the join are `events`."""
    shape = _CausalRows if spec.one_row_per_event else _SHAPES[spec.emit]
    return shape(causes, effects, events, spec, schema)
