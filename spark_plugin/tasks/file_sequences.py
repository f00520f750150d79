"""The workers of sequences of files in time order: each reads some first events, and what is near them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.sides import Side, concatenated
from coincide.engine.files.slice_join import PlannedFiles, within_reach
from coincide.engine.files.slices import DirectPlan, Parts, needed_groups
from coincide.engine.join.join import TablePlan
from coincide.engine.reports.metrics import numbers_of
from coincide.model.condition import Window
from spark_plugin.tasks.sequences import Events, Gathered, TuplesTask, rows_of
from spark_plugin.tasks.wire import on_the_wire


@dataclass(frozen=True, kw_only=True)
class StreamFiles:
    """The files of a stream.

    Parameters
    ----------
    files : PlannedFiles
    tables : TablePlan
        What makes events of rows: those of its left side.
    kinds : tuple of tuples of pa.DataType
        The types in which keys, columns, and those of the condition cross.
    plan : DirectPlan or None
        Which row groups slices read, and when the events of these are. None of first events that are at
        no other place.
    window : Window or None
        The time from a first event to one of this stream.
    """

    files: PlannedFiles
    tables: TablePlan
    kinds: tuple[tuple[pa.DataType, ...], ...]
    plan: DirectPlan | None
    window: Window | None

    def read(self, parts: Parts, *, is_counted: bool = True) -> tuple[Side, SideCounts]:
        """Events of some rows. Invalid ones are refused by the slice that counts them, and no other."""
        tables = self.tables if is_counted else replace(self.tables, invalid="drop")
        return tables.read(0, self.files.read(parts, tables.columns(0), threads=False))

    def near(self, first: Side, number: int) -> tuple[Side, SideCounts]:
        """Events that some first events of a slice can reach, and the counts of rows that are its own."""
        plan, window = self._known
        needed = needed_groups(plan.spans, first, window)
        accounts_for = plan.slices[number].accounts_for
        own, counts = self.read(self._whole(np.intersect1d(accounts_for, needed)))
        bare = replace(self.tables, payload=([], []), tested=([], []))
        unneeded = self._whole(np.setdiff1d(accounts_for, needed))
        counts += replace(self, tables=bare).read(unneeded)[1]
        borrowed, _ = self.read(self._whole(np.setdiff1d(needed, accounts_for)), is_counted=False)
        return within_reach(concatenated([own, borrowed]), first, window), counts

    def others(self, first: Side, own: Parts) -> Side:
        """Events of the first stream that others of it can reach, without the slice's own rows."""
        plan, window = self._known
        places = plan.right.take(needed_groups(plan.spans, first, window))
        numbers, kept = ((p.file.astype(np.int64) << 32) + p.index for p in (places, own.places))
        order = np.argsort(kept)
        at = np.minimum(np.searchsorted(kept[order], numbers), max(kept.size - 1, 0))
        nothing, rows = np.zeros(len(places), np.int64), places.rows.astype(np.int64)
        start, stop = nothing, nothing
        if kept.size:
            is_kept = kept[order][at] == numbers
            start, stop = (
                np.where(is_kept, each[order][at], nothing) for each in (own.start, own.stop)
            )
        sides = []
        for parts in (Parts(places, nothing, start), Parts(places, stop, rows)):
            filled = np.flatnonzero(parts.stop > parts.start)
            sides.append(self.read(parts.take(filled), is_counted=False)[0])
        return within_reach(concatenated(sides), first, window)

    def crossing(self, side: Side) -> Side:
        """Events whose columns have the types in which they cross."""
        tables, given = self.tables, (side.keys, side.payload, side.tested)
        names = tables.by[0], tables.payload[0], tables.tested[0]
        keys, payload, tested = (
            [on_the_wire(*each) for each in zip(of_names, columns, kinds, strict=True)]
            for of_names, columns, kinds in zip(names, given, self.kinds, strict=True)
        )
        return replace(side, keys=keys, payload=payload, tested=tested)

    @property
    def _known(self) -> tuple[DirectPlan, Window]:
        assert self.plan is not None
        assert self.window is not None
        return self.plan, self.window

    def _whole(self, groups: np.ndarray) -> Parts:
        """Whole row groups by their numbers."""
        return Parts.whole(self._known[0].right.take(groups))


@dataclass(frozen=True, kw_only=True)
class FileTuplesTask(TuplesTask):
    """Answers for the first events of the slices whose numbers come in.

    Parameters
    ----------
    sent : tuple of StreamFiles
        That of first events is the first one.
    useful : int
        The largest shape of a first event that has any other near it.
    """

    sent: tuple[StreamFiles, ...]
    useful: int

    @property
    def counted(self) -> tuple[str, ...]:
        """As in `CountingTask`: also what the rows of each stream were."""
        rows = (numbers_of(SideCounts(), rows_of(i)) for i in range(len(self.sent)))
        return *super().counted, *(name for each in rows for name in each)

    def gathered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Gathered]:
        """As in `TuplesTask`: the events of each slice."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield self._slice(number)

    def _slice(self, number: int) -> Gathered:
        first, *others = self.sent
        (plan, *_) = [each.plan for each in self.sent if each.plan is not None]
        own = plan.slices[number].left
        events, counted = first.read(own)
        able = events.up_to(self.useful)
        counts = [counted]
        is_own = None
        if first.plan is not None:
            more = first.others(able, own)
            is_own = np.arange(len(events) + len(more)) < len(events)
            events = concatenated([events, more])
        found: list[Events] = [(first.crossing(events), is_own)]
        for stream in others:
            side, counted = stream.near(able, number)
            found.append((stream.crossing(side), None))
            counts.append(counted)
        return Gathered(found, counts)
