"""What a join needs to aggregate ranges of targets, and what it finds: the same on every backend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled

BLOCK_BITS = 4
"""The binary logarithm of the targets in a block of a table."""
_BLOCK = 1 << BLOCK_BITS
NOTHING = np.iinfo(np.int64).max
"""The least value of no target."""


class Prepared(NamedTuple):
    """What is prepared of targets, in their order, for all aggregates.

    ``before``, shape (n + 1, lanes): sums before each target. ``codes``, (columns, n): numbers of which
    the least is sought. ``tables``, (columns, levels, blocks): the least of 2 ** level blocks.
    """

    before: np.ndarray
    codes: np.ndarray
    tables: np.ndarray


class Found(NamedTuple):
    """What is found of n base events.

    ``counts``, shape (n,), ``sums``, (n, lanes), and ``least``, (n, columns).
    """

    counts: np.ndarray
    sums: np.ndarray
    least: np.ndarray


def found_of(rows: int, lanes: int, columns: int) -> Found:
    """Room for a run, in which nothing has been found yet."""
    least = np.full((rows, columns), NOTHING)
    return Found(np.zeros(rows, np.int64), np.zeros((rows, lanes), np.int64), least)


@compiled(forceinline=True)
def least_between(codes, table, start, stop):
    """The least of the codes start ... stop of a column, whose table is ``tables[column]``."""
    least = NOTHING
    first, last = (start + _BLOCK - 1) >> BLOCK_BITS, stop >> BLOCK_BITS
    if first >= last:
        for t in range(start, stop):
            least = min(least, codes[t])
        return least
    for t in range(start, first << BLOCK_BITS):
        least = min(least, codes[t])
    for t in range(last << BLOCK_BITS, stop):
        least = min(least, codes[t])
    level = 0
    while (2 << level) <= last - first:
        level += 1
    return min(least, min(table[level, first], table[level, last - (1 << level)]))
