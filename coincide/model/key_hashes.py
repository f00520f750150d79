"""Hashes of keys that are the same in every process: which bucket an event goes to."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xD6E8FEB86659FD93))


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
    encoded = key.dictionary_encode(null_encoding="encode")
    # Each different text once.
    texts = encoded.dictionary.to_pylist()
    codes = np.array([zlib.crc32(str(text).encode()) for text in texts] or [0], np.int64)
    return codes[encoded.indices.to_numpy()]
