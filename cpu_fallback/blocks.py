"""Work in blocks, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

_BLOCKS_PER_THREAD = 4
_SMALLEST_BLOCK = 4096


def blocks_of(n: int, threads: int) -> list[tuple[int, int]]:
    """Cut positions 0 ... n into disjoint blocks, several per thread so that dense stretches even out."""
    most = threads * _BLOCKS_PER_THREAD if threads > 1 else 1
    blocks = max(1, min(most, n // _SMALLEST_BLOCK))
    edges = [n * k // blocks for k in range(blocks + 1)]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def run_tasks(tasks: list[Callable[[], Any]], threads: int) -> list[Any]:
    """Run tasks on that many threads, and return what they return, in their order."""
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
