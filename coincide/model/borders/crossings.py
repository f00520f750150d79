"""Border-crossing events (Definition 2 of the BMQ paper), and the stream table of its section 4.1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from coincide.model.borders.moves import FIRST, FROM_OUTSIDE, MOVE
from coincide.model.compiled import compiled
from coincide.model.ordering import ascends, stable_order
from coincide.model.units import TIME_LIMIT

OUT, IN, PASSED = 0, 1, 2
"""Kind of a crossing in arrays: the stream left the query's range, entered it, or went through it between
two readings, which is reported as an `IN` and an `OUT`."""

EVENTS = ("O", "I")
"""The word for each kind, in column `event`."""


Counting = Literal["first", "last", "least"]
"""Which of a stream's readings at one time counts: the first that came, as all are taken as they
come; the last row of those in any order; or, of rows that have no order, that with the least values."""


class PointCrossings(NamedTuple):
    """What a search has found of points start ... stop: ascending int64, int32 rows of the index, int8."""

    start: int
    stop: int
    points: np.ndarray
    rows: np.ndarray
    events: np.ndarray


class Crossings(NamedTuple):
    """n crossings of a batch of readings: int64 rows of it, queries and ticks; events are int8."""

    rows: np.ndarray
    queries: np.ndarray
    events: np.ndarray
    min_times: np.ndarray
    max_times: np.ndarray
    instants: np.ndarray | None


_MAX_TIMES = Crossings._fields.index("max_times")


def in_time(parts: Iterable[Crossings], most: int) -> Iterator[Crossings]:
    """Crossings in order of their max_times, in chunks; of equal ones as they come."""
    found = list(parts)
    if not found:
        return
    *columns, instants = zip(*found, strict=True)
    whole = [np.concatenate(column) for column in columns]
    whole += [] if instants[0] is None else [np.concatenate(instants)]
    times = whole[_MAX_TIMES]
    if not ascends(times):
        order = stable_order(times)
        whole = [column[order] for column in whole]
    for start in range(0, times.size, most):
        chunk = [column[start : start + most] for column in whole]
        yield Crossings._make(chunk if instants[0] is not None else [*chunk, None])


@compiled(allocates=True)
def accepted(streams, times, is_gap, known, last_times):
    """Which readings, by stream and arrival, come after all of their stream before them."""
    kept = ~is_gap
    late = repeated = 0
    stream, begun, last = -1, False, 0
    for k in range(streams.size):
        if streams[k] != stream:
            stream = streams[k]
            begun, last = known[stream], last_times[stream]
        if is_gap[k]:
            continue
        if begun and times[k] <= last:
            kept[k] = False
            if times[k] == last:
                repeated += 1
            else:
                late += 1
        else:
            begun, last = True, times[k]
    return kept, late, repeated


class Points(NamedTuple):
    """Readings of a batch by stream and time, before each stream's the last one known, of row -1.

    `values`: float64, (n, d); `near`: int32, (n, d, 2), segments near which a stream's first point lies.
    """

    values: np.ndarray
    times: np.ndarray
    kinds: np.ndarray
    rows: np.ndarray
    streams: np.ndarray
    near: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """The last point of each stream: int64 array."""
        return np.flatnonzero(np.append(self.kinds[1:] != MOVE, self.kinds.size > 0))


@dataclass
class Taken:
    """What became of the readings of a batch, or of many."""

    readings: int = 0
    gaps: int = 0
    repeated: int = 0
    late: int = 0
    latest: int = 0  # the largest time, from -2^61 ticks on, so that 0 is no reading

    def add(self, other: Taken) -> None:
        """Count the readings of one more batch."""
        for name in ("readings", "gaps", "repeated", "late"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latest = max(self.latest, other.latest)


class StreamTable:
    """The last reading of each stream, and its region segments: 9 + 16 d bytes a stream."""

    columns = ("known", "times", "values", "segments")

    def __init__(self, dimensions: int) -> None:
        self.known = np.zeros(0, np.bool_)
        self.times = np.zeros(0, np.int64)
        self.values = np.zeros((0, dimensions))
        self.segments = np.zeros((0, dimensions, 2), np.int32)

    def __len__(self) -> int:
        return int(self.known.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(getattr(self, name).nbytes for name in self.columns)

    def reserve(self, streams: int) -> None:
        """Have room for streams that are called 0 ... streams - 1, and for some more."""
        if streams > len(self):
            self.resize(max(streams, 2 * len(self)))

    def resize(self, streams: int) -> None:
        """Make room for streams that are called 0 ... streams - 1."""
        for name in self.columns:
            old = getattr(self, name)
            new = np.zeros((streams, *old.shape[1:]), old.dtype)
            new[: old.shape[0]] = old[:streams]
            setattr(self, name, new)

    def keep_only(self, stream: int) -> None:
        """Forget all streams but one, which is called 0 from now on."""
        for name in self.columns:
            column = getattr(self, name)
            column[0] = column[stream]
        self.known[1:] = False

    def take(
        self,
        streams: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        *,
        from_outside: bool,
        counting: Counting = "first",
    ) -> tuple[Points, Taken]:
        """The points of a batch of readings; with `counting` of "first" as they come, else in any order."""
        # A reading that is not later than all of its stream before it is left out, so that any
        # batching of readings gives the same points.
        rows = None if ascends(streams) else stable_order(streams)
        if counting != "first" and _is_disordered(streams, times, rows):
            rows = _ordered(streams, times, values, counting)
        if rows is not None:
            streams, times, values = streams[rows], times[rows], values[rows]
        is_gap = np.isnan(values).any(axis=1)
        kept, late, repeated = accepted(streams, times, is_gap, self.known, self.times)
        latest = int(times.max()) + TIME_LIMIT if times.size else 0
        taken = Taken(streams.size, int(is_gap.sum()), repeated, late, latest)
        rows = np.flatnonzero(kept) if rows is None else rows[kept]
        if rows.size < kept.size:
            streams, times, values = streams[kept], times[kept], values[kept]
        return self._points(rows, streams, times, values, from_outside), taken

    def _points(
        self,
        rows: np.ndarray,
        streams: np.ndarray,
        times: np.ndarray,
        values: np.ndarray,
        from_outside: bool,
    ) -> Points:
        begins = np.flatnonzero(np.append(True, streams[1:] != streams[:-1])[: streams.size])
        is_known = self.known[streams[begins]]
        known = begins[is_known]
        old = streams[known]
        kinds = np.full(streams.size, MOVE, np.int8)
        kinds[begins[~is_known]] = FROM_OUTSIDE if from_outside else FIRST
        points = Points(
            np.insert(values, known, self.values[old], axis=0),
            np.insert(times, known, self.times[old]),
            np.insert(kinds, known, FIRST),
            np.insert(rows, known, -1),
            np.insert(streams, known, old),
            np.zeros((streams.size + known.size, values.shape[1], 2), np.int32),
        )
        points.near[known + np.arange(known.size)] = self.segments[old]
        return points

    def keep(self, points: Points, segments: np.ndarray) -> None:
        """Remember the last point of each stream, and its segments."""
        ends = points.ends
        streams = points.streams[ends]
        self.known[streams] = True
        self.times[streams] = points.times[ends]
        self.values[streams] = points.values[ends]
        self.segments[streams] = segments[ends]


def _ordered(
    streams: np.ndarray, times: np.ndarray, values: np.ndarray, counting: Counting
) -> np.ndarray:
    """Rows by stream and time, of equal ones first that which counts: int64 array, shape (n,)."""
    if counting == "last":
        # The order is stable, so that of the rows from behind has the last of equal ones first.
        return streams.size - 1 - stable_order(times[::-1], streams[::-1])
    order = stable_order(times, streams)
    again = (np.diff(streams[order]) == 0) & (np.diff(times[order]) == 0)
    if again.any():  # values decide where times are equal, and are looked at nowhere else
        places = np.flatnonzero(np.append(again, False) | np.append(False, again))
        rows = order[places]
        by_values = np.lexsort((*values[rows].T[::-1], times[rows], streams[rows]))
        order[places] = rows[by_values]
    return order


def _is_disordered(streams: np.ndarray, times: np.ndarray, rows: np.ndarray | None) -> bool:
    """Whether some reading, in the order of rows, is not later than the one before it of its stream."""
    if rows is not None:
        streams, times = streams[rows], times[rows]
    return bool(((streams[1:] == streams[:-1]) & (times[1:] <= times[:-1])).any())
