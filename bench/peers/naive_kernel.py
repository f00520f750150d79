"""The obvious compiled join: sort by max_time, evaluate the closed form for all within reach."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from bench.events import CONFIDENCE, DEADLINE_US, LONGEST_US
from coincide.model.compiled import compiled
from coincide.model.probability import qualifies

_REACH = DEADLINE_US + LONGEST_US


def naive_counts(left: pa.Table, right: pa.Table, threads: int) -> int:
    """Count the pairs of each left event; the number of pairs. Arguments as `naive_pairs`."""
    sides = _by_max_time(left), _by_max_time(right)
    return int(_counts(sides, threads).sum())


def naive_pairs(left: pa.Table, right: pa.Table, threads: int) -> int:
    """Make all pairs of ids of two tables of microseconds; their number."""
    sides = _by_max_time(left), _by_max_time(right)
    offsets = np.append(0, np.cumsum(_counts(sides, threads)))
    left_ids, right_ids = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    _in_blocks(
        lambda a, b: _fill(a, b, *sides, offsets, left_ids, right_ids), sides[0][0].size, threads
    )
    return pa.table({"left_id": left_ids, "right_id": right_ids}).num_rows


def _by_max_time(table: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    latest = table["max_time"].to_numpy()
    order = np.argsort(latest, kind="stable")
    length = latest - table["min_time"].to_numpy()
    return latest[order], length[order], table["id"].to_numpy()[order]


def _counts(sides, threads: int) -> np.ndarray:
    counts = np.empty(sides[0][0].size, np.int64)
    _in_blocks(lambda a, b: _count(a, b, *sides, counts), counts.size, threads)
    return counts


def _in_blocks(work, size: int, threads: int) -> None:
    edges = np.linspace(0, size, 4 * threads + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


@compiled
def _count(start, stop, left, right, counts):
    first = np.searchsorted(right[0], left[0][start] - _REACH) if start < stop else 0
    for i in range(start, stop):
        while first < right[0].size and right[0][first] < left[0][i] - _REACH:
            first += 1
        found = 0
        j = first
        while j < right[0].size and right[0][j] <= left[0][i] + _REACH:
            shift = right[0][j] - left[0][i]
            found += _meets(shift, left[1][i], right[1][j])
            j += 1
        counts[i] = found


@compiled
def _fill(start, stop, left, right, offsets, left_ids, right_ids):
    first = np.searchsorted(right[0], left[0][start] - _REACH) if start < stop else 0
    for i in range(start, stop):
        while first < right[0].size and right[0][first] < left[0][i] - _REACH:
            first += 1
        at = offsets[i]
        j = first
        while j < right[0].size and right[0][j] <= left[0][i] + _REACH:
            shift = right[0][j] - left[0][i]
            if _meets(shift, left[1][i], right[1][j]):
                left_ids[at] = left[2][i]
                right_ids[at] = right[2][j]
                at += 1
            j += 1


@compiled
def _meets(shift, left_length, right_length):
    return qualifies(shift, left_length, right_length, -DEADLINE_US, DEADLINE_US, CONFIDENCE)
