"""Whether a side is small enough to go to every worker, and which. NumPy only, no Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from coincide.options import CorrelateOptions, SideName
from spark_plugin.ways.exchange.planning import PAIR_WORK
from spark_plugin.ways.samples import Reach, Sample, expected_partners, shifted, weight_between
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.spec import AnySpec

_UNEVEN = 2.0
"""A partition of so many times its share of the work would keep the other tasks waiting."""
_PREPARED_ROW = 0.3
"""Work of preparing a row of the small side for a chunk, in rows that an exchange moves."""
FAR_LARGER = 4
"""Where Spark takes a side for so many times as large as the other, that is broadcast without a look, if
it is small; sides that are less far apart are exchanged without one, if they are large."""
SMALLEST_CHUNK = 1 << 18
"""Rows of the large side at once, at least, where a task may hold as many."""
_MANY_ROWS = 1 << 18
_MANY_MORE = 2
"""Many rows are exchanged faster than broadcast, unless the others are so many times as many."""
_KILOBYTES = 100_000
_LITTLE_WORK = 5_000_000.0
"""Below this much work, in rows, an uneven partition is done before an exchange would be."""


@dataclass(frozen=True)
class BroadcastPlan:
    """A join in which one side goes to every worker.

    Parameters
    ----------
    small : {"left", "right"}
        That side.
    why : str
        Why it is that one, in words.
    events : Side or None
        Its events, where they have been collected already.
    """

    small: SideName
    why: str
    events: Side | None = field(default=None, compare=False, repr=False)
    way: ClassVar[str] = "broadcast"
    count: ClassVar[None] = None
    replication: ClassVar[None] = None

    @property
    def large(self) -> SideName:
        """The side that streams through."""
        return "right" if self.small == "left" else "left"

    def describe(self) -> str:
        """The plan in one line, for the log."""
        return f"{self.small} to every worker, {self.why}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A side, as the choice sees it.

    Parameters
    ----------
    name : {"left", "right"}
    sample : Sample
    partitions : int64 array, shape (samples,)
        Partition of each sample.
    bytes : int or None
        Of all rows on the wire; None: cannot be told.
    """

    name: SideName
    sample: Sample
    partitions: np.ndarray
    bytes: int | None


def is_two_step(small: SideName, spec: AnySpec) -> bool:
    """Whether what tasks find about events of the small side must be brought together.

    A task that streams left events sees all partners of each. One that streams right events sees some
    of the partners of each left event: pairs are final then, and nothing else is.
    """
    return small == "left" and (spec.how != "inner" or spec.emit != "pairs")


def choose_small_side(
    left: Candidate,
    right: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    tasks: int,
) -> BroadcastPlan | None:
    """The side to broadcast, if any.

    Parameters
    ----------
    left, right : Candidate
    reach : Reach
    spec : AnySpec
    options : CorrelateOptions
        `way`, `broadcast_bytes`, `slices`.
    tasks : int
        Tasks that the cluster runs at once.

    Returns
    -------
    BroadcastPlan or None
        None: the exchange.
    """
    if options.way == "exchange" or (options.way == "auto" and options.slices is not None):
        return None
    if (
        spec.is_one_stream
    ):  # what tells its events apart holds where all that are alike are together
        return None
    if options.small_side:
        return BroadcastPlan(options.small_side, "as asked")
    if options.way == "broadcast":
        small = left if left.sample.rows < right.sample.rows else right
        return BroadcastPlan(small.name, "the smaller side, as asked")
    sides = [(right, left), (left, right)]
    if left.sample.rows < right.sample.rows and not is_two_step("left", spec):
        sides.reverse()
    for small, large in sides:
        size = small.bytes
        if size is None or size > options.broadcast_bytes:
            continue
        if _is_worth_it(small, large, reach, spec, options, tasks):
            return BroadcastPlan(small.name, described_size(size))
    return None


def described_size(size: int) -> str:
    """Bytes, in words."""
    return f"{size:,} bytes" if size < _KILOBYTES else f"{size / 1e6:,.1f} MB"


def _is_worth_it(
    small: Candidate,
    large: Candidate,
    reach: Reach,
    spec: AnySpec,
    options: CorrelateOptions,
    tasks: int,
) -> bool:
    """Whether tasks are even, and do and yield less than an exchange would move."""
    towards = reach if large.name == "left" else reach.reversed
    if large.sample.rows < _MANY_MORE * small.sample.rows and small.sample.rows > _MANY_ROWS:
        return False
    moved = large.sample.rows + small.sample.rows
    if _PREPARED_ROW * _prepared_rows(small, large, towards, options.slice_rows) > moved:
        return False
    partners = expected_partners(large.sample, small.sample, towards)
    if is_two_step(small.name, spec) and spec.emit in ("pairs", "lists"):
        pairs = float((large.sample.weights * partners).sum())
        if spec.how not in ("semi", "anti") and pairs > large.sample.rows:
            return False
    if not large.partitions.size:
        return True
    work = large.sample.weights * (1.0 + PAIR_WORK[spec.emit] * partners)
    heaviest = np.bincount(np.unique(large.partitions, return_inverse=True)[1], work).max()
    return bool(heaviest <= max(_UNEVEN * work.sum() / tasks, _LITTLE_WORK))


def _prepared_rows(small: Candidate, large: Candidate, towards: Reach, slice_rows: int) -> float:
    """Rows of the small side that are near a chunk, over all chunks: each is prepared anew for each."""
    partitions, of = np.unique(large.partitions, return_inverse=True)
    earliest, latest = np.full(partitions.size, 2**62), np.full(partitions.size, -(2**62))
    np.minimum.at(earliest, of, large.sample.midpoints)
    np.maximum.at(latest, of, large.sample.midpoints)
    near = weight_between(
        small.sample, shifted(earliest, towards.first), shifted(latest, towards.last)
    )
    rows = np.bincount(of, large.sample.weights, partitions.size)
    return float((near * np.ceil(rows / chunk_rows(slice_rows, small.sample.rows))).sum())


def chunk_rows(slice_rows: int, small_rows: int) -> int:
    """Rows of the large side at once: as many as the small one has, so that preparing it pays."""
    return min(slice_rows, max(SMALLEST_CHUNK, small_rows))
