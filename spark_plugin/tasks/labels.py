"""Labels of slices: numbers whose hash by Spark brings each slice to a partition of its own. NumPy only."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_SEED = np.uint32(42)
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


@lru_cache(maxsize=16)
def partition_labels(partitions: int) -> np.ndarray:
    """One label for each partition."""
    labels = np.full(partitions, -1, np.int64)
    start, step = 0, 16 * partitions
    while (labels < 0).any():
        candidates = np.arange(start, start + step)
        homes = spark_hash(candidates).astype(np.int64) % partitions
        free, first = np.unique(homes, return_index=True)
        unset = labels[free] < 0
        labels[free[unset]] = candidates[first[unset]]
        start += step
    labels.flags.writeable = False
    return labels


_TRIES = 64
"""Labels that one cell may have: they find all of about this many partitions."""


def labels_of_cells(cells: np.ndarray, partitions: int) -> np.ndarray:
    """A label for each of endlessly many cells, those that follow each other in partitions that do."""
    labels = cells[:, None] * _TRIES + np.arange(_TRIES)
    fits = spark_hash(labels).astype(np.int64) % partitions == cells[:, None] % partitions
    return labels[np.arange(cells.size), fits.argmax(axis=1)]


def spark_hash(values: np.ndarray) -> np.ndarray:
    """Spark SQL's ``hash`` of a bigint: Murmur3 (x86, 32 bit) over its two halves, seed 42."""
    bits = values.astype(np.int64).view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    state = _mix(_mix(np.full(values.shape, _SEED), low), high) ^ np.uint32(8)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ (state >> np.uint32(shift))) * np.uint32(factor)
    return (state ^ (state >> np.uint32(16))).view(np.int32)


def _mix(state: np.ndarray, half: np.ndarray) -> np.ndarray:
    mixed = state ^ (_rotated(half * _C1, 15) * _C2)
    return _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotated(bits: np.ndarray, by: int) -> np.ndarray:
    return (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
