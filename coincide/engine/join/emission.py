"""The output batches of a finished join, all bounded in size: pairs, lists, counts, best, rows of left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.backends import make_join
from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import Gather, cuts, total_bytes
from coincide.engine.events.sides import Side, grouped_events, tie_ranks
from coincide.engine.in_order import in_order
from coincide.engine.join.filtered import FilteredJoin, OneStream, pair_test
from coincide.engine.join.one_stream import doubt_of_order, window_once
from coincide.engine.join.ordered import in_order_of_left
from coincide.engine.join.spec import JoinSpec
from coincide.model.errors import MemoryBudgetError
from coincide.model.results import JoinCounters
from coincide.model.timestamps import IntervalPairs
from cpu_fallback import event_decisions, event_merits, event_probabilities

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
        From `coincide.engine.backends.load_backend`.
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


class Counts(Emission):
    """One row per left event, with the number of its partners."""

    def _runs(self) -> Iterable[tuple[int, int]]:
        return self._even_runs(self._spec.batch_pairs)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        counts = self.join.counts[start:stop]
        kept = self._kept(counts)
        yield from self._rows(start + kept, [pa.array(counts[kept])])


class LeftRows(Emission):
    """One row per left event that has a partner (``semi``), or lacks one (``anti``)."""

    def _runs(self) -> Iterable[tuple[int, int]]:
        return self._even_runs(self._spec.batch_pairs)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        is_there = self.join.counts[start:stop] > 0
        yield from self._rows(start + np.flatnonzero(is_there == (self._spec.how == "semi")), [])


class Pairs(Emission):
    """One row a pair; with ``how="left"`` one for each left event without a partner as well."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._spec.how == "left" and self._spec.pairs_once:
            _ = self._are_alone  # before threads share it
        yield from super().__iter__()

    @cached_property
    def _are_alone(self) -> np.ndarray:
        """Which events of one stream have no other one, by row: bool array."""
        join = self._of_others(self._spec.but(emit="counts", pairs_once=False)).join
        alone = np.empty(len(self._left), bool)
        alone[join.left_order] = join.counts == 0
        return alone

    def _of_others(self, spec: Any) -> Emission:
        """How many others events of one stream have."""
        return Counts(self._left, self._right, spec, pa.schema([]), self._backend)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        if self._spec.how != "left":
            yield from self._pairs(start, stop)
            return
        counts = self.join.counts[start:stop]
        lonely = np.flatnonzero(counts == 0)
        if self._spec.pairs_once:
            lonely = lonely[self._are_alone[self.join.left_order[start + lonely]]]
        if self._spec.in_order and lonely.size:
            left_rows, right_rows, measured = self._found(start, stop)
            at = self.join.offsets[start + lonely] - self.join.offsets[start]
            lonely = self.join.left_order[start + lonely]
            yield from self._beside_lonely((left_rows, right_rows), measured, lonely, at)
            return
        yield from self._pairs(start, stop)
        yield from self._without_partner(start + lonely)

    def _pairs(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._direct:
            yield partial(self._direct_batch, start, stop)
            return
        yield from self._matched(*self._found(start, stop))

    def _found(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Left and right rows of pairs, and their measures."""
        join = self.join
        left_rows, right_rows = join.pairs(start, stop, join.left_order, join.right_order)
        return left_rows, right_rows, self._measured(left_rows, right_rows)

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        """One plain int64 column a side, such as an id: written by the kernel itself."""
        values = self._left_direct, self._right_direct
        left, right = self.join.pairs(start, stop, *values)
        columns = [self._left_columns[0].wrap(left), self._right_columns[0].wrap(right)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    @property
    def _direct(self) -> bool:
        return not self._measures and self._is_plain

    @property
    def _is_plain(self) -> bool:
        """Whether each side has one column, of plain int64."""
        columns = self._left_columns, self._right_columns
        return all(len(side) == 1 and side[0].values is not None for side in columns)

    @property
    def _left_direct(self) -> np.ndarray:
        return self._left_columns[0].ordered(self.join.left_order)

    @property
    def _right_direct(self) -> np.ndarray:
        return self._right_columns[0].ordered(self.join.right_order)


class Lists(Emission):
    """One row per left event, its partners in lists."""

    in_lists = True

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        yield from self._lists(start, stop, self.join.counts[start:stop])

    def _lists(self, start: int, stop: int, counts: np.ndarray) -> Iterator[MakeBatch]:
        join, kept = self.join, self._kept(counts)
        if kept.size == 0:
            return
        bounds = np.concatenate([[0], np.cumsum(counts[kept])])
        if bounds[-1] > row_sizes.ARRAY_BYTES:
            if stop - start == 1:
                raise MemoryBudgetError(
                    f"one left event has {bounds[-1]} partners, more than a list can hold; use emit='pairs'"
                )
            middle = (start + stop) // 2
            yield from self._lists(start, middle, counts[: middle - start])
            yield from self._lists(middle, stop, counts[middle - start :])
            return
        columns = self._right_columns
        if len(columns) == 1 and columns[0].values is not None and not self._measures:
            values = columns[0].wrap(
                join.partners(start, stop, columns[0].ordered(join.right_order))
            )
            yield from self._rows(start + kept, [_lists_of(bounds, values)])
            return
        right_rows = join.partners(start, stop, join.right_order)
        measured: list[np.ndarray] = []
        if self._measures:
            left_rows = np.repeat(join.left_order[start:stop], counts)
            measured = self._measured(left_rows, right_rows)
        rows = join.left_order[start + kept]
        for part in self._cut_lists(rows, right_rows, bounds):
            ends = bounds[part.start : part.stop + 1]
            yield partial(self._list_batch, rows[part], ends, right_rows, measured)

    def _cut_lists(
        self, rows: np.ndarray, right_rows: np.ndarray, bounds: np.ndarray
    ) -> Iterator[slice]:
        """Left events with their lists, in batches of bounded size."""
        own, partners = self._sizes
        if partners is None:
            yield from self._cut(rows)
            return
        before = np.concatenate([[0], np.cumsum(partners[right_rows] + 1)])
        sizes = np.diff(before[bounds])
        if own is not None:
            sizes += own[rows]
        yield from (slice(*cut) for cut in cuts(sizes, rows.size, row_sizes.BATCH_BYTES))

    def _list_batch(
        self,
        rows: np.ndarray,
        bounds: np.ndarray,
        right_rows: np.ndarray,
        measured: list[np.ndarray],
    ) -> pa.RecordBatch:
        inside = slice(bounds[0], bounds[-1])
        values = [column.list_of(right_rows[inside]) for column in self._right_columns]
        values += [pa.array(each[inside]) for each in measured]
        return self._batch(rows, [_lists_of(bounds - bounds[0], value) for value in values])


def _lists_of(bounds: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)


_BEST_ROWS = 1 << 14


class Best(Emission):
    """One row per left event, with its most probable partner."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self._ranks, self._best_counters  # made before threads share them
        return super().__iter__()

    @cached_property
    def _best_counters(self) -> list[JoinCounters]:
        return []

    @property
    def counters(self) -> JoinCounters:
        """As of every `Emission`."""
        return sum(self._best_counters, JoinCounters())

    def _runs(self) -> Iterable[tuple[int, int]]:
        # A burst has very many candidates: no thread works on one run for long.
        return self._even_runs(min(self._spec.batch_pairs, _BEST_ROWS))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join, spec = self.join, self._spec
        best, _, counters = join.best(start, stop, self._ranks)
        self._best_counters.append(counters)
        found = np.flatnonzero(best >= 0)
        pairs = join.left_order[start + found], join.right_order[best[found]]
        lonely = np.flatnonzero(best < 0) if spec.how == "left" else found[:0]
        yield from self._beside_lonely(
            pairs, self._measured(*pairs), join.left_order[start + lonely],
            np.searchsorted(found, lonely),
        )  # fmt: skip

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Order for ties, by target position."""
        return tie_ranks(self._right)[self.join.right_order]
