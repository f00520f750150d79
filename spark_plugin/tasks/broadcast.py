"""The workers of a broadcast: the small side, read once, meets the other chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import narrowed, one_array
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import Bounds, SideModel
from coincide.engine.join.emission import Emission
from coincide.engine.join.spec import AnySpec
from coincide.model.options import SideName
from coincide.model.sides import SIDES
from spark_plugin.tasks.joins import WireTask
from spark_plugin.tasks.samples import Reach, shifted
from spark_plugin.tasks.wire import Shipment, WireLayout, chunks, read_side


@dataclass(frozen=True, kw_only=True)
class BroadcastTask(WireTask):
    """Joins rows of the large side, in whatever partitions they are, with the small side."""

    side: SideName
    small: Shipment
    slice_rows: int
    slice_bytes: int

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each chunk."""
        models = dict(zip(SIDES, self.spec.models, strict=True))
        large = other_side(self.side)
        layout = self.layout.only(self.side)
        small = SmallSide(self.small.table(), layout, self.side, models[self.side])
        layout = self.layout.only(large)
        rows = chunk_rows(self.slice_rows, len(small))
        for table in chunks(batches, rows, self.slice_bytes):
            yield self.emission(small, read_side(table, layout, large, models[large]))

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, _ = small.near(streamed, self.spec.pairs)
        left, right = (near, streamed) if self.side == "left" else (streamed, near)
        return self.joined(left, right)


def other_side(side: SideName) -> SideName:
    """The other one of the two."""
    return "right" if side == "left" else "left"


def sorted_table(table: pa.Table, layout: WireLayout, side: str, model: SideModel) -> pa.Table:
    """The rows of a side on the wire by midpoint; those that match nothing last."""
    events = read_side(table, layout, side, model)
    midpoints = events.sort_keys
    keys = (midpoints,) if events.matchable is None else (midpoints, ~events.matchable)
    order = np.lexsort(keys)
    whole = pa.table([one_array(column) for column in table.columns], names=table.column_names)
    if (np.diff(order) != 1).any():
        whole = whole.take(pa.array(order))
    return narrowed(whole, table.schema)


class SmallSide:
    """The small side in a worker."""

    def __init__(self, table: pa.Table, layout: WireLayout, name: str, model: SideModel) -> None:
        self.side = read_side(table, layout, name, model)
        matchable = self.side.matchable
        self._matchable = len(self.side) if matchable is None else int(matchable.sum())
        self._midpoints = self.side.sort_keys[: self._matchable]
        self._shapes = _extent(self.side.shapes[: self._matchable])
        self._is_left = name == "left"

    def __len__(self) -> int:
        return len(self.side)

    def near(self, streamed: Side, *pairs: Bounds) -> tuple[Side, np.ndarray]:
        """The events that some of the streamed ones can reach, by any of these conditions."""
        firsts, lasts = zip(*(self._rows_near(streamed, each) for each in pairs), strict=True)
        first, last = min(firsts), max(lasts)
        side, count = self.side, last - first
        near = Side(
            side.max_time[first:last],
            side.shapes[first:last],
            side.model,
            None,
            [key.slice(first, count) for key in side.keys],
            [column.slice(first, count) for column in side.payload],
            [column.slice(first, count) for column in side.places],
            [column.slice(first, count) for column in side.identity],
            tested=[column.slice(first, count) for column in side.tested],
        )
        return near, np.arange(first, last)

    def _rows_near(self, streamed: Side, pairs: Bounds) -> tuple[int, int]:
        midpoints, own = streamed.sort_keys, streamed.shapes
        if streamed.matchable is not None:
            midpoints, own = midpoints[streamed.matchable], own[streamed.matchable]
        if not own.size or not self._matchable:
            return 0, 0
        shapes = self._shapes, _extent(own)
        reach = Reach.of(pairs, *(shapes if self._is_left else shapes[::-1]))
        towards = reach.reversed if self._is_left else reach
        earliest, latest = (np.array([end]) for end in _extent(midpoints))
        first = np.searchsorted(self._midpoints, shifted(earliest, towards.first), side="left")
        last = np.searchsorted(self._midpoints, shifted(latest, towards.last), side="right")
        # The ends of a window that nothing can meet are the wrong way round.
        return int(first[0]), max(int(first[0]), int(last[0]))


def _extent(values: np.ndarray) -> tuple[int, int]:
    """Smallest and largest; zeros of none."""
    return (int(values.min()), int(values.max())) if values.size else (0, 0)


@dataclass(frozen=True, kw_only=True)
class PartialTask(BroadcastTask):
    """Yields, by row of the left event, what the right events of a partition are to it."""

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, rows = small.near(streamed, self.spec.pairs)
        return self.joined(replace(near, payload=[pa.array(rows)]), streamed)

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The row, what was found, and for the best matches what their order goes by."""
        return batch.columns[len(self.layout.keys) :]


def is_two_step(small: SideName, spec: AnySpec) -> bool:
    """Whether what tasks find about events of the small side must be brought together."""
    # A task that streams right events sees some of the matches of each left one: pairs alone are final.
    return small == "left" and not spec.is_pairs_alone


SMALLEST_CHUNK = 1 << 18
"""Rows of the large side at once, at least, where a task may hold as many."""


def chunk_rows(slice_rows: int, small_rows: int) -> int:
    """Rows of the large side at once: as many as the small one has, so that preparing it pays."""
    return min(slice_rows, max(SMALLEST_CHUNK, small_rows))


@dataclass(frozen=True, kw_only=True)
class PartTask(WireTask):
    """Gets rows with the number of a part, and joins this part."""

    rows: Shipment
    bounds: tuple[int, ...]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each part."""
        parts = [part for batch in batches for part in batch.column(0).to_pylist()]
        if not parts:
            return
        table = self.rows.table()
        of_left, of_right = self.spec.models
        own, others = (self.layout.only(side) for side in ("left", "right"))
        small = SmallSide(table.slice(self.bounds[-1]), others, "right", of_right)
        for part in parts:
            first, last = self.bounds[part : part + 2]
            left = read_side(table.slice(first, last - first), own, "left", of_left)
            yield self.joined(left, small.near(left, self.spec.pairs)[0])
