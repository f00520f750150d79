"""One slice of the direct way: read, check, count, join. Runs wherever there is Python, without a JVM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pyarrow as pa

from coincide.sides import LEFT, RIGHT
from spark_plugin.ways.files.plan import DirectPlan, DirectSlice, Parts, needed_groups
from spark_plugin.ways.files.worker.reading import PlannedFiles
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.sides import Side, concatenated
from spark_plugin.worker.join import Joined, TablePlan

_FEW_BEYOND = 0.9
"""Rows out of reach are left out where less than this share is in reach."""


@dataclass(frozen=True, eq=False)
class Sliced(ABC):
    """A planned join of files whose slices are joined one by one; small enough to be sent to every task.

    Parameters
    ----------
    tables : TablePlan
        What is computed.
    alone : Sliced or None
        What hands out right events without a partner besides.
    """

    tables: TablePlan
    alone: Self | None = field(default=None, kw_only=True)

    @property
    @abstractmethod
    def count(self) -> int:
        """Of the slices."""

    @abstractmethod
    def read(self, number: int) -> SliceRows:
        """What a slice needs."""

    def with_tables(self, tables: TablePlan) -> Self:
        """The same, computed otherwise."""
        return replace(self, tables=tables)


@dataclass(frozen=True, eq=False)
class DirectJoin(Sliced):
    """A planned join of Parquet files in time order."""

    files: tuple[PlannedFiles, PlannedFiles]
    plan: DirectPlan

    @property
    def count(self) -> int:  # noqa: D102
        return len(self.plan.slices)

    def read(self, number: int) -> SliceRows:
        """As `read_slice`."""
        return read_slice(self, number)

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Of the left and the right files."""
        return self.files[LEFT].schema, self.files[RIGHT].schema


@dataclass(frozen=True, eq=False)
class SliceRows:
    """What a slice has read.

    Parameters
    ----------
    left, right : Side
        Its left events, and the right ones that they can reach.
    counts : (SideCounts, SideCounts)
        Of the rows that it accounts for.
    """

    left: Side
    right: Side
    counts: tuple[SideCounts, SideCounts]


def read_slice(join: DirectJoin, number: int, threads: bool = False) -> SliceRows:
    """Read what a slice needs.

    Parameters
    ----------
    join : DirectJoin
    number : int
        Of the slice.
    threads : bool
        Whether PyArrow may use several.

    Raises
    ------
    DataError
        If a file cannot be read, or rows are invalid and that is to be an error.
    """
    slice_, plan, tables = join.plan.slices[number], join.plan, join.tables
    left, left_counts = _read(join, tables, LEFT, slice_.left, threads)
    able = left.up_to(tables.spec.largest_useful[LEFT])
    needed = needed_groups(plan.spans, able, tables.spec.window)
    own, right_counts = _accounted(join, slice_, needed, threads)
    sides = [own]
    borrowed = np.setdiff1d(needed, slice_.accounts_for)
    if borrowed.size:
        # Their invalid rows are told of, and counted, by the slice that accounts for them.
        lenient = replace(tables, invalid="drop")
        sides.append(_right(join, lenient, borrowed, threads)[0])
    right = within_reach(concatenated(sides), able, tables)
    return SliceRows(left, right, (left_counts, right_counts))


def join_slice(join: DirectJoin, rows: SliceRows) -> Joined:
    """The output of a slice."""
    return join.tables.join(rows.left, rows.right)


def _accounted(
    join: DirectJoin, slice_: DirectSlice, needed: np.ndarray, threads: bool
) -> tuple[Side, SideCounts]:
    """Right rows that the slice accounts for and needs, and the counts of all it accounts for."""
    mine = np.intersect1d(slice_.accounts_for, needed)
    side, counts = _right(join, join.tables, mine, threads)
    others = np.setdiff1d(slice_.accounts_for, needed)
    if others.size:
        # Only looked at: their payload stays in the file.
        tables = join.tables
        bare = replace(tables, payload=(tables.payload[LEFT], []), tested=(tables.tested[LEFT], []))
        counts += _right(join, bare, others, threads)[1]
    return side, counts


def _right(
    join: DirectJoin, tables: TablePlan, groups: np.ndarray, threads: bool
) -> tuple[Side, SideCounts]:
    """Whole right row groups, by their numbers."""
    return _read(join, tables, RIGHT, Parts.whole(join.plan.right.take(groups)), threads)


def _read(
    join: DirectJoin, tables: TablePlan, side: int, parts: Parts, threads: bool
) -> tuple[Side, SideCounts]:
    """Events of the left (0) or right (1) files; of one stream with what tells them apart."""
    names, is_numbered = tables.columns(side), tables.spec.is_one_stream
    return tables.read(side, join.files[side].read(parts, names, threads, is_numbered))


def _span(left: Side) -> tuple[int, int] | None:
    """From the earliest min_time to the latest max_time of the events that can match, ticks."""
    low, high = left.min_time, left.max_time
    if left.matchable is not None:
        low, high = low[left.matchable], high[left.matchable]
    return (int(low.min()), int(high.max())) if low.size else None


def within_reach(right: Side, left: Side, tables: TablePlan) -> Side:
    """Right events without those that no left event of the slice can reach, if they are many."""
    window, span = tables.spec.window, _span(left)
    if span is None:
        return right.rows(np.empty(0, np.int64))
    reached = (right.min_time <= span[1] + window.hi) & (right.max_time >= span[0] + window.lo)
    if np.count_nonzero(reached) >= _FEW_BEYOND * len(right):
        return right
    return right.rows(np.flatnonzero(reached))
