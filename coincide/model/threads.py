"""Tasks on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

_ROWS_OF_A_THREAD = 1 << 18


def kept_busy(rows: int, threads: int) -> int:
    """How many of the threads are worth their start, each with some passes over its share of rows."""
    return max(1, min(threads, rows // _ROWS_OF_A_THREAD))


def run_tasks(tasks: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Run tasks on that many threads, and return what they return, in their order."""
    if threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
