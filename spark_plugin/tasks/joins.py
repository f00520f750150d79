"""A task of joins, whatever the way: joins in, Arrow batches in wire types out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar

import pyarrow as pa

from coincide.engine.events.schemas import narrow_type
from coincide.engine.events.sides import Side
from coincide.engine.join.chosen_pairs import emission_of
from coincide.engine.join.emission import Emission
from coincide.engine.join.spec import AnySpec, output_schema
from coincide.engine.reports.metrics import COUNTERS
from coincide.model.counters import JoinCounters
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.wire import WireLayout


@dataclass(frozen=True)
class WireTask(CountingTask):
    """Joins rows on the wire."""

    counted: ClassVar[tuple[str, ...]] = COUNTERS

    spec: AnySpec
    layout: WireLayout
    names: tuple[str, ...]
    metrics: str | None = None

    @abstractmethod
    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The joins of one partition, one after the other."""

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The output columns, from a batch of an emission."""
        return batch.columns

    def joined(self, left: Side, right: Side) -> Emission:
        """The join of two sides."""
        return joined(self.spec, left, right)

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns of all joins."""
        counters, schema = JoinCounters(), None
        for emission in self.emissions(batches):
            schema = emission.schema
            for batch in emission:
                yield self.finished(batch), None
            counters += emission.counters
        if schema is not None:
            nothing = self.finished(pa.RecordBatch.from_pylist([], schema=schema))
            yield [pa.nulls(1, column.type) for column in nothing], asdict(counters)


def partial_spec(spec: AnySpec) -> AnySpec:
    """What a task computes that may lack matches of its left events."""
    if spec.one_row_per_event:
        return spec.counted.but(how="inner")
    # What decides among the best matches that tasks find is theirs to tell.
    merits, are_states = spec.merits or spec.row.is_best, spec.row.is_aggregated
    return spec.but(how="inner", merits=merits, are_states=are_states)


def joined(spec: AnySpec, left: Side, right: Side) -> Emission:
    """The join of two sides on the wire, in columns of the types in which theirs came: of short offsets."""
    fields = [
        [pa.field(f"{name}{i}", narrow_type(column.type)) for i, column in enumerate(columns)]
        for name, columns in (("by", left.keys), ("left", left.payload), ("right", right.payload))
    ]
    return emission_of(left, right, spec, output_schema(spec.on_the_wire, *fields))
