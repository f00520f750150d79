"""Rows by key of files in no order: packed by bucket of keys where they are read, and opened by bucket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import one_array
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts
from coincide.engine.reports.metrics import of_all
from coincide.model.key_hashes import hashes_of
from coincide.model.ordering import stable_order
from spark_plugin.tasks.blobs import blob_of, column_of, packed, unpacked
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.packed_files import of_bounded_bytes
from spark_plugin.tasks.packing import EVENTS, at_once, runs_of
from spark_plugin.tasks.wire import LABEL

SLICE, TOLD = "slice", "told"
"""Columns next to `LABEL` and `EVENTS`: the slice of time, and in rows without a pack the counts."""
PACKS = f"{LABEL} bigint, {SLICE} bigint, {EVENTS} binary, {TOLD} array<bigint>"
"""The columns of packs, in words of Spark."""
WHOLE = -1
"""In place of the slice of a pack that is not cut by time. It comes before all slices."""
_MANY = 2
"""How many times its share of rows a bucket has that is cut by time."""
LATEST = "latest"
"""Name of a number that goes to all buckets: a positive time, or 0 where there are no rows."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Buckets of keys, and slices of time for those buckets that are too large.

    Parameters
    ----------
    buckets : int
    edges : np.ndarray
        Where each slice but the first begins: sums of the two ends of a timestamp, ticks, ascending.
    """

    buckets: int
    edges: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def slices(self) -> int:
        """The number of slices of time."""
        return self.edges.size + 1

    def buckets_of(self, keys: list[pa.Array]) -> np.ndarray:
        """The buckets of rows: int64 array."""
        if self.buckets == 1:
            return np.zeros(len(keys[0]), np.int64)
        return hashes_of(keys) % self.buckets

    def slices_of(self, times: np.ndarray) -> np.ndarray:
        """The slices of times: int64 array."""
        return np.searchsorted(self.edges, times, side="right")

    def cells_of(self, keys: list[pa.Array], times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Buckets of rows, and slices, which are `WHOLE` in buckets of an usual size."""
        buckets = self.buckets_of(keys)
        slices = np.full(times.size, WHOLE, np.int64)
        if self.slices > 1:
            sizes = np.bincount(buckets, minlength=self.buckets)
            is_cut = (sizes * self.buckets >= _MANY * times.size) | (self.buckets < 2 * _MANY)
            cut = np.flatnonzero(is_cut[buckets])
            slices[cut] = self.slices_of(times[cut])
        return buckets, slices


