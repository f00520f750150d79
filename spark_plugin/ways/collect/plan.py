"""Two collected sides, and how their join is dealt to tasks. NumPy and Arrow only, no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from spark_plugin.ways.exchange.planning import PAIR_WORK
from spark_plugin.ways.samples import Reach, Sample, expected_partners
from spark_plugin.worker.emission.spec import AnySpec

_SMALLEST_WORK = 500_000.0
"""Below this much work, in rows that an exchange moves, a further task does not pay."""


@dataclass(frozen=True, eq=False)
class CollectPlan:
    """A join of rows that the driver has.

    Parameters
    ----------
    table : pa.Table
        On the wire: left events, then right ones, each by midpoint.
    left_rows : int
    bounds : tuple of int
        Task i has the left events from ``bounds[i]`` to ``bounds[i + 1]``, and all right ones.
    """

    table: pa.Table = field(repr=False)
    left_rows: int
    bounds: tuple[int, ...]
    way: ClassVar[str] = "collect"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        tasks = len(self.bounds) - 1
        return f"both sides collected, {self.table.nbytes:,} bytes, {tasks} task{'s' * (tasks > 1)}"


def even_bounds(
    left: Sample, right: Sample, reach: Reach, spec: AnySpec, left_rows: int, tasks: int
) -> tuple[int, ...]:
    """Where to cut the left events, so that tasks have about equal work.

    Parameters
    ----------
    left, right : Sample
        All events that can match.
    reach : Reach
    spec : AnySpec
    left_rows : int
        Left events in all: those that match nothing are last.
    tasks : int
        Tasks that the cluster runs at once.
    """
    if spec.is_one_stream:  # whose events are numbered where all that are alike are together
        return 0, left_rows
    work = 1.0 + PAIR_WORK[spec.emit] * expected_partners(left, right, reach)
    done = np.cumsum(work)
    total = float(done[-1]) + right.rows if done.size else 0.0
    count = max(1, min(tasks, int(total // _SMALLEST_WORK)))
    shares = np.arange(1, count) / count
    cuts = np.searchsorted(done, shares * done[-1]) if done.size else np.empty(0, np.int64)
    return 0, *np.unique(cuts[(cuts > 0) & (cuts < left_rows)]).tolist(), left_rows
