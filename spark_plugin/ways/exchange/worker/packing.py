"""The worker before the exchange: cuts its rows into slices, and packs what it has of each.

What crosses the exchange is a few rows instead of each event: the label of a slice, the side, and its
events in columns, in order of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.options import SideName
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.exchange.worker.blobs import packed
from spark_plugin.ways.exchange.worker.placing import Places, slices_of_left, slices_of_right
from spark_plugin.worker.timestamps.models import SideModel
from spark_plugin.worker.wire.chunks import chunks
from spark_plugin.worker.wire.columns import (
    CODED,
    KEY_HASH,
    LABEL,
    SALT,
    TIME,
    UNMATCHED,
    WireLayout,
    right_shapes,
)
from spark_plugin.worker.wire.reuse import begin_task

IS_LEFT, EVENTS = "is_left", "events"
"""Columns beside `LABEL` of what crosses the exchange: the side, and the packed events."""
_ROWS = 1 << 20
_BYTES = 64 << 20
"""What is cut at once."""


@dataclass(frozen=True)
class PackTask:
    """Packs rows of one side on the wire.

    Parameters
    ----------
    side : {"left", "right"}
    layout : WireLayout
        Of this side alone.
    model : SideModel
        Of its timestamps.
    plan : SlicePlan
    labels : int64 array, shape (slices,)
        Of slices.
    """

    side: SideName
    layout: WireLayout
    model: SideModel
    plan: SlicePlan
    labels: np.ndarray

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition, a bounded part after the other.

        Yields
        ------
        pa.RecordBatch
            `LABEL`, `IS_LEFT`, `EVENTS`: one row, so that none holds more than one pack.
        """
        begin_task()
        names = [LABEL, IS_LEFT, EVENTS]
        for table in chunks(batches, _ROWS, _BYTES):
            for number, events in self._slices(table):
                for blob in packed(events):
                    row = [
                        pa.array(self.labels[number : number + 1]),
                        pa.array([self.side == "left"]),
                        _one_binary(blob),
                    ]
                    yield pa.RecordBatch.from_arrays(row, names=names)

    def _slices(self, table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The slices that the rows are in, and those of each."""
        places = self._places(table)
        order, slices = (slices_of_left if self.side == "left" else slices_of_right)(
            places, self.plan
        )
        events = table.select(self.layout.columns)
        if not np.array_equal(order, np.arange(table.num_rows)):
            events = events.take(pa.array(order))
        edges = np.flatnonzero(np.diff(slices)) + 1
        starts = np.concatenate([[0], edges]) if slices.size else edges
        stops = np.concatenate([edges, [slices.size]])
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=False):
            yield int(slices[start]), events.slice(start, stop - start)

    def _places(self, table: pa.Table) -> Places:
        def column(name: str) -> np.ndarray:
            has_it = name in table.column_names
            return table.column(name).to_numpy() if has_it else np.empty(0, np.int64)

        coded, latest = table.column(CODED).to_numpy(), table.column(TIME).to_numpy()
        matchable = None
        if self.side == "right":
            coded = right_shapes(coded)
        elif coded.size and coded.min() == UNMATCHED:
            matchable = coded != UNMATCHED
            coded = np.where(matchable, coded, 0)
        midpoints = 2 * latest - self.model.leans(coded)
        return Places(midpoints, matchable, column(KEY_HASH), column(SALT))


def _one_binary(content: pa.Buffer) -> pa.Array:
    """An array of one row, without a copy."""
    ends = pa.py_buffer(np.array([0, content.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, content])
