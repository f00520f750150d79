"""From a finished join to Arrow batches: one function per `emit`, all bounded in size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from event_model.condition import Window
from event_model.errors import ConditionError, MemoryBudgetError
from event_model.options import Emit, How
from event_model.results import JoinCounters
from spark_plugin.fallback import make_join
from spark_plugin.sides import Side, grouped_events, tie_ranks

T = TypeVar("T")
R = TypeVar("R")
_BATCHES_PER_THREAD = 4
_SMALLEST_BATCH = 1 << 16
_BEST_ROWS = 1 << 14
_LARGEST_LIST_OFFSET = 2**31 - 1


@dataclass(frozen=True)
class JoinSpec:
    """What a join computes, resolved to ticks: everything but the data.

    Parameters
    ----------
    window : Window
    how, emit : str
    probability : bool
    backend : str
    classes : int or None
    threads : int
    batch_pairs : int
    """

    window: Window
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: str = "auto"
    classes: int | None = None
    threads: int = 1
    batch_pairs: int = 1_000_000

    @property
    def keeps_unmatched(self) -> bool:
        """Whether left events without a partner appear in the output."""
        return self.how in ("left", "anti")

    @property
    def one_row_per_event(self) -> bool:
        """Whether the right columns are absent: semi and anti."""
        return self.how in ("semi", "anti")


def output_schema(
    spec: JoinSpec, by: list[pa.Field], left: list[pa.Field], right: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, left columns, right columns or `matches`, probability."""
    fields = [*by, *left]
    if not spec.one_row_per_event:
        wrap = pa.list_ if spec.emit == "lists" else lambda kind: kind
        if spec.emit == "counts":
            fields.append(pa.field("matches", pa.int64(), nullable=False))
        else:
            fields += [pa.field(f.name, wrap(f.type)) for f in right]
            if spec.probability:
                fields.append(pa.field("probability", wrap(pa.float64())))
    check_output_names([field.name for field in fields])
    return pa.schema(fields)


def check_output_names(names: list[str]) -> None:
    """Refuse output columns of the same name, and an output without columns.

    Raises
    ------
    ConditionError
    """
    if not names:
        raise ConditionError(
            "the output would have no columns; ask for at least one, such as an id"
        )
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConditionError(f"two output columns would be called {', '.join(doubled)}; rename one")


def check_emission(how: str, emit: str, probability: bool) -> None:
    """Refuse combinations that have no meaning.

    Raises
    ------
    ConditionError
    """
    if how in ("semi", "anti") and emit != "pairs":
        raise ConditionError(
            f"how={how!r} gives one row per left event; leave emit out, found {emit!r}"
        )
    if probability and (how in ("semi", "anti") or emit == "counts"):
        shape = f"how={how!r}" if how in ("semi", "anti") else "emit='counts'"
        raise ConditionError(f"{shape} has no pair to give a probability of; leave probability out")


