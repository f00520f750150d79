"""The join of events on a GPU: sort once, count, scan, fill in blocks of base positions."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from coincide.model.classes import checked
from coincide.model.counters import CountedJoin, JoinCounters, RowValues, runs_of_about
from coincide.model.range_sums import Found, found_of
from coincide.model.range_sums import Prepared as PreparedRanges
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.timestamps.protocol import DecidedByEnds, Events, PairModel
from gpu_kernels.device.arrays import array_module, on_device, on_host, tuple_on_device
from gpu_kernels.device.columns import narrow_type
from gpu_kernels.device.memory import (
    Residents,
    available,
    exclusive_scan,
    filled,
    in_parts,
    take,
    translated,
)
from gpu_kernels.device.transfers import current
from gpu_kernels.device.turn import TURN as _DEVICE
from gpu_kernels.kernels import aggregates
from gpu_kernels.kernels import join as tiles
from gpu_kernels.kernels.compilation import THREADS, TILE, Fixed, launch_each, launch_tiles
from gpu_kernels.kernels.join import Run, Sides, Spans
from gpu_kernels.sides import (
    Check,
    OrderedEvents,
    base_buffer,
    ordered,
    sampled,
    target_buffer,
)

_FEW_ENTRIES = 1 << 22
"""A block of this many fills a GPU, and takes some hundred megabytes: if need be it is split."""

_MANY_ENTRIES = 1 << 25
"""With this many, by estimate, what a block takes to begin hardly shows. At most `layout.MOST_ENTRIES`."""

_ENTRY_BYTES = 128
"""Bytes of all arrays that grow with the entries, counted generously."""

_MEMORY_SHARE = 0.25
"""The share of the free memory for a block's entries; candidates and matches need some, too."""


