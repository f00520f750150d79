"""The output batches of a finished join, all bounded in size: what every shape of output shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.errors import MemoryBudgetError
from coincide.results import JoinCounters
from coincide.timestamps import IntervalPairs
from cpu_fallback import event_decisions, event_merits, event_probabilities
from spark_plugin.worker.arrow import row_sizes
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.row_sizes import cuts, total_bytes
from spark_plugin.worker.arrow.sides import Side, grouped_events
from spark_plugin.worker.backends.fallback import make_join
from spark_plugin.worker.emission.filtered import FilteredJoin
from spark_plugin.worker.emission.ordered import in_order_of_left
from spark_plugin.worker.emission.pair_tests import OneStream, pair_test
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.in_order import in_order
from spark_plugin.worker.one_stream import doubt_of_order, window_once

Rows = tuple[np.ndarray, np.ndarray]
"""Left and right rows of pairs: int64 arrays, shape (pairs,)."""
MakeBatch = Callable[[], pa.RecordBatch]
_BATCHES_PER_THREAD = 4
_SMALLEST_BATCH = 1 << 16


class Emission(ABC):
    """The output batches of one join of two sides.

    Iterating yields RecordBatches of `schema`; `counters` holds afterwards what the join looked at.

    Parameters
    ----------
    left, right : Side
    spec : JoinSpec
    schema : pa.Schema
        From `output_schema`, in its column order.
    backend : module
        From `spark_plugin.worker.backends.choice.load_backend`.
    """

    in_lists = False
    """Whether the partners of an event stand in lists."""

    def __init__(
        self, left: Side, right: Side, spec: JoinSpec, schema: pa.Schema, backend: ModuleType
    ):
        self._left, self._right, self._spec, self.schema = left, right, spec, schema
        self._backend = backend
        self.join = self._make_join()
        if spec.in_order:
            self.join = in_order_of_left(self.join, spec.threads)
        own, others = (*left.keys, *left.payload), right.payload
        kinds = schema.types
        self._left_columns = [Gather(*each) for each in zip(own, kinds, strict=False)]
        kinds = kinds[len(own) :]
        if self.in_lists:
            kinds = [kind.value_type for kind in kinds]
        if not spec.hands_out_partners:
            others = []
        self._right_columns = [Gather(*each) for each in zip(others, kinds, strict=False)]
        # Bytes of each row of a side in its columns of texts and the like; None if it has none.
        self._sizes = tuple(
            total_bytes(column.sizes for column in columns)
            for columns in (self._left_columns, self._right_columns)
        )

    @cached_property
    def _largest(self) -> list[int]:
        """Most bytes of a row of either side."""
        return [0 if sizes is None else int(sizes.max(initial=0)) for sizes in self._sizes]

    def _make_join(self) -> Any:
        spec = self._spec
        events = grouped_events(self._left, self._right, case_fold=spec.case_fold)
        self._model, *self._events = spec.pairs.for_events(*events)
        window, is_enough = spec.window, False
        if spec.pairs_once and spec.where is None:
            window, is_enough = window_once(window, self._left, self._right)
        if window != spec.window:
            self._model = IntervalPairs(spec.window, sought=window)
        join = make_join(
            self._backend,
            *self._events,
            self._model,
            classes=spec.classes,
            threads=spec.threads,
            empty=arrow_int64,
        )
        stream = None
        if spec.is_one_stream and not is_enough:
            doubt = doubt_of_order(spec.window, spec.has_histograms)
            stream = OneStream(doubt, self._decides_swapped, self._meet_themselves, spec.shift)
        test, itself = pair_test(self._left, self._right, spec, stream)
        if test is None:
            return join
        bounds = spec.batch_pairs, spec.threads
        return FilteredJoin(join, test, *bounds, itself, merits=self._merits_of)

    def _meet_themselves(self) -> np.ndarray:
        """Which left events of one stream qualify with themselves: bool array, shape (n_left,)."""
        side, found = self._left, np.zeros(len(self._left), bool)
        rows = np.arange(len(side)) if side.matchable is None else np.flatnonzero(side.matchable)
        own, moved = (
            side.model.events(side.max_time[rows] + shift, side.shapes[rows], None, 1)
            for shift in (0, self._spec.shift)
        )
        same = np.arange(rows.size)
        found[rows] = event_decisions(own, same, moved, same, self._model)
        return found

    def _probabilities_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:
        """Satisfaction probabilities of pairs of one stream whose right event is taken to be left."""
        left, right = self._events
        found: np.ndarray = event_probabilities(right, right_rows, left, left_rows, self._model)
        return found

    def _decides_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:
        """Which pairs of one stream qualify whose right event is taken to be left."""
        left, right = self._events
        found: np.ndarray = event_decisions(right, right_rows, left, left_rows, self._model)
        return found

    def _merits_of(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By what pairs are ranked, which is done here on either backend."""
        left, right = self._events
        return event_merits(left, left_rows, right, right_rows, self._model)

    @property
    def _measures(self) -> bool:
        """Whether a pair has columns of its own, beside those of its events."""
        return self._spec.probability

    def _measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> list[np.ndarray]:
        """Those columns, of given pairs."""
        return [self._probabilities(left_rows, right_rows)] if self._measures else []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        threads, runs = self._spec.threads, self._runs()
        if all(sizes is None for sizes in self._sizes):
            yield from in_order(lambda run: [make() for make in self._parts(*run)], runs, threads)
            return
        # A run may fill many batches: they are made as they are taken.
        parts = in_order(lambda run: list(self._parts(*run)), runs, threads)
        yield from in_order(lambda make: [make()], parts, threads)

    @abstractmethod
    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        """What makes the batches of a run of base positions, each when it is called."""

    def _runs(self) -> Iterable[tuple[int, int]]:
        """Runs of base positions, a batch of pairs each."""
        return self.join.chunks(self._batch_pairs)

    def _even_runs(self, step: int) -> Iterable[tuple[int, int]]:
        """Runs of base positions, a row each."""
        n = self.join.left_order.size
        return ((start, min(start + step, n)) for start in range(0, n, step))

    @property
    def _batch_pairs(self) -> int:
        """Pairs of a batch: fewer than allowed where several threads would else share too few."""
        threads = self._spec.threads
        if threads == 1:
            return self._spec.batch_pairs
        even = int(self.join.offsets[-1]) // (threads * _BATCHES_PER_THREAD)
        return min(self._spec.batch_pairs, max(even, _SMALLEST_BATCH))

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at and found."""
        return self.join.counters

    def _kept(self, counts: np.ndarray) -> np.ndarray:
        """Which of a run of left events are in the output: those with partners, or all."""
        return np.arange(counts.size) if self._spec.how == "left" else np.flatnonzero(counts)

    def _rows(self, positions: np.ndarray, others: list[pa.Array]) -> Iterator[MakeBatch]:
        """One row per base position, with the other columns."""
        rows = self.join.left_order[positions]
        for part in self._cut(rows):
            mine = [column.slice(part.start, part.stop - part.start) for column in others]
            yield partial(self._batch, rows[part], mine)

    def _without_partner(self, positions: np.ndarray) -> Iterator[MakeBatch]:
        kinds = self.schema.types[len(self._left_columns) :]
        yield from self._rows(positions, [pa.nulls(positions.size, kind) for kind in kinds])

    def _beside_lonely(
        self, rows: Rows, measured: list[np.ndarray], lonely: np.ndarray, at: np.ndarray
    ) -> Iterator[MakeBatch]:
        """One row per pair, and per left event without a partner.

        Parameters
        ----------
        rows : (int64 array, int64 array)
            Left and right rows of pairs.
        measured : list of arrays
            Of pairs.
        lonely : int64 array
            Left rows without a partner.
        at : int64 array, ascending
            How many pairs come before each of these.
        """
        if lonely.size:
            rows = np.insert(rows[0], at, lonely), np.insert(rows[1], at, -1)
            measured = [np.insert(each, at, 0) for each in measured]
        left_rows, right_rows = rows
        for part in self._cut(left_rows, right_rows):
            nobody = right_rows[part] < 0 if lonely.size else None
            others = [pa.array(each[part], mask=nobody) for each in measured]
            yield partial(self._matched_batch, left_rows[part], right_rows[part], others)

    def _matched(
        self, left_rows: np.ndarray, right_rows: np.ndarray, measured: list[np.ndarray]
    ) -> Iterator[MakeBatch]:
        """One row per pair."""
        for part in self._cut(left_rows, right_rows):
            others = [pa.array(each[part]) for each in measured]
            yield partial(self._matched_batch, left_rows[part], right_rows[part], others)

    def _matched_batch(
        self, left_rows: np.ndarray, right_rows: np.ndarray, others: list[pa.Array]
    ) -> pa.RecordBatch:
        return self._batch(left_rows, [c.or_null(right_rows) for c in self._right_columns] + others)

    def _cut(self, *rows: np.ndarray) -> Iterator[slice]:
        """The rows of both sides, or of left alone, in batches of bounded size."""
        n = rows[0].size
        if n * sum(self._largest[: len(rows)]) <= row_sizes.BATCH_BYTES:
            yield from (slice(0, n) for _ in range(min(n, 1)))
            return
        sides = zip(self._sizes, rows, strict=False)
        sizes = total_bytes(None if s is None else s[r] for s, r in sides)
        yield from (slice(*cut) for cut in cuts(sizes, rows[0].size, row_sizes.BATCH_BYTES))

    def _probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        left, right = self._events
        given = left, left_rows, right, right_rows, self._model
        try:
            return self._backend.event_probabilities(*given)
        except MemoryBudgetError:
            # The CPU's, to the bit; a join that lacks memory has given its warning by now.
            return import_module("cpu_fallback").event_probabilities(*given)

    def _batch(self, left_rows: np.ndarray, others: list[pa.Array]) -> pa.RecordBatch:
        left = [column(left_rows) for column in self._left_columns]
        return pa.RecordBatch.from_arrays([*left, *others], schema=self.schema)


def arrow_int64(size: int) -> np.ndarray:
    """An int64 array in Arrow's pool, which keeps pages from one batch to the next."""
    return np.frombuffer(pa.allocate_buffer(8 * size), np.int64)