class Emission:
    """The output batches of one join of two sides.

    Iterating yields RecordBatches of `schema`; `counters` holds afterwards what the join looked at.

    Parameters
    ----------
    left, right : Side
    spec : JoinSpec
    schema : pa.Schema
        From `output_schema`, in its column order.
    backend : module
        From `spark_plugin.backends.load_backend`.
    """

    def __init__(
        self, left: Side, right: Side, spec: JoinSpec, schema: pa.Schema, backend: ModuleType
    ):
        self._left, self._right, self._spec, self.schema = left, right, spec, schema
        self._backend = backend
        self._left_events, self._right_events = grouped_events(left, right)
        self.join = make_join(
            backend,
            self._left_events,
            self._right_events,
            spec.window,
            classes=spec.classes,
            threads=spec.threads,
            empty=_arrow_int64,
        )
        self._best_counters: list[JoinCounters] = []
        self._left_columns = [Gather(column) for column in (*left.keys, *left.payload)]
        self._right_columns = [Gather(column) for column in right.payload]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        make = self._chunk
        if self._spec.emit == "best":
            make, _ = self._best, self._ranks  # ranked before threads share it
        yield from in_order(lambda run: list(make(*run)), self._runs(), self._spec.threads)

    def _runs(self) -> Iterable[tuple[int, int]]:
        """Runs of base positions, a batch each."""
        if self._spec.one_row_per_event or self._spec.emit in ("counts", "best"):
            n, step = self.join.left_order.size, self._spec.batch_pairs
            if self._spec.emit == "best":
                # A burst has very many candidates: no thread works on one run for long.
                step = min(step, _BEST_ROWS)
            return ((start, min(start + step, n)) for start in range(0, n, step))
        return self.join.chunks(self._batch_pairs)

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
        if self._spec.emit == "best":
            return sum(self._best_counters, JoinCounters())
        return self.join.counters

    def _chunk(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        spec, counts = self._spec, self.join.counts[start:stop]
        if spec.one_row_per_event:
            yield from self._rows(start + np.flatnonzero((counts > 0) == (spec.how == "semi")), [])
        elif spec.emit == "counts":
            kept = self._kept(counts)
            yield from self._rows(start + kept, [pa.array(counts[kept])])
        elif spec.emit == "lists":
            yield from self._lists(start, stop, counts)
        else:
            yield from self._pairs(start, stop)
            if spec.how == "left":
                yield from self._rows(start + np.flatnonzero(counts == 0), self._no_partners)

    def _kept(self, counts: np.ndarray) -> np.ndarray:
        return np.arange(counts.size) if self._spec.how == "left" else np.flatnonzero(counts)

    def _rows(self, positions: np.ndarray, right: Any) -> Iterator[pa.RecordBatch]:
        """One row per base position; `right` holds the other columns, or makes them for n rows."""
        if positions.size == 0:
            return
        rows = self.join.left_order[positions]
        others = right(rows.size) if callable(right) else right
        yield self._batch([column(rows) for column in self._left_columns], others)

    def _no_partners(self, n: int) -> list[pa.Array]:
        return [pa.nulls(n, field.type) for field in list(self.schema)[len(self._left_columns) :]]

    def _pairs(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._direct:
            # One plain int64 column a side, such as an id: written by the kernel itself.
            values = self._left_direct, self._right_direct
            left, right = join.pairs(start, stop, *values)
            yield self._batch(
                [self._left_columns[0].wrap(left)], [self._right_columns[0].wrap(right)]
            )
            return
        left_rows, right_rows = join.pairs(start, stop, join.left_order, join.right_order)
        others = [column(right_rows) for column in self._right_columns]
        if self._spec.probability:
            others.append(pa.array(self._probabilities(left_rows, right_rows)))
        yield self._batch([column(left_rows) for column in self._left_columns], others)

    @property
    def _direct(self) -> bool:
        columns = self._left_columns, self._right_columns
        return not self._spec.probability and all(
            len(side) == 1 and side[0].values is not None for side in columns
        )

    @property
    def _left_direct(self) -> np.ndarray:
        return self._left_columns[0].ordered(self.join.left_order)

    @property
    def _right_direct(self) -> np.ndarray:
        return self._right_columns[0].ordered(self.join.right_order)

    def _lists(self, start: int, stop: int, counts: np.ndarray) -> Iterator[pa.RecordBatch]:
        join, kept = self.join, self._kept(counts)
        if kept.size == 0:
            return
        bounds = np.concatenate([[0], np.cumsum(counts[kept])])
        if bounds[-1] > _LARGEST_LIST_OFFSET:
            if stop - start == 1:
                raise MemoryBudgetError(
                    f"one left event has {bounds[-1]} partners, more than a list can hold; use emit='pairs'"
                )
            middle = (start + stop) // 2
            yield from self._lists(start, middle, counts[: middle - start])
            yield from self._lists(middle, stop, counts[middle - start :])
            return
        offsets = pa.array(bounds.astype(np.int32))
        columns = self._right_columns
        if len(columns) == 1 and columns[0].values is not None and not self._spec.probability:
            values = [columns[0].wrap(join.partners(start, stop, self._right_direct))]
        else:
            right_rows = join.partners(start, stop, join.right_order)
            values = [column(right_rows) for column in columns]
            if self._spec.probability:
                left_rows = np.repeat(join.left_order[start:stop], counts)
                values.append(pa.array(self._probabilities(left_rows, right_rows)))
        lists = [pa.ListArray.from_arrays(offsets, value) for value in values]
        yield from self._rows(start + kept, lists)

    def _best(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        join, spec = self.join, self._spec
        best, probabilities, counters = join.best(start, stop, self._ranks)
        self._best_counters.append(counters)
        found = np.flatnonzero(best >= 0)
        others = [column(join.right_order[best[found]]) for column in self._right_columns]
        if spec.probability:
            others.append(pa.array(probabilities[found]))
        yield from self._rows(start + found, others)
        if spec.how == "left":
            yield from self._rows(start + np.flatnonzero(best < 0), self._no_partners)

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Order for ties, by target position."""
        return tie_ranks(self._right)[self.join.right_order]

    def _probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        given = self._left_events, left_rows, self._right_events, right_rows, self._spec.window
        try:
            return self._backend.pair_probabilities(*given)
        except MemoryBudgetError:
            # The CPU's, to the bit; a join that lacks memory has given its warning by now.
            return import_module("cpu_fallback").pair_probabilities(*given)

    def _batch(self, left: list[pa.Array], right: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*left, *right], schema=self.schema)


class Gather:
    """A column to take rows from; plain 64-bit integers without nulls take the NumPy way.

    Parameters
    ----------
    column : pa.Array
    """

    def __init__(self, column: pa.Array) -> None:
        self.column = column
        self.values: np.ndarray | None = None
        self._ordered: np.ndarray | None = None
        if column.null_count == 0 and _is_int64(column.type):
            self.values = column.view(pa.int64()).to_numpy()

    def __call__(self, rows: np.ndarray) -> pa.Array:
        """The rows' values."""
        if self.values is None:
            return self.column.take(pa.array(rows))
        return self.wrap(self.values[rows])

    def ordered(self, order: np.ndarray) -> np.ndarray:
        """All values in an order, computed once: int64 array."""
        if self._ordered is None:
            assert self.values is not None
            self._ordered = self.values[order]
        return self._ordered

    def wrap(self, values: np.ndarray) -> pa.Array:
        """An int64 array as a column of this type, without a copy."""
        return pa.array(values).view(self.column.type)


def _arrow_int64(size: int) -> np.ndarray:
    """An int64 array in Arrow's pool, which keeps pages from one batch to the next."""
    return np.frombuffer(pa.allocate_buffer(8 * size), np.int64)


def _is_int64(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_int64(kind)
        or types.is_timestamp(kind)
        or types.is_duration(kind)
        or types.is_time64(kind)
    )


def in_order(make: Callable[[T], Sequence[R]], items: Iterable[T], threads: int) -> Iterator[R]:
    """Results of `make` for each item, in the order of the items, made by several threads.

    At most `threads` + 1 items are under way or waiting to be taken, which bounds the memory.
    """
    if threads == 1:
        for item in items:
            yield from make(item)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Sequence[R]]] = deque()
        for item in items:
            waiting.append(pool.submit(make, item))
            if len(waiting) > threads:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