@dataclass(frozen=True, eq=False)
class BandedSides:
    """Both sides of a join, or a block of a stream and its targets, in device memory."""

    sides: Sides
    bands: Any  # int64, shape (K1, K2, 4): bounds on a target's place less a base event's key
    are_in_order: bool = True  # whether keys of base events ascend within a group

    @property
    def classes(self) -> int:
        """K2."""
        return self.bands.shape[1]

    @remembered
    def given(self) -> Fixed:
        """As `Placing`."""
        return Fixed(self.sides)

    @remembered
    def _given_to_place(self) -> list[Fixed]:
        return list(map(Fixed, (self.sides.base, self.sides.targets, self.bands)))

    def blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut base positions into blocks of a bounded number of entries."""
        step = max(1, entries_of_block((stop - start) * self.classes) // self.classes)
        return [(a, min(a + step, stop)) for a in range(start, stop, step)]

    def place(self, start: int, stop: int, shells: bool) -> Placed:
        """Find the places of base events among the targets, and count candidates: `tiles.place`."""
        run, targets = Run.of(start, self.classes), self.sides.targets
        entries = (stop - start) * self.classes
        # The kernel writes all of each array; without targets they stay unwritten.
        array = take if targets.places.size else partial(filled, value=0)
        spans = Spans(*(array(entries, np.int64) for _ in Spans._fields))
        counts = array(entries + 1, np.int64)
        parts = array(3 * entries + 1 if shells else 2, np.int64)
        if targets.places.size:
            launch_each(
                tiles.place, entries, *self._given_to_place, self.are_in_order, run, spans, shells,
                counts[1:], parts[1:],
            )  # fmt: skip
        return Placed(run, spans, counts, parts)


class Placed(NamedTuple):
    """A run of base events and what `tiles.place` writes of it."""

    run: Any
    spans: Spans
    counts: Any
    parts: Any


class Placing(Protocol):
    """Both sides of a join in device memory: `BandedSides`, or those of another operator."""

    @property
    def given(self) -> Fixed:
        """What decides pairs, to be given to kernels: it has a method `takes`."""

    def place(self, start: int, stop: int, shells: bool) -> Placed:
        """Find the places of base events among the targets, and count candidates."""


class Block:
    """A run of base events, placed and probed."""

    _probe: ClassVar[Any] = tiles.probe
    _fills: ClassVar[Mapping[np.dtype, tuple[Any, Any]]] = {
        np.dtype(np.int64): (tiles.copy, tiles.scatter),
        np.dtype(np.int32): (tiles.copy_int32, tiles.scatter_int32),
    }
    """What writes matches of a type: those of inner ranges, and those that were probed."""

    def __init__(self, placing: Placing, start: int, stop: int) -> None:
        self._run, self._spans, counts, parts = placing.place(start, stop, shells=True)
        self._given_spans = Fixed(self._spans)
        self._scan = exclusive_scan(counts)
        self.probed = int(self._scan[-1])
        self._owners = tile_owners(self._scan, self.probed)
        n_tiles = self._owners.size - 1
        self._flags = take(n_tiles * THREADS, np.uint8)
        totals = take(n_tiles + 1, np.int64)
        launch_tiles(
            self._probe, self.probed, placing.given, self._run, self._given_spans, self._scan,
            self._owners, self._flags, totals[1:], parts[1:],
        )  # fmt: skip
        self._before = exclusive_scan(totals)
        self._places = exclusive_scan(parts)

    @remembered
    def _found(self) -> list[int]:
        """Matches of all base events together, and those that were probed."""
        last = array_module().concatenate([self._places[-1:], self._before[-1:]])
        return on_host(last).tolist()

    @property
    def matches(self) -> int:
        """Matches of all base events together."""
        return self._found[0]

    @property
    def counts(self) -> Any:
        """Matches of each base event, in device memory: int64 array, shape (stop - start,)."""
        bounds = self._bounds()
        return bounds[1:] - bounds[:-1]

    def _bounds(self) -> Any:
        """Where in the output the matches of each base event begin."""
        return self._places[:: 3 * self._run.classes]

    @property
    def tally(self) -> np.ndarray:
        """Pairs that qualify unseen, candidates probed, and those of them that qualify."""
        matches, probed_pairs = self._found
        return np.array([matches - probed_pairs, self.probed, probed_pairs])

    def _inner_before(self) -> Any:
        """How many targets are in the inner ranges before that of each entry."""
        counts = take(self._spans.inner.size + 1, np.int64)
        array_module().subtract(self._spans.shell, self._spans.inner, out=counts[1:])
        return exclusive_scan(counts)

    def fill(
        self,
        base_values: Any | None,
        target_values: Any,
        out: tuple[Any, Any] | None = None,
        begins: Any | None = None,
    ) -> tuple[Any, Any]:
        """The matches, in device memory: in `out` if given, of int64 or int32.

        Those of each base event begin there where `begins` says, else where those before it end.
        """
        matches = self.matches
        both = base_values is not None
        if out is None:
            target_out = take(matches, np.int64)
            base_out = take(matches, np.int64) if both else target_out
        else:
            base_out, target_out = out
        if matches == 0:
            return base_out if both else None, target_out
        if not both:
            base_values = target_values
        copy, scatter = self._fills[target_out.dtype]
        inner_before = self._inner_before()
        are_moved = begins is not None
        moves = self._moves(begins) if are_moved else inner_before
        launch_tiles(
            copy, matches, self._run, self._given_spans, self._places,
            tile_owners(self._places, matches), both, base_values, target_values, matches, are_moved,
            moves, base_out, target_out,
        )  # fmt: skip
        launch_tiles(
            scatter, self.probed, self._given_spans, self._scan, self._owners, self._flags,
            self._before, inner_before, target_values, are_moved, moves, target_out,
        )  # fmt: skip
        return base_out if both else None, target_out

    def _moves(self, begins: Any) -> Any:
        """How far the matches of each entry are from where those before it end."""
        moves, classes = begins - self._bounds()[:-1], self._run.classes
        return moves if classes == 1 else array_module().repeat(moves, classes)

    def aggregated(self, before: Any, codes: Any, tables: Any) -> tuple[Any, Any, Any]:
        """Counts, sums and least values of the matches of each base event, in device memory."""
        counts = self.counts
        sums = take((counts.size, before.shape[1]), np.int64)
        least = take((counts.size, codes.shape[0]), np.int64)
        launch_each(
            aggregates.take_ranges, counts.size, self._run, self._given_spans, before, codes, tables,
            sums, least,
        )  # fmt: skip
        launch_tiles(
            aggregates.take_candidates, self.probed, self._run, self._given_spans, self._scan,
            self._owners, self._flags, before, codes, sums, least,
        )  # fmt: skip
        return counts, sums, least


def entries_of_block(wanted: int) -> int:
    """The most entries of a block: few blocks take less time to begin, small ones less memory."""
    if wanted <= _FEW_ENTRIES:
        return max(1, wanted)
    fitting = int(_MEMORY_SHARE * available()) // _ENTRY_BYTES
    return min(max(_FEW_ENTRIES, fitting), _MANY_ENTRIES)


def tile_owners(scan: Any, items: int) -> Any:
    """Whose the first item of each tile is: `tiles.tile_owners`."""
    owners = take(-(-items // TILE) + 1, np.int64)
    launch_each(tiles.tile_owners, owners.size, scan, owners)
    return owners


_PAIRS_AHEAD = 1 << 22
_PAIRS_AT_ONCE = 1 << 21
"""Matches of a block: enough that they take longer to leave than a block takes to begin, and few enough
that those of one block leave while the next is filled."""

_FILLED_KEPT = 2
"""Threads of the caller may ask for a batch when another has asked for one further on."""

_FETCHED_AT_ONCE = 1 << 22
"""Rows of an order: what is made of them on the way takes little memory."""

_Values = tuple[Any, Any]
"""What to write for base events, if anything, and for targets."""


class _Filled(NamedTuple):
    """The matches of the base positions start ... stop, in host memory."""

    start: int
    stop: int
    values: _Values
    measured: bool
    columns: list[np.ndarray]

    def holds(self, start: int, stop: int, values: _Values, measured: bool) -> bool:
        """Whether these are the matches of start ... stop, written with these very arrays."""
        same = all(mine is other for mine, other in zip(self.values, values, strict=True))
        is_in = self.start <= start and stop <= self.stop
        return same and is_in and self.measured == measured


def fill_of(before: Any) -> Any:
    """The number of the fill that a run is in, by the matches before the run."""
    return before // _PAIRS_AHEAD


class BlockJoin(CountedJoin):
    """A join whose sides are on the device, ready to be counted and filled in blocks of base positions.

    All arrays that it returns are in host memory: matches in pinned memory, or where `empty` makes room.
    """

    def __init__(self, size: int, targets: int, empty: Callable[[int], np.ndarray]) -> None:
        self._size, self._empty = size, empty
        # No event has more matches than there are targets.
        self._of_counts = narrow_type(targets)
        self._residents = Residents()
        self._filled: deque[_Filled] = deque(maxlen=_FILLED_KEPT)
        # First base position of each run that will be asked for, and which fill has it.
        self._runs = self._fills = np.empty(0, np.int64)

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        """As `CountedJoin.chunks`. Some are filled together, the same ones whichever comes first."""
        runs = list(super().chunks(batch_pairs))
        self._runs = np.array([*(start for start, _ in runs), self._size])
        self._fills = fill_of(self.offsets[self._runs])
        return iter(runs)

    @abstractmethod
    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Cut base positions into blocks of a bounded number of entries."""

    @abstractmethod
    def _block(self, start: int, stop: int) -> Block:
        """A run of base events, placed and probed."""

    def _outputs(self, matches: int, both: bool, measured: bool) -> list[np.ndarray]:
        """Where this many matches go: the column of the left side if `both`, of the right side, more."""
        return [self._result(matches) for _ in range(1 + both)]

    def _result(self, size: int) -> np.ndarray:
        return current().result(size, np.int64, lambda: self._empty(size))

    def _columns(self, start: int, stop: int, values: _Values, measured: bool) -> list[Any]:
        """The columns of the matches of a block, in device memory."""
        own, others = values
        left, right = self._block(start, stop).fill(
            None if own is None else self._values(LEFT, own), self._values(RIGHT, others)
        )
        return [right] if left is None else [left, right]

    def _values(self, side: int, values: Any) -> Any:
        """Values by position, in device memory."""
        return self._residents.get(values)

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts, and the tally of all blocks."""
        counts = np.empty(self._size, np.int64)
        with _DEVICE:
            if "_counted" in vars(self):  # another thread was first
                return self._counted
            tally = self._count(0, counts.size, counts)
            vars(self)["_counted"] = counts, tally
        return counts, tally

    def _count(self, start: int, stop: int, counts: np.ndarray) -> np.ndarray:
        """Count the matches of the base positions start ... stop; the tally of these."""
        tally = np.zeros(3, np.int64)

        def count(a: int, b: int) -> None:
            block = self._block(a, b)
            found, matches = block.tally, block.counts.astype(self._of_counts)
            fetch(matches, counts[a:b])
            np.add(tally, found, out=tally)

        with _DEVICE, translated(), current().fetching() as fetch:
            for a, b in self._blocks(start, stop):
                in_parts(count, a, b)
        return tally

    @property
    def counters(self) -> JoinCounters:
        """As in `CountedJoin`: also where counts by row alone were asked for."""
        counted = vars(self).get("_row_counted") or self._counted
        return JoinCounters.of_tally(*counted[1].tolist())

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The matches of the base positions start ... stop."""
        left, right = self._fill(start, stop, (left_values, right_values))
        return left, right

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        return self._fill(start, stop, (None, right_values))[0]

    def _fill(
        self, start: int, stop: int, values: _Values, measured: bool = False
    ) -> list[np.ndarray]:
        offsets = self.offsets
        with _DEVICE:
            asked = start, stop, values, measured
            filled = next((f for f in self._filled if f.holds(*asked)), None)
            if filled is None:
                filled = self._fill_ahead(*asked)
                self._filled.append(filled)
        rows = slice(offsets[start] - offsets[filled.start], offsets[stop] - offsets[filled.start])
        return [column[rows] for column in filled.columns]

    def _fill_ahead(self, start: int, stop: int, values: _Values, measured: bool) -> _Filled:
        """Fill start ... stop and what is near: a batch of Spark's is too small to keep a GPU busy."""
        offsets = self.offsets
        start, stop = self._with_neighbours(start, stop)
        matches, both = int(offsets[stop] - offsets[start]), values[0] is not None

        def fill(a: int, b: int) -> None:
            columns = self._columns(a, b, values, measured)
            rows = slice(offsets[a] - offsets[start], offsets[b] - offsets[start])
            for column, out in zip(columns, outputs, strict=True):
                fetch(column, out[rows])

        with translated(), current().fetching() as fetch:
            outputs = self._outputs(matches, both, measured)
            for a, b in self._bounded_blocks(start, stop):
                in_parts(fill, a, b)
        return _Filled(start, stop, values, measured, outputs)

    def _with_neighbours(self, start: int, stop: int) -> tuple[int, int]:
        """The base positions to fill where start ... stop are asked for."""
        run = int(np.searchsorted(self._runs, start))
        if run < self._runs.size and self._runs[run] == start:
            # Threads ask in any order: each run is in one fill.
            fill = self._fills[run]
            first, last = (int(np.searchsorted(self._fills, each)) for each in (fill, fill + 1))
            return int(self._runs[first]), max(
                stop, int(self._runs[min(last, self._runs.size - 1)])
            )
        offsets = self.offsets
        ahead = int(np.searchsorted(offsets, offsets[start] + _PAIRS_AHEAD, side="right")) - 1
        return start, max(stop, ahead)

    def _bounded_blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of a bounded number of entries, and of matches unless of one event."""
        for a, b in runs_of_about(self.offsets[start : stop + 1], _PAIRS_AT_ONCE):
            yield from self._blocks(start + a, start + b)


_CANDIDATES_AT_ONCE = 1 << 30
"""What a block's tiles take grows with its candidates, and a few events may have very many."""

