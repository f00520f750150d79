"""The events of a side that are kept for matches to come, and how far away these can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import stored
from coincide.engine.events.sides import Side, concatenated
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.join import TablePlan
from coincide.model.bands import DOUBT
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.counters import JoinCounters
from coincide.model.sides import LEFT
from coincide.model.units import TIME_LIMIT

_LEAST_DEAD = 256
"""Fewer are not worth a copy."""
_MOST_DEAD = 4
"""Dead ones are let go of where they are more than one in this many."""
_RATIO = 8
"""A part that is no more than this many times larger than the next one takes it in."""
_MUCH = 4
"""This many times more events than look for matches among them are looked through by keys first."""


@dataclass(frozen=True, eq=False)
class Part:
    """Events of a side, with the marks of their keys."""

    side: Side
    marks: np.ndarray

    def __len__(self) -> int:
        return len(self.side)

    def where(self, mask: np.ndarray) -> Part:
        """Those in a mask; the same if all are."""
        return self if mask.all() else self.rows(np.flatnonzero(mask))

    def rows(self, index: np.ndarray) -> Part:
        """Some of them, in memory of their own."""
        return Part(self.side.rows(index), self.marks[index])

    @property
    def nbytes(self) -> int:
        """Bytes of the events with their columns."""
        side = self.side
        columns = sum(each.nbytes for each in (*side.keys, *side.payload, *side.tested))
        assert side.ranks is not None
        arrays = side.max_time, side.shapes, side.ranks, self.marks
        return int(columns + sum(each.nbytes for each in arrays))


def joined(parts: Sequence[Part]) -> Part:
    """The events of one or more parts of one side."""
    some = [part for part in parts if len(part)] or [parts[0]]
    if len(some) == 1:
        return some[0]
    side = concatenated([part.side for part in some])
    return Part(side, np.concatenate([part.marks for part in some]))


@dataclass(frozen=True, eq=False)
class Live:
    """Events in parts, each much larger than the next: so an event is seldom copied, and parts are few."""

    none: Part
    parts: tuple[Part, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """Bytes of the events with their columns."""
        return sum(part.nbytes for part in self.parts)

    def with_more(self, part: Part) -> Live:
        """These and more."""
        if not len(part):
            return self
        parts = [*self.parts, part]
        while len(parts) > 1 and len(parts[-2]) <= _RATIO * len(parts[-1]):
            parts[-2:] = [joined(parts[-2:])]
        if parts[-1] is part:
            # A copy: what was pushed may be a slice of much more.
            parts[-1] = part.rows(np.arange(len(part)))
        return Live(self.none, tuple(parts))

    def since(self, bound: int) -> Live:
        """Those from a max_time on, and some of the others where these are few."""
        kept = (_since(part, bound) for part in self.parts)
        return Live(self.none, tuple(part for part in kept if len(part)))

    def between(self, first: int, stop: int) -> Part:
        """Those whose max_time is at least `first` and below `stop`."""
        return self.where(lambda part: (part.side.max_time >= first) & (part.side.max_time < stop))

    def where(self, mask: Callable[[Part], np.ndarray]) -> Part:
        """Those in a mask, which is made of each part."""
        return joined([*(part.where(mask(part)) for part in self.parts), self.none])

    def within(self, span: tuple[int, int], marks: np.ndarray) -> Part:
        """Those whose max_time is in a span, ends included, and whose mark is among these."""
        first, last = span
        return self.where(
            lambda part: (
                (part.side.max_time >= first)
                & (part.side.max_time <= last)
                & are_marked(part.marks, marks)
            )
        )

    def near(self, others: Part, reach: tuple[int, int]) -> Part:
        """Those that may have a match among others of the other side: the rest need not be sorted."""
        mask = others.side.matchable
        times = others.side.max_time if mask is None else others.side.max_time[mask]
        if not times.size:
            return self.none
        first, last = int(times.min()) + reach[0], int(times.max()) + reach[1]
        found, by_keys = [self.none], _MUCH * len(others) < len(self)
        for part in self.parts:
            is_near = (part.side.max_time >= first) & (part.side.max_time <= last)
            if by_keys:
                is_near &= are_marked(part.marks, others.marks)
            found.append(part.where(is_near))
        return joined(found)


def _since(part: Part, bound: int) -> Part:
    keep = part.side.max_time >= bound
    dead = len(part) - int(keep.sum())
    if dead == len(part) or (dead >= _LEAST_DEAD and dead * _MOST_DEAD >= len(part)):
        return part.where(keep)
    return part


_FEW = 1 << 14
"""Events of a block: fewer are not worth a second thread, nor, by ``"auto"``, a GPU."""
_SMALL = 1 << 20
"""Pairs of equal keys within reach, by estimate: to decide fewer costs less than to choose classes."""


def join_block(
    plan: TablePlan, horizon: Horizon, left: Part, right: Part
) -> tuple[pa.Table, JoinCounters]:
    """The rows that these events make, and what was looked at for them."""
    if not len(left) or (plan.spec.is_pairs_alone and not len(right)):
        return plan.schema.empty_table(), JoinCounters()
    emission = sized(plan, horizon, left, right).join(left.side, right.side)
    found = pa.Table.from_batches(emission, plan.schema)
    return found, emission.counters


def sized(plan: TablePlan, horizon: Horizon, left: Part, right: Part) -> TablePlan:
    """The plan for this many events."""
    spec = plan.timing
    if len(left) + len(right) < _FEW:
        spec = spec.but(threads=1, backend="cpu" if spec.backend == "auto" else spec.backend)
    keys = max(1, np.unique(min(left.marks, right.marks, key=len)).size)
    if len(left) * len(right) * _share_in_reach(horizon, left, right) < _SMALL * keys:
        spec = spec.but(classes=1)
    return replace(plan, spec=spec)


def _share_in_reach(horizon: Horizon, left: Part, right: Part) -> float:
    """About which part of all pairs is near enough in time to qualify."""
    times = max(left.side.max_time, right.side.max_time, key=len)
    if not times.size:
        return 1.0
    return min(1.0, (horizon.last - horizon.first) / max(1, int(times.max()) - int(times.min())))


_ENDLESS = 2 * TIME_LIMIT


class Horizon(NamedTuple):
    """A pair can qualify only if first <= max_time of right - max_time of left <= last.

    Both are ticks, and hold for all events that may come, whatever their lengths.
    """

    first: int
    last: int

    def left_until(self, right_to_come: int) -> int:
        """The earliest max_time of left events that right ones from a max_time on can be matches of."""
        return right_to_come - self.last

    def right_until(self, left_to_come: int) -> int:
        """The same of right events and left ones to come."""
        return left_to_come + self.first


def horizon_of(plan: TablePlan) -> Horizon:
    """The horizon of a join."""
    window = plan.spec.widest
    shapes = [_shapes(columns, window) for columns in plan.times]
    spec = plan.timing
    if spec.are_uniform:
        found = _of_intervals(window, shapes[0][1], shapes[1][1])
    else:
        left, right = (ShapeClasses.one(*each) for each in shapes)
        found = Horizon(*map(int, spec.pairs.reach(LEFT, left, right)))
    is_exact = spec.shapes_are_lengths and all(shape == (0, 0) for shape in shapes)
    if not spec.pairs_once or spec.how != "inner" or spec.where is not None:
        return found
    if window.lo + window.hi == 0 or (is_exact and window.lo + window.hi > 0):
        # Pairs are given with the event of the earlier max_time left, as that order qualifies if one does.
        return found._replace(first=max(0, found.first))
    return found


def _shapes(columns: TimestampColumns, window: Window) -> tuple[int, int]:
    """Smallest and largest shape of the events of a side that can be of a pair."""
    first, last = columns.declared or (0, _ENDLESS)
    useful = columns.model.largest_useful(window)
    return min(first, useful), min(last, useful)


def _of_intervals(window: Window, left: int, right: int) -> Horizon:
    """The horizon of intervals up to these lengths."""
    # Where T_right <= hi + T_left <= hi + max_left has the probability ct, right's interval has
    # that part before hi + max_left, and reaches no further beyond it than by the rest of its
    # length. Left likewise.
    rest = 1 - Fraction(window.confidence) + DOUBT
    return Horizon(
        window.lo - math.floor(rest * left) - 1, window.hi + math.floor(rest * right) + 1
    )


MARKS = 1 << 16
"""How many there are: other keys of a block's mark are sorted for nothing, one in this many."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LONGEST = 256
"""This many bytes of a text count one by one; what follows only by its place modulo that."""
_POWERS = np.cumprod(np.full(_LONGEST, _FACTOR | np.uint64(1), np.uint64))


