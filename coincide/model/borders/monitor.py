"""Border crossings of streams of readings, batch by batch: queries and streams are numbers here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np

from coincide.model.borders.crossings import (
    IN,
    OUT,
    PASSED,
    Counting,
    Crossings,
    PointCrossings,
    Points,
    StreamTable,
    Taken,
)
from coincide.model.borders.index import BorderIndex, LiveIndex, half_open
from coincide.model.borders.lines import crossing_offsets, meets
from coincide.model.borders.moves import EITHER, FROM_OUTSIDE, MOVE
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import DataError
from coincide.model.ordering import stable_order

Wanted = tuple[bool, bool, bool]
_ONLY_IN: Wanted = (False, True, False)
_ONLY_OUT: Wanted = (True, False, False)


class Search(Protocol):
    """Points among the borders of an index, on some backend: `cpu_fallback.borders.BorderSearch`."""

    @property
    def retrieved(self) -> int:
        """How many queries were taken out of the index so far."""

    @property
    def segments(self) -> np.ndarray:
        """How many borders are at most each value: int32 array, shape (n, d, 2)."""

    def found(
        self, start: int, stop: int, wanted: Wanted, processing: int, most: int
    ) -> Iterator[PointCrossings]:
        """The crossings of points start ... stop, in their order, in chunks of about `most`."""


NewSearch = Callable[[BorderIndex, np.ndarray, np.ndarray, np.ndarray | None], Search]


class Monitor:
    """Streams and the queries that watch them (section 4 of the BMQ paper)."""

    def __init__(self, dimensions: int, options: BorderOptions, new_search: NewSearch) -> None:
        self.options, self._new_search = options, new_search
        self._margins = options.margins(dimensions)
        self.streams = StreamTable(dimensions)
        self.ranges = LiveIndex(dimensions)
        self._wide = LiveIndex(dimensions) if options.has_margin else None
        self.open_pairs = OpenPairs() if options.has_margin else None
        self.queries = 0
        self.taken = Taken()
        self.retrieved = self.entered = self.left = 0

    def restarted(self) -> Monitor:
        """The same queries, before any reading. Both may be pushed to, and neither may change them."""
        other = copy.copy(self)
        other.streams = StreamTable(self.ranges.dimensions)
        other.open_pairs = None if self.open_pairs is None else OpenPairs()
        other.taken = Taken()
        other.retrieved = other.entered = other.left = 0
        return other

    def keep_only(self, stream: int) -> None:
        """Forget all streams but one, which is number 0 from now on."""
        self.streams.keep_only(stream)
        if self.open_pairs is not None:
            self.open_pairs.keep_only(stream)

    @property
    def nbytes(self) -> int:
        """Bytes of the index and of the stream table."""
        parts = (self.ranges, self.streams, self._wide, self.open_pairs)
        return sum(part.nbytes for part in parts if part is not None)

    def add(
        self, lower: np.ndarray, upper: np.ndarray, closed: np.ndarray | None = None
    ) -> np.ndarray:
        """Add queries; those whose range is empty hold nothing and are only numbered."""
        # A stream that is in the range of a new query leaves it when it is seen outside; it has
        # entered it without an event. Whatever fails on the way, nothing has changed then.
        if self.open_pairs is not None and self.queries + lower.shape[0] > MOST_QUERIES:
            raise DataError(
                f"the monitor has added {self.queries:,} queries so far, and {lower.shape[0]:,}"
                f" are to come. With hysteresis a monitor takes {MOST_QUERIES:,} in all, removed"
                " ones included. Make a new monitor of the live queries."
            )
        numbers = np.arange(self.queries, self.queries + lower.shape[0])
        closed = np.zeros(numbers.size, np.uint8) if closed is None else closed
        first, end = half_open(lower, upper, closed)
        holds = (first < end).all(axis=1)
        lower, upper, held, closed = lower[holds], upper[holds], numbers[holds], closed[holds]
        added = BorderIndex.of(lower, upper, held, closed)
        ranges = self.ranges.levels_with(added)
        if self._wide is not None and self.open_pairs is not None:
            wider = BorderIndex.of(lower - self._margins, upper + self._margins, held, closed)
            wide = self._wide.levels_with(wider)
            self.open_pairs.enter(*self._entered(added))
            self._wide.levels = wide
        self.ranges.levels = ranges
        self.queries += numbers.size
        return numbers

    def remove(self, numbers: np.ndarray) -> int:
        """Remove queries, and report nothing more of them; say how many of them were not empty."""
        # Whatever fails on the way, nothing has changed then.
        removals = self.ranges.removals(numbers)
        if self._wide is not None and self.open_pairs is not None:
            wide = self._wide.removals(numbers)
            self.open_pairs.forget_queries(numbers)
            self._wide.remove(wide)
        return self.ranges.remove(removals)

    def inside(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which streams are inside which queries after what has been pushed: chunks of their numbers."""
        if self.open_pairs is not None:
            yield self.open_pairs.streams_and_queries()
            return
        for level in self.ranges.levels:
            yield from self._within(level)

    def push(
        self,
        streams: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        *,
        counting: Counting = "first",
    ) -> Iterator[Crossings]:
        """The crossings of a batch of readings."""
        # The batch is taken when this is called; what it says is found while one goes through it,
        # to its end.
        from_outside = self.options.first == "outside" or self.open_pairs is not None
        points, taken = self.streams.take(
            streams, times, values, from_outside=from_outside, counting=counting
        )
        searches = self._searches(points)
        self.streams.keep(points, searches[0][1].segments)
        self.taken.add(taken)  # not before: a search may fail, and readings be pushed again
        return self._crossings(points, searches)

    def _searches(self, points: Points) -> list[tuple[BorderIndex, Search, Wanted]]:
        """What is searched for which events, the largest index first."""
        wanted = (True, True, self.options.pass_through) if self._wide is None else _ONLY_IN
        parts = [(index, wanted) for index in self.ranges.levels]
        if self._wide is not None:
            parts += [(index, _ONLY_OUT) for index in self._wide.levels]
        # Segments near which points lie are known of the first.
        near = [points.near, *[None] * (len(parts) - 1)]
        return [
            (index, self._new_search(index, points.values, points.kinds, segments), events)
            for (index, events), segments in zip(parts, near, strict=True)
        ]

    def _crossings(
        self, points: Points, searches: list[tuple[BorderIndex, Search, Wanted]]
    ) -> Iterator[Crossings]:
        walk, most = self.options.walk, self.options.batch_events
        index, lead, wanted = searches[0]
        for chunk in lead.found(0, points.kinds.size, wanted, walk, most):
            parts = [self._told(points, index, chunk)]
            for other, search, events in searches[1:]:
                found = search.found(chunk.start, chunk.stop, events, walk, most)
                parts += [self._told(points, other, each) for each in found]
            parts = [part for part in parts if part[0].size]
            if parts:
                yield from self._ordered(points, parts)
        self.retrieved += sum(search.retrieved for _, search, _ in searches)

    def _told(
        self, points: Points, index: BorderIndex, found: PointCrossings
    ) -> tuple[np.ndarray, ...]:
        """Points, numbers of queries, events, and instants or none: what was found in one index."""
        at, rows, events = found.points, found.rows, found.events
        is_passed = events == PASSED
        if is_passed.any():
            kept = ~is_passed
            kept[is_passed] = self._goes_through(points, index, at[is_passed], rows[is_passed])
            # A range gone through gives an I and then an O.
            copies = np.where(is_passed, 2, 1)[kept]
            at, rows, events = (np.repeat(each[kept], copies) for each in (at, rows, events))
            passed = np.flatnonzero(events == PASSED)
            events[passed[::2]], events[passed[1::2]] = IN, OUT
        told = at, index.numbers[rows], events
        if not self.options.interpolate:
            return told
        return *told, self._instants(points, index, at, events, rows)

    def _goes_through(
        self, points: Points, index: BorderIndex, at: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        if index.dimensions == 1:
            return np.ones(at.size, np.bool_)
        ranges = index.ranges_of(rows)
        return meets(points.values[at - 1], points.values[at], *ranges, index.closed[rows])

    def _instants(
        self,
        points: Points,
        index: BorderIndex,
        at: np.ndarray,
        events: np.ndarray,
        rows: np.ndarray,
    ) -> np.ndarray:
        instants = points.times[at].copy()
        moved = points.kinds[at] == MOVE
        at = at[moved]
        first = points.times[at - 1]
        instants[moved] = first + crossing_offsets(
            points.values[at - 1],
            points.values[at],
            points.times[at] - first,
            *index.ranges_of(rows[moved]),
            index.closed[rows[moved]],
            events[moved],
        )
        return instants

    def _ordered(self, points: Points, parts: list[tuple[np.ndarray, ...]]) -> Iterator[Crossings]:
        """Crossings of several indexes as one, in order of their points."""
        columns = parts[0]
        if len(parts) > 1:
            columns = tuple(map(np.concatenate, zip(*parts, strict=True)))
            order = np.argsort(columns[0], kind="stable")
            columns = tuple(column[order] for column in columns)
        at, queries, events, *instants = columns
        if self.open_pairs is not None:
            told = self.open_pairs.told(points.streams[at], queries, events)
            if self.options.first == "ignore":
                told &= points.kinds[at] != FROM_OUTSIDE
            at, queries, events, *instants = (column[told] for column in columns)
        if at.size:
            entered = int((events == IN).sum())
            self.entered, self.left = self.entered + entered, self.left + events.size - entered
            earlier = np.where(points.kinds[at] == MOVE, at - 1, at)
            times = points.times[earlier], points.times[at]
            instant = instants[0] if instants else None
            yield Crossings(points.rows[at], queries, events, *times, instant)

    def _entered(self, index: BorderIndex) -> tuple[np.ndarray, np.ndarray]:
        """All of `_within`."""
        none = np.zeros(0, np.int64), np.zeros(0, np.int64)
        streams, queries = map(np.concatenate, zip(none, *self._within(index), strict=True))
        return streams, queries

    def _within(self, index: BorderIndex) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Which streams are within which queries of an index, by their last readings."""
        streams = np.flatnonzero(self.streams.known)
        kinds = np.full(streams.size, FROM_OUTSIDE, np.int8)
        search = self._new_search(index, self.streams.values[streams], kinds, None)
        most = self.options.batch_events
        for found in search.found(0, streams.size, _ONLY_IN, EITHER, most):
            yield streams[found.points], index.numbers[found.rows]


_QUERY_BITS = 31
_QUERY = (1 << _QUERY_BITS) - 1
MOST_QUERIES = 1 << _QUERY_BITS
"""This many numbers of queries can be told apart."""


class OpenPairs:
    """The streams that are within queries, by which it is known what to tell: 8 bytes a pair, sorted."""

    def __init__(self) -> None:
        self.pairs = np.zeros(0, np.int64)
        self._forgotten: list[np.ndarray] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs."""
        return int(self.pairs.nbytes)

    def told(self, streams: np.ndarray, queries: np.ndarray, events: np.ndarray) -> np.ndarray:
        """Which crossings are reported; what they leave open is kept."""
        self._take_out()
        pairs = streams << _QUERY_BITS | queries
        order = stable_order(pairs)
        pairs, events = pairs[order], events[order]
        is_first = np.append(True, pairs[1:] != pairs[:-1])[: pairs.size]
        was_in = np.zeros(pairs.size, np.bool_)
        was_in[1:] = events[:-1] == IN
        # Both are sorted: a search for each pair that is met, and for no other.
        met = pairs[is_first]
        at = np.searchsorted(self.pairs, met)
        was_open = at < self.pairs.size
        was_open[was_open] = self.pairs[at[was_open]] == met[was_open]
        was_in[is_first] = was_open
        told = np.empty(pairs.size, np.bool_)
        told[order] = (events == IN) != was_in
        is_last = np.append(is_first[1:], True)[: pairs.size]
        within = pairs[is_last & (events == IN)]
        others = np.delete(self.pairs, at[was_open])
        self.pairs = np.insert(others, np.searchsorted(others, within), within)
        return told

    def enter(self, streams: np.ndarray, queries: np.ndarray) -> None:
        """Streams are within queries, without a crossing, that they were not within."""
        self._take_out()
        pairs = np.sort(streams << _QUERY_BITS | queries)
        self.pairs = np.insert(self.pairs, np.searchsorted(self.pairs, pairs), pairs)

    def streams_and_queries(self) -> tuple[np.ndarray, np.ndarray]:
        """The streams that are within queries, and the queries: two int64 arrays."""
        self._take_out()
        return self.pairs >> _QUERY_BITS, self.pairs & _QUERY

    def keep_only(self, stream: int) -> None:
        """Other streams are no more, and this one is number 0 from now on."""
        self.pairs = self.pairs[self.pairs >> _QUERY_BITS == stream] & _QUERY

    def forget_queries(self, queries: np.ndarray) -> None:
        """Queries are no more. Their pairs are taken out before others come: that looks at all pairs."""
        self._forgotten.append(queries)

    def _take_out(self) -> None:
        if self._forgotten:
            gone = np.concatenate(self._forgotten)
            self.pairs = self.pairs[~np.isin(self.pairs & _QUERY, gone)]
            self._forgotten = []
