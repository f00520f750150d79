"""What becomes of two collected sides. NumPy and Arrow only, no Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.plurals import several
from spark_plugin.ways.exchange.planning import PAIR_WORK
from spark_plugin.ways.samples import Reach, Sample, expected_partners
from spark_plugin.worker.emission.spec import AnySpec

_SMALLEST_WORK = 500_000.0
"""Below this much work, in rows that an exchange moves, a further task does not pay."""
_SAMPLES = 4096


@dataclass(frozen=True, eq=False)
class CollectPlan:
    """A join of rows that the driver has, and sends to tasks.

    Parameters
    ----------
    rows : pa.Table
        On the wire: left events, then right ones, each by midpoint.
    left_rows : int
        Left events.
    bounds : tuple of int
        Task i has the left events from ``bounds[i]`` to ``bounds[i + 1]``, and all right ones.
    """

    rows: pa.Table
    left_rows: int
    bounds: tuple[int, ...]
    way: ClassVar[str] = "collect"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    def describe(self) -> str:
        """The plan in one line, for the log."""
        tasks = len(self.bounds) - 1
        return f"both sides collected, {self.rows.nbytes:,} bytes to {several(tasks, 'task')}"


@dataclass(frozen=True, eq=False)
class Expected:
    """What a thin sample of the left events says of the work.

    Parameters
    ----------
    stride : int
        Each event of the sample stands for so many in order of midpoints.
    partners : float64 array
        Right events that each can reach.
    """

    stride: int
    partners: np.ndarray

    @classmethod
    def of(cls, left: Sample, right: Sample, reach: Reach) -> Expected:
        """Of samples that hold every event that can match."""
        own, others = _thinned(left), _thinned(right)
        stride = -(-left.midpoints.size // max(1, own.midpoints.size))
        return cls(stride, expected_partners(own, others, reach))

    def bounds(self, spec: AnySpec, left_rows: int, tasks: int) -> tuple[int, ...]:
        """Where to cut the left events, so that tasks have about equal work.

        Parameters
        ----------
        spec : AnySpec
        left_rows : int
            Left events in all: those that match nothing are last.
        tasks : int
            Tasks that the cluster runs at once.
        """
        # Of one stream events are numbered where all that are alike are together, and what is one to
        # one is known where all are.
        if spec.is_one_stream or spec.matching is not None or not self.partners.size:
            return 0, left_rows
        done = np.cumsum(1.0 + PAIR_WORK[spec.emit] * self.partners)
        count = max(1, min(tasks, int(done[-1] * self.stride // _SMALLEST_WORK)))
        cuts = np.searchsorted(done, np.arange(1, count) / count * done[-1]) * self.stride
        return 0, *np.unique(cuts[(cuts > 0) & (cuts < left_rows)]).tolist(), left_rows


def _thinned(sample: Sample) -> Sample:
    stride = -(-sample.midpoints.size // _SAMPLES)
    if stride <= 1:
        return sample
    midpoints, hashes = sample.midpoints[::stride], sample.hashes[::stride]
    weights = np.full(midpoints.size, sample.midpoints.size / midpoints.size)
    return Sample(midpoints, weights, hashes, sample.rows)