def marks_of(keys: Sequence[pa.Array], rows: int) -> np.ndarray:
    """Marks of rows: uint16 array, shape (n,). They stay the same from process to process."""
    mixed = np.zeros(rows, np.uint64)
    for key in keys:
        encoded = pc.dictionary_encode(stored(key))
        hashes = _hashes(encoded.dictionary)
        mixed = mixed * _FACTOR + hashes[encoded.indices.to_numpy(zero_copy_only=False)]
    mixed ^= mixed >> np.uint64(29)
    return ((mixed * _FACTOR) >> np.uint64(48)).astype(np.uint16)


def are_marked(marks: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which marks are among others: bool array, shape (n,)."""
    there = np.zeros(MARKS, bool)
    there[others] = True
    return there[marks]


def _hashes(values: pa.Array) -> np.ndarray:
    """Hashes of distinct values: uint64 array; all 0, which tells nothing apart, where there is no text."""
    if pa.types.is_integer(values.type):
        return values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
    try:
        texts = _as_bytes(values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return np.zeros(len(values), np.uint64)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    taken = (
        np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    )
    ends = ends - ends[0]
    places = (np.arange(taken.size) - np.repeat(ends[:-1], np.diff(ends))) % _LONGEST
    sums = np.zeros(taken.size + 1, np.uint64)
    np.cumsum((taken + np.uint64(1)) * _POWERS[places], out=sums[1:])
    return sums[ends[1:]] - sums[ends[:-1]]


def _as_bytes(values: pa.Array) -> pa.Array:
    if pa.types.is_fixed_size_binary(values.type):
        values = values.cast(pa.binary())
    is_bytes = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    return (values if is_bytes else values.cast(pa.large_string())).cast(pa.large_binary())
