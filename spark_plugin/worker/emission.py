"""From a finished join to Arrow batches: one function per `emit`, all bounded in size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from types import ModuleType

import numpy as np
import pyarrow as pa

from coincide.condition import Window
from coincide.errors import ConditionError, MemoryBudgetError
from coincide.options import Emit, How
from coincide.results import JoinCounters
from spark_plugin.worker.arrow import row_sizes
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.row_sizes import cuts, total_bytes
from spark_plugin.worker.arrow.sides import Side, grouped_events, tie_ranks
from spark_plugin.worker.backends.fallback import make_join
from spark_plugin.worker.in_order import in_order

MakeBatch = Callable[[], pa.RecordBatch]
_BATCHES_PER_THREAD = 4
_SMALLEST_BATCH = 1 << 16
_BEST_ROWS = 1 << 14


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

    @property
    def hands_out_partners(self) -> bool:
        """Whether right columns are in the output."""
        return hands_out_partners(self.how, self.emit)


def hands_out_partners(how: str, emit: str) -> bool:
    """Whether right columns are in the output: not of semi, anti and counts, which do not need any."""
    return how not in ("semi", "anti") and emit != "counts"


def output_schema(
    spec: JoinSpec, by: list[pa.Field], left: list[pa.Field], right: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, left columns, right columns or `matches`, probability."""
    fields = [*by, *left]
    if spec.emit == "counts":
        fields.append(pa.field("matches", pa.int64(), nullable=False))
    elif spec.hands_out_partners:
        wrap = pa.list_ if spec.emit == "lists" else lambda kind: kind
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
        raise ConditionError(f"how={how!r} gives one row per left event; leave out emit={emit!r}")
    if probability and (how in ("semi", "anti") or emit == "counts"):
        shape = f"how={how!r}" if how in ("semi", "anti") else "emit='counts'"
        raise ConditionError(
            f"{shape} has no pair to give a probability of; leave out probability=True"
        )


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
        From `spark_plugin.worker.backends.choice.load_backend`.
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
        own, others = (*left.keys, *left.payload), right.payload
        kinds = schema.types
        self._left_columns = [Gather(*each) for each in zip(own, kinds, strict=False)]
        kinds = kinds[len(own) :]
        if spec.emit == "lists":
            kinds = [kind.value_type for kind in kinds]
        if not spec.hands_out_partners:
            others = []
        self._right_columns = [Gather(*each) for each in zip(others, kinds, strict=False)]
        # Bytes of each row of a side in its columns of texts and the like; None if it has none.
        self._sizes = tuple(
            total_bytes(column.sizes for column in columns)
            for columns in (self._left_columns, self._right_columns)
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._spec.emit == "best":
            _ = self._ranks  # ranked before threads share it
        threads, runs = self._spec.threads, self._runs()
        if all(sizes is None for sizes in self._sizes):
            yield from in_order(lambda run: [make() for make in self._parts(*run)], runs, threads)
            return
        # A run may fill many batches: they are made as they are taken.
        parts = in_order(lambda run: list(self._parts(*run)), runs, threads)
        yield from in_order(lambda make: [make()], parts, threads)

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

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        """What makes the batches of a run, each when it is called."""
        spec = self._spec
        if spec.emit == "best":
            yield from self._best(start, stop)
            return
        counts = self.join.counts[start:stop]
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
                yield from self._without_partner(start + np.flatnonzero(counts == 0))

    def _kept(self, counts: np.ndarray) -> np.ndarray:
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

    def _matched(
        self, left_rows: np.ndarray, right_rows: np.ndarray, probabilities: np.ndarray | None
    ) -> Iterator[MakeBatch]:
        """One row per pair."""
        for part in self._cut(left_rows, right_rows):
            others = [] if probabilities is None else [pa.array(probabilities[part])]
            yield partial(self._matched_batch, left_rows[part], right_rows[part], others)

    def _matched_batch(
        self, left_rows: np.ndarray, right_rows: np.ndarray, others: list[pa.Array]
    ) -> pa.RecordBatch:
        return self._batch(left_rows, [c(right_rows) for c in self._right_columns] + others)

    def _cut(self, *rows: np.ndarray) -> Iterator[slice]:
        """The rows of both sides, or of left alone, in batches of bounded size."""
        sides = zip(self._sizes, rows, strict=False)
        sizes = total_bytes(None if s is None else s[r] for s, r in sides)
        yield from (slice(*cut) for cut in cuts(sizes, rows[0].size, row_sizes.BATCH_BYTES))

    def _pairs(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._direct:
            yield partial(self._direct_batch, start, stop)
            return
        left_rows, right_rows = join.pairs(start, stop, join.left_order, join.right_order)
        found = self._probabilities(left_rows, right_rows) if self._spec.probability else None
        yield from self._matched(left_rows, right_rows, found)

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        """One plain int64 column a side, such as an id: written by the kernel itself."""
        values = self._left_direct, self._right_direct
        left, right = self.join.pairs(start, stop, *values)
        columns = [self._left_columns[0].wrap(left), self._right_columns[0].wrap(right)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

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
        if len(columns) == 1 and columns[0].values is not None and not self._spec.probability:
            values = columns[0].wrap(join.partners(start, stop, self._right_direct))
            yield from self._rows(start + kept, [_lists_of(bounds, values)])
            return
        right_rows = join.partners(start, stop, join.right_order)
        found = None
        if self._spec.probability:
            left_rows = np.repeat(join.left_order[start:stop], counts)
            found = self._probabilities(left_rows, right_rows)
        rows = join.left_order[start + kept]
        for part in self._cut_lists(rows, right_rows, bounds):
            ends = bounds[part.start : part.stop + 1]
            yield partial(self._list_batch, rows[part], ends, right_rows, found)

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
        probabilities: np.ndarray | None,
    ) -> pa.RecordBatch:
        inside = slice(bounds[0], bounds[-1])
        values = [column.list_of(right_rows[inside]) for column in self._right_columns]
        if probabilities is not None:
            values.append(pa.array(probabilities[inside]))
        return self._batch(rows, [_lists_of(bounds - bounds[0], value) for value in values])

    def _best(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join, spec = self.join, self._spec
        best, probabilities, counters = join.best(start, stop, self._ranks)
        self._best_counters.append(counters)
        found = np.flatnonzero(best >= 0)
        yield from self._matched(
            join.left_order[start + found],
            join.right_order[best[found]],
            probabilities[found] if spec.probability else None,
        )
        if spec.how == "left":
            yield from self._without_partner(start + np.flatnonzero(best < 0))

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

    def _batch(self, left_rows: np.ndarray, others: list[pa.Array]) -> pa.RecordBatch:
        left = [column(left_rows) for column in self._left_columns]
        return pa.RecordBatch.from_arrays([*left, *others], schema=self.schema)


def _lists_of(bounds: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)


def _arrow_int64(size: int) -> np.ndarray:
    """An int64 array in Arrow's pool, which keeps pages from one batch to the next."""
    return np.frombuffer(pa.allocate_buffer(8 * size), np.int64)
