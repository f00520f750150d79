"""The output batches of a finished join, all bounded in size: pairs, lists, counts, best, rows of left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import Gather, cuts, is_string, numbers_in_runs, total_bytes
from coincide.engine.events.schemas import stored
from coincide.engine.join.derived_joins import OrderedJoin, is_ascending
from coincide.engine.join.spec import NO_NUMBER, OVERLAP_ENDS, Pairing, unmatched_right
from coincide.engine.pairs.best import BestMatches
from coincide.engine.pairs.source import Rows, values_for
from coincide.engine.room import Expected, bytes_of_rows, fixed_bytes
from coincide.model.counters import JoinCounters
from coincide.model.errors import MemoryBudgetError, SchemaError
from coincide.model.options import OUTPUT_ROWS, Delay, PreferenceWord, Preferred
from coincide.model.relations import SpanWindow
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.threads import in_order, run_tasks
from cpu_fallback.join.filtering import EARLIEST, LATEST, NEAREST, Keys, ordered_delays

_DELAYS: dict[Delay, int] = {"nearest": NEAREST, "first": EARLIEST, "last": LATEST}
_SIGN = np.uint64(1 << 63)


class PairOrder:
    """The order of matches, of either side."""

    def __init__(self, pairing: Pairing) -> None:
        self.pairing, matches = pairing, pairing.spec.choice
        self._word, self._columns = matches.word, matches.columns
        self._is_by_column, self._has_second = matches.is_by_column, matches.then is not None
        self._ties = matches.ties
        self._is_of_spans = isinstance(pairing.spec.widest, SpanWindow)

    def prepared(self, *sides: int) -> PairOrder:
        """Itself, the ties of matches of these sides decided, for threads that share it."""
        for side in sides:
            _ = self.ranks(side)
        return self

    def preferred(self, rows: Rows) -> np.ndarray:
        """By what pairs are ordered first, the least being best: int64 array, shape (pairs,)."""
        # For either event of a pair: the first match of a left event is its earliest, that of a
        # right event its latest, as both have the least delay.
        if self._is_by_column:
            return self._of_columns[0][rows[RIGHT]]
        # Floats that are not negative are ordered as their bits are.
        if self._word.is_merit:
            return -self.pairing.merits(*rows)[0].view(np.int64)
        if self._word.needs_places:
            return self.pairing.measured(*rows)["distance"].view(np.int64)
        delay = self._word.delay
        assert delay is not None
        if delay == "nearest" and self._is_of_spans:
            return np.maximum(-self.pairing.overlaps(*rows), 0)
        return ordered_delays(*self._places_in_time, rows, _DELAYS[delay])

    def leading(self, rows: Rows) -> Keys:
        """By what pairs are ordered first, and what parts most of those that are equal then."""
        # Where ties count, pairs that are equal in both are ties.
        by_gap = self.pairing.spec.prefers_by_gap
        if self._word.is_merit and (by_gap or not self._has_second):
            merits, apart = self.pairing.merits(*rows)
            first = -merits.view(np.int64)
            is_parted = self._ties == "order" or by_gap
            return first, sortable(apart) if is_parted else np.zeros_like(first)
        first = self.preferred(rows)
        return first, self.second(rows) if self._has_second else np.zeros(first.size, np.int64)

    def second(self, rows: Rows) -> np.ndarray:
        """By what pairs are ordered that are equal in what is preferred first: int64 array."""
        return self._of_columns[-1][rows[RIGHT]]

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of the window, half ticks: uint64 array, shape (pairs,)."""
        return self.pairing.merits(*rows)[1]

    def best(self, rows: Rows, of: int, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best pairs of each event, whose matches are on side `of`: numbers, and ranks from 1."""
        events = rows[LEFT if of == RIGHT else RIGHT]
        merits, apart = self.pairing.merits(*rows)
        # As bits: overlaps of spans are bits of numbers that some libraries take for zero.
        least_first = [-merits.view(np.int64), apart, self.ranks(of)[rows[of]]]
        named = [*self.leading(rows)] if self._has_second or self._ties == "all" else []
        if self._has_second and self.pairing.spec.prefers_by_gap:
            named.append(self.second(rows))
        if not self._word.is_merit and not named:
            named = [self.preferred(rows)]
        least_first = [*named, *least_first]
        if self.pairing.spec.coordinates:
            least_first.insert(-1, self.pairing.measured(*rows)["distance"])
        order = np.lexsort((*reversed(least_first), events))
        ranks = _places(events[order]) + 1
        if self._ties == "all":
            keys = [events, *named]
            is_worse = np.logical_or.reduce(
                [np.diff(each[order], prepend=-1) != 0 for each in keys]
            )
            is_worse[:1] = True
            ranks = ranks[np.maximum.accumulate(np.where(is_worse, np.arange(order.size), 0))]
        kept = ranks <= k
        return order[kept], ranks[kept]

    def ranks(self, side: int) -> np.ndarray:
        """Order of the events of a side among matches equal in all else: int64 array, by row."""
        return self._left_ranks if side == LEFT else self._right_ranks

    @remembered
    def _left_ranks(self) -> np.ndarray:
        return self.pairing.tie_ranks(LEFT)

    @remembered
    def _right_ranks(self) -> np.ndarray:
        return self.pairing.tie_ranks(RIGHT)

    @remembered
    def _places_in_time(self) -> Rows:
        """Midpoints of both sides, of spans their starts, doubled: int64 arrays, half ticks."""
        left, right = self.pairing.left, self.pairing.right
        if self._is_of_spans:
            return 2 * left.min_time, 2 * right.min_time
        return left.min_time + left.max_time, right.min_time + right.max_time

    @remembered
    def _of_columns(self) -> list[np.ndarray]:
        """Right rows' preferred columns, which come after those of a condition on pairs."""
        given = self.pairing.right.tested[-len(self._columns) :]
        return [preference(*each) for each in zip(given, self._columns, strict=True)]


def sortable(distances: np.ndarray) -> np.ndarray:
    """Unsigned numbers moved down to signed ones, as Spark has no others, in their order."""
    return (distances ^ _SIGN).view(np.int64)


def _places(events: np.ndarray) -> np.ndarray:
    """The number of each entry in its event, from 0, where those of an event are together."""
    begins = np.ones(events.size, bool)
    begins[1:] = events[1:] != events[:-1]
    return numbers_in_runs(begins)


_LAST = np.iinfo(np.int64).max - 1
"""The rank of null; NaN has one less, and numbers at most two less."""
_FIRST, _ROOM = np.iinfo(np.int64).min, np.iinfo(np.int64).max - _LAST + 2
"""The least number, and how many at the end are left to what is no number."""
_MOST_DIGITS = 18
"""Most digits of a decimal whose digits are an int64."""


def check_preferred(
    side: str, names: Sequence[str], kinds: Sequence[pa.DataType], *, in_tasks: bool
) -> None:
    """Refuse columns by which matches cannot be ordered; in tasks all must be as good as an int64."""
    for name, kind in zip(names, kinds, strict=True):
        if _is_number(kind) or (not in_tasks and _is_text(kind)):
            continue
        takes = "on Spark takes a column of numbers or times"
        takes = takes if in_tasks else "takes a column of numbers, times or texts"
        raise SchemaError(
            f"{PreferenceWord.option} {takes} (found {side}.{name}, which is {kind}). Cast it, for"
            " example long decimals to float64."
        )


def _is_number(kind: pa.DataType) -> bool:
    """Whether values are numbers, times or such, in the order of numbers of 64 bits."""
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    is_number |= types.is_decimal(kind) and kind.precision <= _MOST_DIGITS
    return bool(is_number or (types.is_temporal(kind) and not types.is_interval(kind)))


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are texts, bytes or long decimals, which have an order of their own."""
    types = pa.types
    is_binary = types.is_binary(kind) or types.is_large_binary(kind)
    is_binary |= types.is_fixed_size_binary(kind) and not types.is_decimal(kind)
    return bool(is_string(kind) or is_binary or types.is_decimal(kind))


def preference(column: pa.Array, preferred: Preferred) -> np.ndarray:
    """Numbers of which the least is the best: int64 array, shape (n,); nulls are last, before them NaN."""
    # The largest whole numbers give way to null and NaN in either order: of unsigned ones 0 is common.
    column = stored(column)
    nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_floating(kind):
        # From 16 bits NumPy widens, which Arrow does not.
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        found = _of_floats(-values if preferred.is_descending else values)
    else:
        found = _of_whole(column) if _is_number(kind) else _places_of(column)
        if preferred.is_descending:
            found = np.maximum(~found, _FIRST + _ROOM) - _ROOM
        else:
            found = np.minimum(found, _LAST - 2)
    found[nulls] = _LAST
    return found


def _of_floats(values: np.ndarray) -> np.ndarray:
    bits = (values + 0.0).view(np.int64)  # the two zeros become one
    found = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    found[np.isnan(values)] = _LAST - 1
    return found


def _places_of(column: pa.Array) -> np.ndarray:
    """The place of each value among all that there are: int64 array."""
    return pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)


def _of_whole(column: pa.Array) -> np.ndarray:
    """Whole numbers, and what is stored as such, in their order: int64 array."""
    kind, types = column.type, pa.types
    if types.is_uint64(kind):
        return (column.fill_null(0).to_numpy() ^ np.uint64(1 << 63)).view(np.int64)
    if types.is_decimal(kind):
        wide = column.cast(pa.decimal128(kind.precision, kind.scale)).fill_null(0)
        digits = np.frombuffer(wide.buffers()[1], np.int64)[::2]
        return digits[wide.offset : wide.offset + len(wide)].copy()
    if types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).copy()


MakeBatch = Callable[[], pa.RecordBatch]
_BATCHES_PER_THREAD = 4
_SMALLEST_BATCH = 1 << 16
_NO_ROWS = np.empty(0, np.int64)


class Emission(ABC):
    """The output batches of one join of two sides, in the columns of `output_schema`."""

    # Iterating yields them; `counters` holds afterwards what the join looked at.

    in_lists = False
    """Whether the matches of an event are in lists."""
    orders_rows = False
    """Whether rows come in the order of left in whatever order pairs are looked at."""

    def __init__(self, pairing: Pairing, schema: pa.Schema) -> None:
        self.pairing, self.schema = pairing, schema
        self.join, self._measuring = pairing.join, pairing.measuring
        self._left, self._right, self._spec = pairing.left, pairing.right, pairing.spec
        left, right, spec = self._left, self._right, self._spec
        sorts = spec.in_order and not self.orders_rows
        self._is_moved = sorts and not is_ascending(pairing.join.left_order)
        if self._is_moved:
            self.join, self._measuring = OrderedJoin(pairing), None
        own, others = (*left.keys, *left.payload), right.payload
        kinds = schema.types
        self._left_columns = [Gather(*each) for each in zip(own, kinds, strict=False)]
        kinds = kinds[len(own) :]
        if self.in_lists:
            kinds = [kind.value_type for kind in kinds]
        if not spec.outputs_matches:
            others = []
        self._right_columns = [Gather(*each) for each in zip(others, kinds, strict=False)]
        # Bytes of each row of a side in its columns of texts and the like; None if it has none.
        self._sizes = tuple(
            total_bytes(column.sizes for column in columns)
            for columns in (self._left_columns, self._right_columns)
        )

    @remembered
    def _largest(self) -> list[int]:
        """Most bytes of a row of either side."""
        return [0 if sizes is None else int(sizes.max(initial=0)) for sizes in self._sizes]

    @remembered
    def _order(self) -> PairOrder:
        return PairOrder(self.pairing)

    def _plain(self, side: int) -> Any:
        """The only column of a side, of plain int64, as the join takes it."""
        (column,) = self._left_columns if side == LEFT else self._right_columns
        assert column.by_row is not None
        return values_for(self.join, side, column.by_row)

    def _measured(self, rows: Rows, **known: np.ndarray) -> list[np.ndarray]:
        """The columns of pairs of their own, in the order of `AnySpec.measures`; some may be known."""
        names = self._spec.measures
        if names and (self._spec.delta_name or "") not in known:
            known |= self.pairing.measured(*rows)
        return [known[n] if n in known else _COLUMNS[n](self._order, rows) for n in names]

    def _pair_column(
        self, name: str, values: np.ndarray, is_null: np.ndarray | None = None
    ) -> pa.Array:
        """One of the columns of pairs, in which some have no value: `NO_NUMBER` is null, too."""
        if values.dtype == np.float64:
            return pa.array(values, mask=is_null)
        has_none = values == NO_NUMBER
        is_null = has_none if is_null is None else is_null | has_none
        if name not in OVERLAP_ENDS:
            return pa.array(values, mask=is_null)
        kind, scale = self.schema.field(name).type, self._spec.overlap_scale
        kind = kind.value_type if self.in_lists else kind
        if pa.types.is_floating(kind):
            return pa.array(values * scale.denominator / scale.numerator, mask=is_null)
        whole = values if scale == 1 else values // scale.numerator
        return pa.array(whole, mask=is_null).view(kind)

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
        n = len(self._left)
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

    @property
    def expected(self) -> Expected | None:
        """What there will be; None where a left event has a few rows, however many pairs there are."""
        return None

    def _kept(self, counts: np.ndarray) -> np.ndarray:
        """Which of a run of left events are in the output: those with matches, or all."""
        return np.arange(counts.size) if self._spec.keeps_unmatched else np.flatnonzero(counts)

    def _rows(self, positions: np.ndarray, others: list[pa.Array]) -> Iterator[MakeBatch]:
        """One row per base position, with the other columns."""
        yield from self._left_rows(self.join.left_order[positions], others)

    def _left_rows(self, rows: np.ndarray, others: list[pa.Array]) -> Iterator[MakeBatch]:
        """One row per left row, with the other columns."""
        for part in self._cut(rows):
            mine = [column.slice(part.start, part.stop - part.start) for column in others]
            yield partial(self._batch, rows[part], mine)

    def _unmatched(self, positions: np.ndarray) -> Iterator[MakeBatch]:
        kinds = self.schema.types[len(self._left_columns) :]
        yield from self._rows(positions, [pa.nulls(positions.size, kind) for kind in kinds])

    def _matched(
        self,
        rows: Rows,
        measured: list[np.ndarray],
        lonely: np.ndarray = _NO_ROWS,
        at: np.ndarray = _NO_ROWS,
    ) -> Iterator[MakeBatch]:
        """One row per pair, and per left row without a match, before which come `at` pairs, ascending."""
        if lonely.size:
            rows = np.insert(rows[0], at, lonely), np.insert(rows[1], at, -1)
            measured = [np.insert(each, at, 0) for each in measured]
        left_rows, right_rows = rows
        named = list(zip(self._spec.measures, measured, strict=True))
        for part in self._cut(left_rows, right_rows):
            is_alone = right_rows[part] < 0 if lonely.size else None
            others = [self._pair_column(n, each[part], is_alone) for n, each in named]
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

    def _batch(self, left_rows: np.ndarray | slice, others: list[pa.Array]) -> pa.RecordBatch:
        left = [column(left_rows) for column in self._left_columns]
        return pa.RecordBatch.from_arrays([*left, *others], schema=self.schema)


class _OfAllPairs(Emission):
    """Rows that hold every pair."""

    @property
    def expected(self) -> Expected | None:
        """From the counts of all left events."""
        join, how_many = self.join, self.join.counts
        pairs, lonely = int(join.offsets[-1]), int(np.count_nonzero(how_many == 0))
        each = np.minimum(how_many, 1) if self.in_lists else how_many
        rows = int(each.sum()) + (lonely if self._spec.keeps_unmatched else 0)
        kinds, first = self.schema.types, len(self._left_columns)
        of_matches = [kind.value_type if self.in_lists else kind for kind in kinds[first:]]
        size = rows * fixed_bytes(kinds[:first]) + pairs * fixed_bytes(of_matches)
        own, others = self._sizes
        if own is not None:
            by_row = np.empty(each.size, np.int64)
            by_row[join.left_order] = each
            size += bytes_of_rows(own, by_row)
        if others is not None and others.size:
            size += int(pairs * others.mean())
        return Expected(pairs, rows, size)


class _OfCounts(Emission):
    """Rows of left events in their order, where the number of their matches matters."""

    orders_rows = True

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self.join.row_counts  # once, before threads share it
        return super().__iter__()

    def _runs(self) -> Iterable[tuple[int, int]]:
        return self._even_runs(self._spec.batch_pairs)

    def _of_run(self, start: int, kept: np.ndarray, others: list[pa.Array]) -> Iterator[MakeBatch]:
        """Rows of a run of left rows, which are kept by their numbers in it."""
        is_whole = kept.size > 0 and kept[-1] - kept[0] + 1 == kept.size
        if is_whole and self._sizes[LEFT] is None:  # columns pass as they are
            rows = slice(start + int(kept[0]), start + int(kept[-1]) + 1)
            yield partial(self._batch, rows, others)
        else:
            yield from self._left_rows(start + kept, others)


class Counts(_OfCounts):
    """One row per left event, with the number of its matches."""

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        counts = self.join.row_counts[start:stop]
        kept = self._kept(counts)
        yield from self._of_run(start, kept, [pa.array(counts[kept])])


class LeftRows(_OfCounts):
    """One row per left event that has a match (``semi``), or lacks one (``anti``)."""

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        is_there = self.join.row_counts[start:stop] > 0
        kept = np.flatnonzero(is_there == (self._spec.how == "semi"))
        yield from self._of_run(start, kept, [])


class Pairs(_OfAllPairs):
    """One row a pair; with ``how="left"`` one for each left event without a match as well."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._spec.keeps_unmatched and self._spec.pairs_once:
            _ = self._are_alone  # before threads share it
        if self._is_direct and self.join.offsets[-1]:
            # The numbers of right rows are needed where those in no pair come out.
            sides = (LEFT,) if self._spec.keeps_right else (LEFT, RIGHT)
            tasks = [partial(self._plain, side) for side in sides]
            run_tasks(tasks, self._spec.threads)  # once, not by each of them
        if self._spec.keeps_right:
            _ = self._is_met  # before threads share it
        yield from super().__iter__()
        if self._spec.keeps_right:
            yield from self._right_alone()

    @remembered
    def _is_met(self) -> np.ndarray:
        """Which right events are in a pair that was found so far, by row: bool array."""
        return np.zeros(len(self._right), bool)

    def _right_alone(self) -> Iterator[pa.RecordBatch]:
        """Right events without a match, in the order of rows: their keys and columns, all else null."""
        schema = self.schema
        keys = [Gather(*each) for each in zip(self._right.keys, schema.types, strict=False)]
        columns = [*keys, *self._right_columns]
        sizes = total_bytes(column.sizes for column in columns)
        alone, step = np.flatnonzero(~self._is_met), self._spec.batch_pairs

        def batch(rows: np.ndarray) -> pa.RecordBatch:
            nulls = [pa.nulls(rows.size, kind) for kind in schema.types]
            own = [column(rows) for column in columns]
            placed = unmatched_right(own, nulls, len(keys), len(self._spec.measures))
            return pa.RecordBatch.from_arrays(placed, schema=schema)

        def batches(rows: np.ndarray) -> list[pa.RecordBatch]:
            of_rows = None if sizes is None else sizes[rows]
            parts = cuts(of_rows, rows.size, row_sizes.BATCH_BYTES)
            return [batch(rows[start:stop]) for start, stop in parts]

        runs = (alone[start : start + step] for start in range(0, alone.size, step))
        yield from in_order(batches, runs, self._spec.threads)

    @remembered
    def _are_alone(self) -> np.ndarray:
        """Which events of one stream have no other one, by row: bool array."""
        others = self._spec.counted.but(pairs_once=False)
        join = others.pairing(self._left, self._right).join
        alone = np.empty(len(self._left), bool)
        alone[join.left_order] = join.counts == 0
        return alone

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        if not self._spec.keeps_unmatched:
            yield from self._pairs(start, stop)
            return
        counts = self.join.counts[start:stop]
        lonely = np.flatnonzero(counts == 0)
        if self._spec.pairs_once:
            lonely = lonely[self._are_alone[self.join.left_order[start + lonely]]]
        if self._spec.in_order and lonely.size:
            at = self.join.offsets[start + lonely] - self.join.offsets[start]
            lonely = self.join.left_order[start + lonely]
            yield from self._matched(*self._found(start, stop), lonely, at)
            return
        yield from self._pairs(start, stop)
        yield from self._unmatched(start + lonely)

    def _pairs(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        if join.offsets[start] == join.offsets[stop]:
            return
        if self._is_direct:
            yield partial(self._direct_batch, start, stop)
            return
        yield from self._matched(*self._found(start, stop))

    def _found(self, start: int, stop: int) -> tuple[Rows, list[np.ndarray]]:
        """Left and right rows of pairs, and their measures."""
        join = self.join
        left_rows, right_rows, known = self._joined(start, stop, join.left_order, join.right_order)
        if self._spec.keeps_right:
            self._is_met[right_rows] = True
        return (left_rows, right_rows), self._measured((left_rows, right_rows), **known)

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        """One plain int64 column a side, such as an id: written by the kernel itself."""
        sides = self._left_columns[0], self._right_columns[0]
        keeps_right = self._spec.keeps_right
        right = self.join.right_order if keeps_right else self._plain(RIGHT)
        *pairs, known = self._joined(start, stop, self._plain(LEFT), right)
        if keeps_right:
            self._is_met[pairs[RIGHT]] = True
            pairs[RIGHT] = sides[RIGHT].taken(pairs[RIGHT])
        columns = [side.wrap(each) for side, each in zip(sides, pairs, strict=True)]
        columns += [self._pair_column(n, known[n]) for n in self._spec.measures]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _joined(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """Values of the pairs of a run, and those of their measures that the join has at hand."""
        given, measuring = (start, stop, left_values, right_values), self._measuring
        if measuring is None:
            return *self.join.pairs(*given), {}
        left, right, delta, distance = measuring.measured_pairs(*given)
        return left, right, {str(self._spec.delta_name): delta, "distance": distance}

    @property
    def _known_measures(self) -> set[str]:
        return set() if self._measuring is None else {str(self._spec.delta_name), "distance"}

    @property
    def _is_direct(self) -> bool:
        """Whether each side has one column, of plain int64, and the join has the measures at hand."""
        columns = self._left_columns, self._right_columns
        are_plain = all(len(side) == 1 and side[0].values is not None for side in columns)
        return are_plain and self._spec.measures.keys() <= self._known_measures


class Lists(_OfAllPairs):
    """One row per left event, its matches in lists."""

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
                    f"one left event has {bounds[-1]} matches, more than a list can hold. Use"
                    f" {OUTPUT_ROWS['pairs'].said}."
                )
            middle = (start + stop) // 2
            yield from self._lists(start, middle, counts[: middle - start])
            yield from self._lists(middle, stop, counts[middle - start :])
            return
        columns = self._right_columns
        if len(columns) == 1 and columns[0].values is not None and not self._spec.measures:
            values = columns[0].wrap(join.matches(start, stop, self._plain(RIGHT)))
            yield from self._rows(start + kept, [_lists_of(bounds, values)])
            return
        right_rows = join.matches(start, stop, join.right_order)
        measured: list[np.ndarray] = []
        if self._spec.measures:
            left_rows = np.repeat(join.left_order[start:stop], counts)
            measured = self._measured((left_rows, right_rows))
        rows = join.left_order[start + kept]
        for part in self._cut_lists(rows, right_rows, bounds):
            ends = bounds[part.start : part.stop + 1]
            yield partial(self._list_batch, rows[part], ends, right_rows, measured)

    def _cut_lists(
        self, rows: np.ndarray, right_rows: np.ndarray, bounds: np.ndarray
    ) -> Iterator[slice]:
        """Left events with their lists, in batches of bounded size."""
        own, matches = self._sizes
        if matches is None:
            yield from self._cut(rows)
            return
        before = np.concatenate([[0], np.cumsum(matches[right_rows] + 1)])
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
        named = zip(self._spec.measures, measured, strict=True)
        values = [column.list_of(right_rows[inside]) for column in self._right_columns]
        values += [self._pair_column(n, each[inside]) for n, each in named]
        return self._batch(rows, [_lists_of(bounds - bounds[0], value) for value in values])


def _lists_of(bounds: np.ndarray, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)


class Best(Emission):
    """One row per left event, with its most probable match."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self._best  # before threads share it
        return super().__iter__()

    @remembered
    def _best(self) -> BestMatches:
        return self.pairing.best_matches(in_order=self._is_moved)

    @property
    def counters(self) -> JoinCounters:
        """As in every `Emission`."""
        return self._best.counters

    def _runs(self) -> Iterable[tuple[int, int]]:
        # A burst has very many candidates: no thread works on one run for long.
        step = self._best.at_once
        if step is None:
            return super()._runs()
        return self._even_runs(min(self._spec.batch_pairs, step))

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        found, pairs = self._best.of(start, stop)
        is_alone = np.full(stop - start, self._spec.keeps_unmatched)
        is_alone[found] = False
        at = np.flatnonzero(is_alone)
        yield from self._matched(
            pairs, self._measured(pairs), self._best.left_order[start + at],
            np.searchsorted(found, at),
        )  # fmt: skip


_COLUMNS: dict[str, Callable[[PairOrder, Rows], np.ndarray]] = {
    "probability": lambda order, rows: order.pairing.probabilities(*rows),
    "preferred": PairOrder.preferred,
    "then": PairOrder.second,
    "from_middle": lambda order, rows: sortable(order.from_middle(rows)),
    "max_of_left": lambda order, rows: order.pairing.left.max_time[rows[LEFT]],
    "min_of_left": lambda order, rows: order.pairing.left.min_time[rows[LEFT]],
    "max_of_right": lambda order, rows: order.pairing.right.max_time[rows[RIGHT]],
    "min_of_right": lambda order, rows: order.pairing.right.min_time[rows[RIGHT]],
}
"""What computes the columns of pairs that `Pairing.measured` does not tell."""
