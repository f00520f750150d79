"""Marks of keys: equal keys have equal ones, so most live events need not be compared with a block's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_plugin.worker.arrow.sides import folded
from spark_plugin.worker.arrow.wide_columns import stored

MARKS = 1 << 16
"""How many there are: other keys of a block's mark are sorted in vain, one in so many."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LONGEST = 256
"""Of a text so many bytes count one by one; what follows only by its place modulo that."""
_POWERS = np.cumprod(np.full(_LONGEST, _FACTOR | np.uint64(1), np.uint64))


def marks_of(keys: Sequence[pa.Array], rows: int, *, case_fold: bool = False) -> np.ndarray:
    """Marks of rows: uint16 array, shape (n,). They stay the same from process to process.

    Parameters
    ----------
    keys : sequence of pa.Array
        The `by` columns, without nulls.
    rows : int
    case_fold : bool
        Whether texts are equal if they are so in lower case.
    """
    mixed = np.zeros(rows, np.uint64)
    for key in keys:
        encoded = pc.dictionary_encode(stored(key))
        hashes = _hashes(folded(encoded.dictionary) if case_fold else encoded.dictionary)
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