_Best = tuple[Any, Any, np.ndarray]


def find_best(banded: BandedSides, ranks: Any, start: int, stop: int) -> _Best:
    """The most probable match of each base event of a run, in parts of a bounded number of candidates.

    Ranks, the greatest int64 for none, and merits, in device memory; and the tally.
    """
    placed = Candidates(banded, start, stop)
    if placed.count <= _CANDIDATES_AT_ONCE:
        return placed.best(ranks)
    cuts = placed.cuts()
    del placed
    parts = [Candidates(banded, a, b).best(ranks) for a, b in pairwise(cuts)]
    least, top, tallies = zip(*parts, strict=True)
    xp = array_module()
    return xp.concatenate(least), xp.concatenate(top), np.sum(tallies, axis=0)


class Candidates:
    """All candidates of a run of base events, those of inner ranges included."""

    def __init__(self, banded: BandedSides, start: int, stop: int) -> None:
        self._banded, self._start, self._stop = banded, start, stop
        self._run, self._spans, counts, _ = banded.place(start, stop, shells=False)
        self._scan = exclusive_scan(counts)
        self.count = int(self._scan[-1])

    def cuts(self) -> list[int]:
        """Base positions at which to cut: a part has few candidates, but for those of its last event."""
        xp = array_module()
        before = xp.ascontiguousarray(self._scan[:: self._banded.classes])
        goals = xp.arange(-(-self.count // _CANDIDATES_AT_ONCE), dtype=np.int64)
        firsts = on_host(xp.searchsorted(before, goals * _CANDIDATES_AT_ONCE, side="left"))
        cuts = {self._start, *(self._start + firsts).tolist(), self._stop}
        return sorted(cuts)

    def best(self, ranks: Any) -> _Best:
        """The best of them, as `find_best`.

        Three times over the candidates: highest merit, least distance among those, least rank.
        """
        spans, events = self._spans, self._stop - self._start
        top = filled(events, np.float64, -np.inf)
        qualified = filled(1, np.int64, 0)
        distances = filled(events, np.uint64, np.iinfo(np.uint64).max)
        least = filled(events, np.int64, np.iinfo(np.int64).max)
        work = (
            *(self.count, self._banded.given, self._run, Fixed(spans), self._scan),
            *(tile_owners(self._scan, self.count), top),
        )
        launch_tiles(tiles.most_probable, *work, qualified)
        launch_tiles(tiles.nearest, *work, distances)
        launch_tiles(tiles.foremost, *work, distances, ranks, least)
        inner = (spans.shell - spans.inner).sum()
        sure, found = on_host(array_module().append(qualified, inner))[::-1].tolist()
        tally = np.array([sure, self.count - sure, found - sure])
        return least, top, tally


class EventJoin(BlockJoin):
    """A join of two sides, sorted on the device and ready to be counted and filled.

    Parameters and results are those of `cpu_fallback.EventJoin`, in the same order, to the bit. For spans
    that a CPU finds by a scan of starts the order differs, and more candidates are looked at.
    All arrays that it returns are in host memory.
    """

    orders_values: ClassVar[bool] = True
    """Whether `pairs` and `matches` take `RowValues`, whose order then never leaves the device."""

    best_rows: ClassVar[int] = 1 << 20
    """Base events to ask for the best matches of at once; their candidates are bounded here."""

    def __init__(
        self,
        left: Events,
        right: Events,
        model: PairModel,
        *,
        classes: int | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        self.threads = threads
        # As on the CPU, which may take over: it finds such spans by a scan of starts.
        by_ends = model.end_bounds(left, right) if isinstance(model, DecidedByEnds) else None
        self.has_ranges = by_ends is None
        with _DEVICE, translated("both sides of the join"):
            # The two sides of one stream may be one object, which is sent and sorted once.
            bases, targets = ordered(left) * 2 if left is right else ordered(left, right)
            self._left_order, self._right_order, self.bands, self._banded = prepared(
                bases, targets, left.groups, model, classes
            )
        super().__init__(self._left_order.size, self._right_order.size, empty)
        orders = self._left_order, self._right_order
        self._into_order = [partial(_taken, order) for order in orders]  # known by their identity

    def _values(self, side: int, values: Any) -> Any:
        """Also of `RowValues`, which are put in order here."""
        if isinstance(values, RowValues):
            return self._residents.get(values.values, self._into_order[side])
        return super()._values(side, values)

    @remembered
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        return self._fetched("left_order", self._left_order)

    @remembered
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        return self._fetched("right_order", self._right_order)

    def _fetched(self, name: str, order: Any) -> np.ndarray:
        """An order in host memory, fetched by the first thread that asks for it."""
        with _DEVICE, translated():
            if name not in vars(self):
                found, kind = np.empty(order.size, np.int64), narrow_type(order.size)
                with current().fetching() as fetch:
                    for start in range(0, order.size, _FETCHED_AT_ONCE):
                        part = slice(start, start + _FETCHED_AT_ONCE)
                        fetch(order[part].astype(kind), found[part])
                vars(self)[name] = self._residents.known(found, order)
            known: np.ndarray = vars(self)[name]
            return known

    @remembered
    def _row_counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts by left row, put there on the device, so that no order is fetched; and the tally."""
        n, tally = self._size, np.zeros(3, np.int64)

        def count(start: int, stop: int) -> None:
            block = self._block(start, stop)
            by_row[self._left_order[start:stop]] = block.counts.astype(self._of_counts)
            np.add(tally, block.tally, out=tally)

        with _DEVICE, translated(), current().fetching() as fetch:
            by_row = take(n, self._of_counts)
            for start, stop in self._blocks(0, n):
                in_parts(count, start, stop)
            counts = current().result(n, np.int64, lambda: np.empty(n, np.int64))
            fetch(by_row, counts)
        return counts, tally

    @property
    def row_counts(self) -> np.ndarray:
        """As in `CountedJoin`."""
        return self._row_counted[0]

    def _blocks(self, start: int, stop: int) -> list[tuple[int, int]]:
        return self._banded.blocks(start, stop)

    def _block(self, start: int, stop: int) -> Block:
        return Block(self._banded, start, stop)

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable match of the base positions start ... stop. Needs no counts."""
        best, merits = np.full(stop - start, -1, np.int64), np.full(stop - start, np.nan)
        tally = np.zeros(3, np.int64)

        def choose(a: int, b: int) -> None:
            positions, places = self._residents.get(ranks, _ranked)
            *arrays, found = find_best(self._banded, places, a, b)
            chosen, highest = map(on_host, arrays)
            some = np.flatnonzero(highest > -np.inf)
            best[a - start + some] = positions[chosen[some]]
            merits[a - start + some] = highest[some]
            np.add(tally, found, out=tally)

        with _DEVICE, translated():
            for a, b in self._banded.blocks(start, stop):
                in_parts(choose, a, b)
        return best, merits, JoinCounters.of_tally(*tally.tolist())

    def aggregated(
        self, start: int, stop: int, prepared: PreparedRanges
    ) -> tuple[Found, JoinCounters]:
        """Aggregates of the matches of the base positions start ... stop. Needs no counts."""
        found = found_of(stop - start, prepared.before.shape[1], prepared.codes.shape[0])
        tally = np.zeros(3, np.int64)

        def add_up(a: int, b: int) -> None:
            block = Block(self._banded, a, b)
            given = map(self._residents.get, prepared)
            for each, out in zip(block.aggregated(*given), found, strict=True):
                fetch(each.reshape(-1), out[a - start : b - start].reshape(-1))
            np.add(tally, block.tally, out=tally)

        with _DEVICE, translated(), current().fetching() as fetch:
            for a, b in self._banded.blocks(start, stop):
                in_parts(add_up, a, b)
        return found, JoinCounters.of_tally(*tally.tolist())


def _taken(rows: Any, values: Any) -> Any:
    return values[rows]


def _ranked(ranks: Any) -> tuple[np.ndarray, Any]:
    """The target at each place of an order, in host memory, and the place of each target.

    Equal ranks are told apart by position, which is what the CPU does.
    """
    xp = array_module()
    positions = xp.argsort(ranks, kind="stable")
    places = take(ranks.size, np.int64)
    places[positions] = xp.arange(ranks.size, dtype=np.int64)
    return on_host(positions), places


def event_probabilities(
    left: Events,
    left_rows: np.ndarray,
    right: Events,
    right_rows: np.ndarray,
    model: PairModel,
) -> np.ndarray:
    """Satisfaction probabilities of given pairs: float64 array, shape (n,)."""
    out = np.empty(left_rows.size)

    def evaluate(start: int, stop: int) -> None:
        rule = tuple_on_device(model.rule)
        given = left.times.of(left_rows[start:stop]), right.times.of(right_rows[start:stop])
        arrived = (
            type(times)(*sent) for times, sent in zip(given, current().send(*given), strict=True)
        )
        columns = [column for times in arrived for column in (times.keys(), times.shapes())]
        found = take(stop - start, np.float64)
        launch_each(tiles.pair_probabilities, stop - start, rule, *columns, found)
        on_host(found, out[start:stop])

    with _DEVICE:
        in_parts(evaluate, 0, out.size)
    return out


class Prepared(NamedTuple):
    """A join ready to be counted and filled."""

    left_order: Any  # int64, shape (n,): row at each base and at each target position
    right_order: Any  # int64, shape (n,): row at each base and at each target position
    bands: np.ndarray  # int64, shape (K1, K2, 4)
    banded: BandedSides


def prepared(
    left: OrderedEvents,
    right: OrderedEvents,
    groups: int,
    model: PairModel,
    classes: int | None,
    check: Check | None = None,
) -> Prepared:
    """Choose classes, and sort both sides into them."""
    samples = sampled(left, right, groups, check)
    k1, k2 = checked(model.choose_classes(*samples, groups, classes))
    bands = model.bands(LEFT, k1, k2)
    left_order, base = base_buffer(left, groups, k1)
    right_order, targets = target_buffer(right, groups, k2)
    sides = Sides(base, targets, tuple_on_device(model.rule))
    return Prepared(left_order, right_order, bands, BandedSides(sides, on_device(bands)))
