"""The workers of a broadcast: the small side, read once, meets the other chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import narrowed, one_array
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import Bounds, SideModel
from coincide.engine.join.emission import Emission
from coincide.engine.join.spec import AnySpec
from coincide.model.options import CorrelateOptions, SideName
from coincide.model.sides import SIDES
from spark_plugin.tasks.joins import WireTask
from spark_plugin.tasks.samples import (
    PAIR_WORK,
    Reach,
    Sample,
    expected_partners,
    shifted,
    weight_between,
)
from spark_plugin.tasks.wire import Shipment, WireLayout, chunks, read_side


@dataclass(frozen=True, kw_only=True)
class BroadcastTask(WireTask):
    """Joins rows of the large side, in whatever partitions they are, with the small side."""

    plan: BroadcastPlan
    small: Shipment
    slice_rows: int
    slice_bytes: int

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each chunk."""
        plan = self.plan
        of_small, of_large = (self.spec.models[SIDES.index(s)] for s in (plan.small, plan.large))
        layout = self.layout.only(plan.small)
        small = SmallSide(self.small.table(), layout, plan.small, of_small)
        layout = self.layout.only(plan.large)
        rows = chunk_rows(self.slice_rows, len(small))
        for table in chunks(batches, rows, self.slice_bytes):
            yield self.emission(small, read_side(table, layout, plan.large, of_large))

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, _ = self.near(small, streamed)
        left, right = (near, streamed) if self.plan.small == "left" else (streamed, near)
        return self.joined(left, right)

    def near(self, small: SmallSide, streamed: Side) -> tuple[Side, np.ndarray]:
        """The small side's events near a chunk, and their rows."""
        return small.near(streamed, self.spec.pairs)


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

    def near(self, streamed: Side, pairs: Bounds) -> tuple[Side, np.ndarray]:
        """The events that some of the streamed ones can reach."""
        first, last = self._rows_near(streamed, pairs)
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
        # Of a window that nothing can meet the ends are the wrong way round.
        return int(first[0]), max(int(first[0]), int(last[0]))


def _extent(values: np.ndarray) -> tuple[int, int]:
    """Smallest and largest; zeros of none."""
    return (int(values.min()), int(values.max())) if values.size else (0, 0)


def partial_spec(spec: AnySpec) -> AnySpec:
    """What a task computes: of left events without a partner it knows nothing."""
    if spec.one_row_per_event:
        return spec.but(how="inner", emit="counts")
    # What decides among the best partners that tasks find is theirs to tell.
    return (spec.with_merits() if spec.emit == "best" else spec).but(how="inner")


