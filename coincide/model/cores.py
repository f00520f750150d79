"""How many cores this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores of this process; in Spark's workers those of a task, which Spark tells in OMP_NUM_THREADS."""
    found, told = len(os.sched_getaffinity(0)), os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(found, int(told))) if told.isdigit() else found
