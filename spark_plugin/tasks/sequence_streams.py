"""The workers of sequences of streams: they pack rows by slice, and answer slices that are closed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
import pyarrow as pa

from spark_plugin.tasks.grid import Slices
from spark_plugin.tasks.packing import EVENTS, STREAM
from spark_plugin.tasks.sequences import IS_OWN, SequenceTask
from spark_plugin.tasks.slice_plan import Places
from spark_plugin.tasks.streaming import IS_LATE, StreamPackTask
from spark_plugin.tasks.wire import LABEL


@dataclass(frozen=True, kw_only=True)
class PlacedPackTask(StreamPackTask):
    """Packs the rows of one of several streams; those of an anchor also tell where tuples begin."""

    sent: int
    is_anchor: bool
    visits: bool = field(default=False)  # whether its rows go to the slices of others

    @property
    def number(self) -> int:
        """As in `StreamPackTask`."""
        return self.sent

    @property
    def is_left(self) -> bool:
        """As in `StreamPackTask`."""
        return not self.visits

    def groups(self, events: pa.Table, places: Places) -> Iterator[tuple[Slices, pa.Table]]:
        """As in `Packing`."""
        for group, rows in super().groups(events, places):
            if not self.is_anchor:
                yield group, rows
                continue
            is_own = pa.array(np.full(rows.num_rows, group.is_own))
            yield group, rows.append_column(IS_OWN, is_own)


@dataclass(frozen=True, kw_only=True)
class ClosedTuplesTask(SequenceTask):
    """Answers closed slices, those of a label in a run of packs."""

    def _slices(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[list[pa.Buffer]]]:
        """As in `SequenceTask`."""
        for _, run in itertools.groupby(_timely(batches), itemgetter(0)):
            packs: list[list[pa.Buffer]] = [[] for _ in self.sent]
            for _, number, events in run:
                packs[number].append(events)
            begins = any(
                own for each, own in zip(self.sent, packs, strict=True) if each.task.is_anchor
            )
            if begins:
                yield from self._parts(packs)


def _timely(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    """Label, stream and events of the packs that are not late."""
    for batch in batches:
        told = (batch.column(name).to_pylist() for name in (LABEL, STREAM, IS_LATE))
        for label, number, is_late, events in zip(*told, batch.column(EVENTS), strict=True):
            if not is_late:
                yield label, number, events.as_buffer()
