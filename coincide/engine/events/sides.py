"""The sides of a join: events of a table, checked, in ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.invalid_rows import SideCounts, first_faults, invalid_rows
from coincide.engine.events.schemas import column_of, of_one_type, one_array, stored
from coincide.engine.events.ticks import contiguous
from coincide.engine.events.timestamps import (
    SideModel,
    TimestampColumns,
    describe_invalid,
)
from coincide.model.key_codes import codes_of
from coincide.model.options import Invalid
from coincide.model.ordering import stable_order
from coincide.model.remembered import remembered
from coincide.model.timestamps.protocol import Events

PairTest = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From left and right rows of pairs to which of them count: bool array."""


@dataclass(frozen=True, eq=False)
class Side:
    """Events of one side with what travels along."""

    max_time: np.ndarray
    shapes: np.ndarray
    model: SideModel
    matchable: np.ndarray | None
    keys: list[pa.Array]
    payload: list[pa.Array]
    places: list[pa.Array] = field(default_factory=list)
    identity: list[pa.Array] = field(default_factory=list)
    ranks: np.ndarray | None = None
    tested: list[pa.Array] = field(default_factory=list)

    def __len__(self) -> int:
        return self.max_time.size

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the supports of the timestamps: int64 array, shape (n,), ticks."""
        return self.model.lengths(self.shapes)

    @remembered
    def _has_shapes(self) -> bool:
        """Whether some shape is not the first one."""
        return bool(self.shapes.any())

    @property
    def are_instants(self) -> bool:
        """Whether all events have exact times."""
        return self.model.shape_is_length and not self._has_shapes

    @property
    def min_time(self) -> np.ndarray:
        """Where the supports begin: int64 array, shape (n,), ticks."""
        return self.max_time - self.lengths

    @property
    def sort_keys(self) -> np.ndarray:
        """Keys of the events, of intervals their doubled midpoints: int64 array, shape (n,), half ticks."""
        return 2 * self.max_time - self.model.leans(self.shapes)

    def up_to(self, largest: int) -> Side:
        """The same events; those of larger shapes match nothing."""
        is_able = self.shapes <= largest
        if is_able.all():
            return self
        return replace(
            self, matchable=is_able if self.matchable is None else self.matchable & is_able
        )

    def rows(self, index: np.ndarray) -> Side:
        """The side with only some rows, an int64 array."""
        keys, payload, places, identity, tested = (
            [column.take(pa.array(index)) for column in each]
            for each in (self.keys, self.payload, self.places, self.identity, self.tested)
        )
        matchable, ranks = (
            None if each is None else each[index] for each in (self.matchable, self.ranks)
        )
        # Those of exact times are all zero: none is fetched.
        shapes = self.shapes[index] if self._has_shapes else np.zeros(index.size, self.shapes.dtype)
        times = self.max_time[index], shapes
        return Side(*times, self.model, matchable, keys, payload, places, identity, ranks, tested)


def without_payload(side: Side) -> Side:
    """A side without output columns."""
    return replace(side, payload=[])


def concatenated(sides: Sequence[Side]) -> Side:
    """The events of one or more parts of a side, as one side."""
    filled = [side for side in sides if len(side)] or list(sides[:1])
    if len(filled) == 1:
        return filled[0]
    every = [(s.keys, s.payload, s.places, s.identity, s.tested) for s in filled]
    keys, payload, places, identity, tested = (
        [one_array(of_one_type(parts)) for parts in zip(*columns, strict=True)]
        for columns in zip(*every, strict=True)
    )
    return Side(
        np.concatenate([side.max_time for side in filled]),
        np.concatenate([side.shapes for side in filled]),
        filled[0].model, _all_matchable(filled), keys, payload, places, identity, _all_ranks(filled),
        tested,
    )  # fmt: skip


def _all_matchable(sides: Sequence[Side]) -> np.ndarray | None:
    if all(side.matchable is None for side in sides):
        return None
    return np.concatenate(
        [np.ones(len(s), bool) if s.matchable is None else s.matchable for s in sides]
    )


def _all_ranks(sides: Sequence[Side]) -> np.ndarray | None:
    ranks = [side.ranks for side in sides if side.ranks is not None]
    if ranks and len(ranks) < len(sides):
        raise ValueError(
            "some parts of a side have ranks, and some have no ranks. Give ranks to all of them,"
            " or to none."
        )
    return np.concatenate(ranks) if ranks else None


def grouped_events(left: Side, right: Side) -> tuple[Events, Events]:
    """Both sides as events whose groups are codes of their keys; unmatchable events get code -1."""
    # Integers of any width are equal by value. The two sides of a stream whose rows are the same are one
    # object, which is sorted once.
    if _are_same_rows(left, right):
        stream, _ = grouped_events(left, _without_rows(right))
        return stream, stream
    codes, groups = _group_codes(left, right)
    events = []
    for side, code in zip((left, right), codes, strict=True):
        if code is None and side.matchable is not None:
            code = np.zeros(len(side), np.int64)
        if code is not None and side.matchable is not None:
            code[~side.matchable] = -1
        events.append(side.model.events(side.max_time, side.shapes, code, groups))
    return events[0], events[1]


def _are_same_rows(left: Side, right: Side) -> bool:
    same = (
        (left.max_time, right.max_time),
        (left.shapes, right.shapes),
        (left.matchable, right.matchable),
    )
    return (
        len(left) > 0
        and all(own is other for own, other in same)
        and left.model is right.model
        and all(own is other for own, other in zip(left.keys, right.keys, strict=True))
    )


def _without_rows(side: Side) -> Side:
    nothing = side.max_time[:0]
    keys = [key.slice(0, 0) for key in side.keys]
    return Side(nothing, nothing, side.model, None, keys, [])


def _group_codes(left: Side, right: Side) -> tuple[list[np.ndarray | None], int]:
    """Dense codes of equal key combinations, over both sides together."""
    if not left.keys:
        return [None, None], 1
    combined, groups = _codes(left.keys[0], right.keys[0])
    for left_key, right_key in zip(left.keys[1:], right.keys[1:], strict=True):
        codes, distinct = _codes(left_key, right_key)
        # Re-densified after each key, so that the product of two stays far below 2**63.
        combined, groups = _dense(pa.array(combined * distinct + codes))
    return [combined[: len(left)].copy(), combined[len(left) :].copy()], groups


def _codes(left: pa.Array, right: pa.Array) -> tuple[np.ndarray, int]:
    values = _of_like_width(stored(left), stored(right))
    return _dense(one_array(of_one_type(values)))


def _of_like_width(left: pa.Array, right: pa.Array) -> list[pa.Array]:
    """Integers of different types as those of one that holds the values of both."""
    kinds = left.type, right.type
    if kinds[0] == kinds[1] or not all(map(pa.types.is_integer, kinds)):
        return [left, right]
    common = like_width(*kinds)
    return [left.cast(common), right.cast(common)]


def like_width(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type that holds values of two, of integers of any width; else the left one."""
    if left == right or not (pa.types.is_integer(left) and pa.types.is_integer(right)):
        return left
    # Nothing else holds both negative numbers and those from 2**63 on.
    return (
        pa.decimal128(20, 0)
        if pa.types.is_uint64(left) or pa.types.is_uint64(right)
        else pa.int64()
    )


