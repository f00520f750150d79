"""The numbers by which a join's way is chosen, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from spark_plugin.tasks.broadcast import SMALLEST_CHUNK
from spark_plugin.ways.exchange.planning import MOST_TIME_SLICES

_BOTH_ROWS = 1 << 20
_BOTH_BYTES = 28 * _BOTH_ROWS


@dataclass(frozen=True)
class PlannerLimits:
    """What is small, large, uneven or many.

    Spark's estimate is compared with the first ones, before anything is read: files count as on disk.
    The last four are compared with what a planning job has counted.
    """

    both_rows: int = _BOTH_ROWS
    """Most rows a side that are broadcast on both sides: more are read faster by many tasks."""
    both_bytes: int = _BOTH_BYTES
    """Most bytes of both sides together that are collected: as rows of a time, a key and an id."""
    small_bytes: int = 12 << 20
    """Most bytes of one small side: `small_rows` of twice that width. With more, rows are counted first."""
    small_rows: int = SMALLEST_CHUNK
    """Most rows of one small side: of more, each chunk of the other side prepares more than it has."""
    far_larger: int = 4
    """How many times as large the other side is: of less, a planning job costs less than the copies."""
    least_large: int = 2 << 20
    """Least bytes of that other side: of less, both are broadcast faster."""
    large_bytes: int = 6 << 20
    """Least bytes of each side that is exchanged without a planning job: of less, the driver is faster."""
    large_filtered_bytes: int = _BOTH_BYTES // 2
    """The same where both have a filter: of less they are collected, if the filters leave few rows."""
    packed: int = 2
    """Files hold about this many times the bytes and rows that they have on disk."""
    smallest_slice_rows: int = 1 << 14
    """Fewest rows of a slice: of fewer, a task of its own does not pay."""
    most_slices: int = MOST_TIME_SLICES
    """Most slices that are cut in time."""
    waves_of_filtered: int = 16
    """Most slices for each core where filters may leave them empty, which takes tenths of a second each."""
    waves_of_computed: int = 4
    """Slices for each core where the rows are unknown, so that no core waits long for the last one."""

    many_more: int = 2
    """More than `small_rows` are broadcast only to this many times as many: else a shuffle is faster."""
    prepared_row: float = 0.3
    """Work of preparing a row of the small side for a chunk, in rows that an exchange moves."""
    uneven: float = 2.0
    """A partition of this many times its share of the work would keep the other tasks waiting."""
    little_work: float = 5_000_000.0
    """Below this much work, in rows, an uneven partition is done before an exchange would be."""


LIMITS = PlannerLimits()
"""Found on two cores: `python -m bench run planner` measures each way on both sides of them."""
