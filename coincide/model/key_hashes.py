"""Hashes of keys that are the same in every process: which bucket an event goes to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from coincide.model.compiled import compiled

_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xD6E8FEB86659FD93))
_BEGIN, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Those of FNV-1a, 64 bits."""


def mixed(values: np.ndarray) -> np.ndarray:
    """Numbers whose bits all depend on all bits of the given ones: int64 array, not negative."""
    bits = values.astype(np.int64).view(np.uint64) * _ODD[0]
    for odd in _ODD[1:]:
        bits = (bits ^ (bits >> np.uint64(29))) * odd
    return (bits >> np.uint64(1)).view(np.int64)


def hashes_of(keys: Sequence[pa.Array]) -> np.ndarray:
    """One hash for each row of some columns, equal where all of them are: int64 array, shape (n,)."""
    found = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        found = mixed(found + _numbers(key))
    return found


def _numbers(key: pa.Array) -> np.ndarray:
    """Numbers that are equal where values are, and seldom else."""
    if pa.types.is_integer(key.type):
        return key.fill_null(0).to_numpy()
    is_bytes = pa.types.is_binary(key.type) or pa.types.is_large_binary(key.type)
    is_bytes = is_bytes or pa.types.is_fixed_size_binary(key.type)
    texts = (key if is_bytes else key.cast(pa.large_string())).cast(pa.large_binary())
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    found = np.empty(len(texts), np.uint64)
    _hash(offsets, np.frombuffer(data or b"", np.uint8), found)
    return np.where(key.is_null().to_numpy(zero_copy_only=False), -1, found.view(np.int64))


@compiled
def _hash(offsets, data, found):
    for i in range(found.size):
        bits = _BEGIN
        for place in range(offsets[i], offsets[i + 1]):
            bits = (bits ^ np.uint64(data[place])) * _PRIME
        found[i] = bits