@dataclass(frozen=True, kw_only=True)
class PartialTask(BroadcastTask):
    """Yields, by row of the left event, what the right events of a partition are to it.

    `spec` is from `partial_spec`, `layout` has no left columns.
    """

    def emission(self, small: SmallSide, streamed: Side) -> Emission:
        """The join of a chunk."""
        near, rows = self.near(small, streamed)
        return self.joined(replace(near, payload=[pa.array(rows)]), streamed)

    def finished(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The row, what was found, and for the best partners what their order goes by."""
        return batch.columns[len(self.layout.keys) :]


_UNEVEN = 2.0
"""A partition of so many times its share of the work would keep the other tasks waiting."""
_PREPARED_ROW = 0.3
"""Work of preparing a row of the small side for a chunk, in rows that an exchange moves."""
FAR_LARGER = 4
"""Where Spark takes a side for so many times as large as the other, that is broadcast without a look, if
it is small; sides that are less far apart are exchanged without one, if they are large."""
SMALLEST_CHUNK = 1 << 18
"""Rows of the large side at once, at least, where a task may hold as many."""
_MANY_ROWS = 1 << 18
_MANY_MORE = 2
"""Many rows are exchanged faster than broadcast, unless the others are so many times as many."""
_KILOBYTES = 100_000
_LITTLE_WORK = 5_000_000.0
"""Below this much work, in rows, an uneven partition is done before an exchange would be."""


@dataclass(frozen=True)
class BroadcastPlan:
    """A join in which one side goes to every worker."""

    small: SideName
    why: str
    events: Side | None = field(default=None, compare=False, repr=False)
    way: ClassVar[str] = "broadcast"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    @property
    def large(self) -> SideName:
        """The side that streams through."""
        return "right" if self.small == "left" else "left"

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{self.small} to every worker, {self.why}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A side, as the choice sees it."""

    name: SideName
    sample: Sample
    partitions: np.ndarray
    bytes: int | None


def is_two_step(small: SideName, spec: AnySpec) -> bool:
    """Whether what tasks find about events of the small side must be brought together.

    A task that streams left events sees all partners of each. One that streams right events sees some
    of the partners of each left event: pairs are final then, and nothing else is.
    """
    return small == "left" and (spec.how != "inner" or spec.emit != "pairs")


def choose_small_side(
    left: Candidate,
    right: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    tasks: int,
) -> BroadcastPlan | None:
    """The side to broadcast, if any."""
    if options.way == "exchange" or (options.way == "auto" and options.slices is not None):
        return None
    if (
        spec.is_one_stream
    ):  # what tells its events apart holds where all that are alike are together
        return None
    if options.small_side:
        return BroadcastPlan(options.small_side, "as asked")
    if options.way == "broadcast":
        small = left if left.sample.rows < right.sample.rows else right
        return BroadcastPlan(small.name, "the smaller side, as asked")
    sides = [(right, left), (left, right)]
    if left.sample.rows < right.sample.rows and not is_two_step("left", spec):
        sides.reverse()
    for small, large in sides:
        size = small.bytes
        if size is None or size > options.broadcast_bytes:
            continue
        if _is_worth_it(small, large, reach, spec, options, tasks):
            return BroadcastPlan(small.name, described_size(size))
    return None


def described_size(size: int) -> str:
    """Bytes, in words."""
    return f"{size:,} bytes" if size < _KILOBYTES else f"{size / 1e6:,.1f} MB"


def _is_worth_it(
    small: Candidate,
    large: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    tasks: int,
) -> bool:
    """Whether tasks are even, and do and yield less than an exchange would move."""
    towards = reach if large.name == "left" else reach.reversed
    if large.sample.rows < _MANY_MORE * small.sample.rows and small.sample.rows > _MANY_ROWS:
        return False
    moved = large.sample.rows + small.sample.rows
    if _PREPARED_ROW * _prepared_rows(small, large, towards, options.slice_rows) > moved:
        return False
    partners = expected_partners(large.sample, small.sample, towards)
    if is_two_step(small.name, spec) and spec.emit in ("pairs", "lists"):
        pairs = float((large.sample.weights * partners).sum())
        if spec.how not in ("semi", "anti") and pairs > large.sample.rows:
            return False
    if not large.partitions.size:
        return True
    work = large.sample.weights * (1.0 + PAIR_WORK[spec.emit] * partners)
    heaviest = np.bincount(np.unique(large.partitions, return_inverse=True)[1], work).max()
    return bool(heaviest <= max(_UNEVEN * work.sum() / tasks, _LITTLE_WORK))


def _prepared_rows(small: Candidate, large: Candidate, towards: Reach, slice_rows: int) -> float:
    """Rows of the small side that are near a chunk, over all chunks: each is prepared anew for each."""
    partitions, of = np.unique(large.partitions, return_inverse=True)
    earliest, latest = np.full(partitions.size, 2**62), np.full(partitions.size, -(2**62))
    np.minimum.at(earliest, of, large.sample.midpoints)
    np.maximum.at(latest, of, large.sample.midpoints)
    near = weight_between(
        small.sample, shifted(earliest, towards.first), shifted(latest, towards.last)
    )
    rows = np.bincount(of, large.sample.weights, partitions.size)
    return float((near * np.ceil(rows / chunk_rows(slice_rows, small.sample.rows))).sum())


def chunk_rows(slice_rows: int, small_rows: int) -> int:
    """Rows of the large side at once: as many as the small one has, so that preparing it pays."""
    return min(slice_rows, max(SMALLEST_CHUNK, small_rows))


@dataclass(frozen=True, kw_only=True)
class CollectedTask(WireTask):
    """Gets rows with the number of a part, and joins this part."""

    rows: Shipment
    left_rows: int
    bounds: tuple[int, ...]

    def emissions(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Emission]:
        """A join for each part."""
        parts = [part for batch in batches for part in batch.column(0).to_pylist()]
        if not parts:
            return
        table = self.rows.table()
        of_left, of_right = self.spec.models
        own, others = (self.layout.only(side) for side in ("left", "right"))
        small = SmallSide(table.slice(self.left_rows), others, "right", of_right)
        for part in parts:
            first, last = self.bounds[part : part + 2]
            left = read_side(table.slice(first, last - first), own, "left", of_left)
            yield self.joined(left, small.near(left, self.spec.pairs)[0])
