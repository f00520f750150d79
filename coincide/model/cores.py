"""How many cores this process may use."""

from __future__ import annotations

import os


def all_cores() -> int:
    """Cores that the system lets this process use."""
    return len(os.sched_getaffinity(0))


def cores() -> int:
    """Of these, in Spark's workers, those of a task, which Spark tells in OMP_NUM_THREADS."""
    found, told = all_cores(), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(found, int(told))) if told.isdigit() else found