def _dense(values: pa.Array) -> tuple[np.ndarray, int]:
    if pa.types.is_signed_integer(values.type) and not values.null_count:
        known = codes_of(values.cast(pa.int64()).to_numpy())
        if known is not None:
            return known
    encoded = pc.dictionary_encode(values, null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(1, len(encoded.dictionary))


def tie_ranks(side: Side) -> np.ndarray:
    """Order of events for ties: max_time, then min_time, then the payload columns as given."""
    times: Sequence[pa.Array] = [pa.array(side.max_time), pa.array(side.min_time)]
    columns = [*times, *(key for column in side.payload for key in _sort_keys(column))]
    names = [str(i) for i in range(len(columns))]
    order = pc.sort_indices(
        pa.table(columns, names=names), sort_keys=[(name, "ascending") for name in names]
    )
    return _ranks_of(order.to_numpy())


def row_ranks(side: Side, *, latest_first: bool) -> np.ndarray:
    """Order of events for ties: max_time, then min_time, then where the row is in its table."""
    if side.ranks is None and not side.identity and side.are_instants:
        step = -1 if latest_first else 1
        order = stable_order(side.max_time[::step])
        return _ranks_of(order if step > 0 else len(side) - 1 - order)
    if side.ranks is not None:
        rows = [side.ranks]
    elif side.identity:
        rows = [each.to_numpy() for each in reversed(side.identity)]
    else:
        rows = [np.arange(len(side))]
    rows = [-each for each in rows] if latest_first else rows
    return _ranks_of(np.lexsort((*rows, side.min_time, side.max_time)))


def _ranks_of(order: np.ndarray) -> np.ndarray:
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    return ranks


def _sort_keys(column: pa.Array) -> list[pa.Array]:
    """What a column is ordered by; nothing of nested columns and intervals, which have no order."""
    column = stored(column)
    if pa.types.is_nested(column.type) or pa.types.is_interval(column.type):
        return []
    if not pa.types.is_floating(column.type):
        return [column]
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
    values = column.to_numpy(zero_copy_only=False)
    is_below = (values == 0.0) & np.signbit(values)
    # Arrow takes both zeros for one, and then the first of the rows would come first, whatever task has it.
    return [column, pa.array(~is_below, pa.int8())] if is_below.any() else [column]


def read_side(
    table: pa.Table,
    columns: TimestampColumns,
    by: Sequence[str],
    payload: Sequence[str],
    invalid: Invalid,
    longest: int | None = None,
) -> tuple[Side, SideCounts]:
    """Arrays of one side, its invalid rows refused or left out; those over `longest` ticks are counted."""
    side = columns.scales[0].column.side
    found = columns.coordinates.read(side, table)
    times = columns.read(table)
    if found:
        times = times.placed(found, columns.coordinates.limits)
    places = list(map(pa.array, found))
    keys = [contiguous(column_of(table, side, name)) for name in by]
    output = [contiguous(column_of(table, side, name)) for name in payload]
    if not any(key.null_count for key in keys) and times.are_valid:
        counts = SideCounts(table.num_rows, rounded=times.rounded(None))
        counts = _with_too_long(counts, times.shapes, longest)
        events = Side(times.max_time, times.shapes, columns.model, None, keys, output, places)
        return events, counts
    reasons = first_faults(times.faults(), times.excused)
    if reasons and invalid == "raise":
        # The columns of times first: a row may be long.
        names = list(dict.fromkeys([*columns.columns, *table.column_names]))
        raise invalid_rows(table, names, reasons, partial(describe_invalid, columns))
    null = times.null.copy()
    keyless = np.zeros(null.size, bool)
    for key in keys:
        keyless |= pc.is_null(key).to_numpy(zero_copy_only=False)
    null |= keyless
    wrong = np.logical_or.reduce([np.zeros(null.size, bool), *reasons.values()])
    # A null key does not excuse an invalid time: such a row counts once, as invalid.
    unmatchable = int((null & ~wrong).sum())
    counts = SideCounts(
        table.num_rows,
        unmatchable,
        {reason: int(mask.sum()) for reason, mask in reasons.items()},
        times.rounded(~(null | wrong)),
        lacking={
            reason: count
            for reason, mask in times.lacking()
            if (count := int((mask & ~(keyless | wrong)).sum()))
        },
    )
    counts = _with_too_long(counts, times.shapes[~(null | wrong)], longest)
    matchable = ~null if null.any() else None
    result = Side(times.max_time, times.shapes, columns.model, matchable, keys, output, places)
    if reasons:
        result = result.rows(np.flatnonzero(~wrong))
    return _harmless(result), counts


def _with_too_long(counts: SideCounts, lengths: np.ndarray, longest: int | None) -> SideCounts:
    if longest is None or not (found := int(np.count_nonzero(lengths > longest))):
        return counts
    return replace(counts, too_long=found, longest_match=longest)


def _harmless(side: Side) -> Side:
    """Null times hold whatever the buffer held: put 0 in their place."""
    if side.matchable is None:
        return side
    max_time, shapes = (np.where(side.matchable, t, 0) for t in (side.max_time, side.shapes))
    return replace(side, max_time=max_time, shapes=shapes)
