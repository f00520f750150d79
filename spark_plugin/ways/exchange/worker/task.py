"""The worker of the exchange: joins the slices of a partition, and holds the plan against their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.sides import SIDES
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.emission import Emission
from spark_plugin.worker.wire.columns import CODED, LABEL, UNMATCHED, LabelCode, is_left
from spark_plugin.worker.wire.sides import read_side
from spark_plugin.worker.wire.task import WireTask

CHANGED = (
    "the source has changed since the join was planned, or gives other rows each time it is computed, as"
    " current_timestamp() and rand() do. Compute it once before: df.localCheckpoint(), df.cache(), or write"
    " it to files"
)


@dataclass(frozen=True, kw_only=True)
class SliceTask(WireTask):
    """Gathers the slices of a partition, mostly one, and joins each.

    Parameters
    ----------
    code : LabelCode
        How rows say which slice they are of.
    shapes : ((int, int), (int, int))
        Smallest and largest shape of the events of each side, as the slices were cut for.
    """

    code: LabelCode
    shapes: tuple[tuple[int, int], tuple[int, int]]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """The joins of the partition."""
        gathered = list(batches)
        if not gathered:
            return
        table = pa.Table.from_batches(gathered)
        del gathered
        table, labels = self._decoded(table)
        matchable = table.column(CODED).to_numpy() != UNMATCHED
        found = np.unique(labels[matchable]).tolist()
        if not found or (len(found) == 1 and (matchable.all() or self.keeps_whole(found[0]))):
            yield self._slice(table, found[0] if found else None)
            return
        # Spark promises that rows of one label meet, not that those of two are kept apart.
        for label in found:
            yield self._slice(_rows(table, matchable & (labels == label)), label)
        if not matchable.all():
            yield self._slice(_rows(table, ~matchable), None)

    def keeps_whole(self, label: int) -> bool:
        """Whether left events that match nothing may stand with those of a slice."""
        return True

    def joined_slice(self, left: Side, right: Side, label: int | None) -> Emission:
        """The join of one slice; without a label of events that match nothing."""
        return self.joined(left, right)

    def _decoded(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """The columns of the layout, and the label of each row: int64 array."""
        coded, labels = self.code.decoded(table.column(CODED).to_numpy())
        if self.code.bits == 0:
            labels = table.column(LABEL).to_numpy()
        place = table.schema.get_field_index(CODED)
        return table.set_column(place, CODED, pa.array(coded)), labels

    def _slice(self, table: pa.Table, label: int | None) -> Emission:
        is_base = is_left(table.column(CODED).to_numpy())
        left, right = (
            read_side(table, self.layout, name, model, np.flatnonzero(is_own))
            for name, model, is_own in zip(
                SIDES, self.spec.models, (is_base, ~is_base), strict=True
            )
        )
        del table, is_base
        for name, side, planned in zip(SIDES, (left, right), self.shapes, strict=True):
            _check_shapes(name, side, *planned)
        return self.joined_slice(left, right, label)


def _rows(table: pa.Table, chosen: np.ndarray) -> pa.Table:
    return table.take(pa.array(np.flatnonzero(chosen)))


def _check_shapes(name: str, side: Side, smallest: int, largest: int) -> None:
    """Refuse events that may have partners in slices to which the plan has not brought them.

    Raises
    ------
    DataError
    """
    shapes = side.shapes
    if side.matchable is not None:
        shapes = shapes[side.matchable]
    if not shapes.size or (shapes.min() >= smallest and shapes.max() <= largest):
        return
    what = f"longer than {largest}" if shapes.max() > largest else f"shorter than {smallest}"
    raise DataError(
        f"{name}: a timestamp is {what} ticks, which none was when the join was planned: {CHANGED}."
        f" Or declare the longest length, {name}_longest, which the plan then counts on"
    )
