"""Work in blocks, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from coincide.model.threads import run_tasks

_BLOCKS_PER_THREAD = 4
_SMALLEST_BLOCK = 4096


def blocks_of(n: int, threads: int) -> list[tuple[int, int]]:
    """Cut positions 0 ... n into disjoint blocks, several per thread so that dense stretches even out."""
    most = threads * _BLOCKS_PER_THREAD if threads > 1 else 1
    blocks = max(1, min(most, n // _SMALLEST_BLOCK))
    edges = [n * k // blocks for k in range(blocks + 1)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def tally_of_blocks(count: Callable[[int, int], np.ndarray], n: int, threads: int) -> np.ndarray:
    """The sum of the tallies, int64 of shape (3,), that blocks of positions 0 ... n have."""
    tallies = run_tasks([partial(count, *block) for block in blocks_of(n, threads)], threads)
    return np.sum([np.zeros(3, np.int64), *tallies], axis=0)