@dataclass(frozen=True)
class KeyRows(ABC):
    """What makes rows by key of the rows of files."""

    @property
    @abstractmethod
    def needed(self) -> list[str]:
        """The columns of the files."""

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """The columns of rows that make a key."""

    @property
    @abstractmethod
    def counted(self) -> tuple[str, ...]:
        """Names of the counts of rows."""

    @property
    def tells_latest(self) -> bool:
        """Whether each bucket needs to know the latest time of all rows: `LATEST` is among the numbers."""
        return False

    @abstractmethod
    def read(self, table: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """The valid rows of a table, and the counts of all. Raises if rows are to be refused."""

    @abstractmethod
    def times_of(self, rows: pa.Table) -> np.ndarray:
        """Sums of the two ends of each timestamp: int64 array."""


@dataclass(frozen=True)
class KeyPackTask:
    """Reads the row groups that are dealt to a partition, and packs their rows by bucket of keys.

    Parameters
    ----------
    files : PlannedFiles
    rows : KeyRows
    cells : Cells
    labels : np.ndarray
        That of each bucket.
    deals : tuple of Parts
        The row groups of each partition, by its number.
    at_once : int
        Rows that are read at once, about, or one row group.
    """

    files: PlannedFiles
    rows: KeyRows
    cells: Cells
    labels: np.ndarray
    deals: tuple[Parts, ...]
    at_once: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The packs of one partition, and what was counted."""
        told: dict[str, int] = dict.fromkeys(self.rows.counted, 0)
        for batch in begin_task(batches):
            for number in batch.column(0).to_pylist():
                for run in self.deals[number].in_runs(self.at_once):
                    given = self.files.read(run, self.rows.needed, threads=False)
                    rows, counts = self.rows.read(given)
                    told = of_all([told, counts])
                    for part in of_bounded_bytes(rows):
                        yield from map(self._batch, at_once(self._packs(part.combine_chunks())))
        yield self._told(told)

    def _packs(self, rows: pa.Table) -> Iterator[tuple[int, pa.Buffer]]:
        """Packs of rows, each with its cell."""
        keys = [one_array(rows.column(name)) for name in self.rows.keys]
        buckets, slices = self.cells.cells_of(keys, self.rows.times_of(rows))
        cells = buckets * (self.cells.slices + 1) + slices - WHOLE
        order = stable_order(cells)
        rows, cells = rows.take(pa.array(order)), cells[order]
        for run in runs_of(cells):
            for blob in packed(rows.slice(run.start, run.stop - run.start)):
                yield int(cells[run.start]), blob

    def _batch(self, packs: list[tuple[int, pa.Buffer]]) -> pa.RecordBatch:
        cells, blobs = zip(*packs, strict=True)
        buckets, slices = np.divmod(np.array(cells, np.int64), self.cells.slices + 1)
        return pa.RecordBatch.from_pydict({
            LABEL: pa.array(self.labels[buckets]),
            SLICE: pa.array(slices + WHOLE),
            EVENTS: column_of(blobs, as_numbers=False),
            TOLD: pa.nulls(len(blobs), pa.list_(pa.int64())),
        })  # fmt: skip

    def _told(self, told: Mapping[str, int]) -> pa.RecordBatch:
        """What was counted, for the first bucket, and for the others the latest time."""
        rows = [list(told.values())]
        if self.rows.tells_latest:
            others = {name: number if name == LATEST else 0 for name, number in told.items()}
            rows += [list(others.values())] * (self.cells.buckets - 1)
        return pa.RecordBatch.from_pydict({
            LABEL: pa.array(self.labels[: len(rows)]),
            SLICE: pa.array(np.full(len(rows), WHOLE, np.int64)),
            EVENTS: pa.nulls(len(rows), pa.binary()),
            TOLD: pa.array(rows, pa.list_(pa.int64())),
        })  # fmt: skip


@dataclass
class OpenedPacks:
    """The rows of one bucket, slice by slice in order of time, as packs come in; and the counts of rows.

    Parameters
    ----------
    rows : KeyRows
    cells : Cells
    """

    rows: KeyRows
    cells: Cells
    told: dict[str, int] = field(init=False)
    has_any: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.told = dict.fromkeys(self.rows.counted, 0)

    def tables(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Rows in any order, each table later than those before it."""
        # Sorted by slice, so that packs that are not cut by time come first.
        whole: list[pa.Buffer] = []
        rest: _Rest | None = None
        for number, blobs in self._slices(batches):
            if number == WHOLE:
                whole += blobs
                continue
            rest = rest or _Rest.of(whole, self)
            whole = []
            yield rest.with_slice(number, unpacked(blobs))
        if rest is not None:
            yield from rest.tables()
        elif whole:
            yield unpacked(whole)

    def _slices(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.Buffer]]]:
        """The packs of each slice; counts are added up."""
        held: list[pa.Buffer] = []
        current = WHOLE
        for batch in batches:
            self.has_any |= batch.num_rows > 0
            columns = (batch.column(name) for name in (SLICE, EVENTS, TOLD))
            for number, blob, told in zip(*columns, strict=True):
                if told.is_valid:
                    numbers = dict(zip(self.rows.counted, told.as_py(), strict=True))
                    self.told = of_all([self.told, numbers])
                    continue
                if held and number.as_py() != current:
                    yield current, held
                    held = []
                current = number.as_py()
                held.append(blob_of(blob))
        if held:
            yield current, held


@dataclass
class _Rest:
    """Rows that were not cut by time, in order of their slices, and how many were given."""

    rows: pa.Table | None
    slices: np.ndarray
    given: int = 0

    @classmethod
    def of(cls, packs: list[pa.Buffer], opened: OpenedPacks) -> _Rest:
        """The rows of packs."""
        if not packs:
            return cls(None, np.empty(0, np.int64))
        rows = unpacked(packs)
        slices = opened.cells.slices_of(opened.rows.times_of(rows))
        order = stable_order(slices)
        return cls(rows.take(pa.array(order)), slices[order])

    def with_slice(self, number: int, rows: pa.Table) -> pa.Table:
        """The rows of a slice, and all of these up to its end that were not given."""
        stop = int(np.searchsorted(self.slices, number, side="right"))
        own = self._upto(stop)
        return rows if own is None else pa.concat_tables([own, rows], promote_options="permissive")

    def tables(self) -> Iterator[pa.Table]:
        """The rows that were not given."""
        last = self._upto(self.slices.size)
        if last is not None:
            yield last

    def _upto(self, stop: int) -> pa.Table | None:
        start, self.given = self.given, stop
        return None if self.rows is None or stop <= start else self.rows.slice(start, stop - start)
