"""The events of a side that wait for partners."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array

_LEAST_DEAD = 256
"""Fewer are not worth a copy."""
_MOST_DEAD = 4
"""Dead ones are let go of where they are more than one in so many."""


def joined(first: Side, second: Side) -> Side:
    """The events of two parts of one side, in memory of their own."""
    if not len(second):
        return first
    if not len(first):
        # A copy: what was pushed may be a slice of much more.
        return second.rows(np.arange(len(second)))
    return Side(
        np.concatenate([first.max_time, second.max_time]),
        np.concatenate([first.shapes, second.shapes]),
        first.model,
        _joined_masks(first, second),
        [_one(*each) for each in zip(first.keys, second.keys, strict=True)],
        [_one(*each) for each in zip(first.payload, second.payload, strict=True)],
    )


def since(side: Side, bound: int) -> Side:
    """Those from a max_time on, or all where few are earlier: these are found by no join."""
    keep = side.max_time >= bound
    dead = len(side) - int(keep.sum())
    if dead < _LEAST_DEAD or dead * _MOST_DEAD < len(side):
        return side if dead < len(side) else side.rows(np.empty(0, np.int64))
    return side.rows(np.flatnonzero(keep))


def parted(side: Side, mask: np.ndarray) -> tuple[Side, Side]:
    """Those in a mask, and the others."""
    if not mask.any():
        return side.rows(np.empty(0, np.int64)), side
    if mask.all():
        return side, side.rows(np.empty(0, np.int64))
    return side.rows(np.flatnonzero(mask)), side.rows(np.flatnonzero(~mask))


def nbytes(side: Side) -> int:
    """Bytes of the events with their columns."""
    columns = sum(column.nbytes for column in (*side.keys, *side.payload))
    return int(columns + side.max_time.nbytes + side.shapes.nbytes)


def _joined_masks(first: Side, second: Side) -> np.ndarray | None:
    if first.matchable is None and second.matchable is None:
        return None
    masks = [
        np.ones(len(side), bool) if side.matchable is None else side.matchable
        for side in (first, second)
    ]
    return np.concatenate(masks)


def _one(first: pa.Array, second: pa.Array) -> pa.Array:
    return one_array(of_one_type([first, second]))
