"""Region transitions of files in no order: events packed where they are read, and decided by bucket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import narrow_type, one_array
from coincide.engine.reports.metrics import numbers_of, of_all
from coincide.engine.transitions.arguments import EventColumns
from coincide.engine.transitions.crossing_rows import Batch, read_events, told_times
from coincide.engine.transitions.reports import COUNTED, TransitionCounts, TransitionSummary
from coincide.model.transitions import Crossings, Transitions, decided_by_the_clock
from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.packed_keys import LATEST, Cells, KeyRows, OpenedPacks
from spark_plugin.tasks.transition_streams import decided_events
from spark_plugin.tasks.transitions import HIGH, KIND, LOW, QUERY, STREAM
from spark_plugin.tasks.wire import on_the_wire

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class CrossingKeyRows(KeyRows):
    """Makes events of the rows of files; `kinds` are the types in which query and stream cross."""

    columns: EventColumns
    kinds: tuple[pa.DataType, pa.DataType]
    is_measured: bool

    @property
    def needed(self) -> list[str]:
        """As in `KeyRows`."""
        return self.columns.arguments.columns

    @property
    def keys(self) -> list[str]:
        """As in `KeyRows`."""
        return [QUERY, STREAM]

    @property
    def counted(self) -> tuple[str, ...]:
        """As in `KeyRows`."""
        return *COUNTED, LATEST

    @property
    def tells_latest(self) -> bool:
        """As in `KeyRows`."""
        return self.is_measured

    def read(self, table: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """As in `KeyRows`."""
        events, counts, _ = read_events(table, self.columns, None)
        arguments, crossings = self.columns.arguments, events.crossings
        names = arguments.query, arguments.stream or STREAM
        query, stream = (
            on_the_wire(*each) for each in zip(names, events.ids, self.kinds, strict=True)
        )
        rows = pa.table({
            QUERY: query, STREAM: stream, LOW: crossings.min_time, HIGH: crossings.max_time,
            KIND: crossings.kind,
        })  # fmt: skip
        latest = int(crossings.max_time.max()) + TIME_LIMIT if len(events) else 0
        told = TransitionSummary(TransitionCounts(counts.rows, counts.invalid), 0, counts.rounded)
        return rows, {**numbers_of(told), LATEST: latest}

    def times_of(self, rows: pa.Table) -> np.ndarray:
        """As in `KeyRows`."""
        low, high = (one_array(rows.column(name)).to_numpy() for name in (LOW, HIGH))
        return low + high

    def events(self, rows: pa.Table) -> Batch:
        """What `read` has made rows of."""
        query, stream, *numbers = (
            one_array(rows.column(name)) for name in (QUERY, STREAM, KIND, LOW, HIGH)
        )
        return Batch((query, stream), Crossings.of(*(each.to_numpy() for each in numbers)))


@dataclass(frozen=True)
class PackedTransitionTask(CountingTask):
    """Tells transitions and stays of the queries and streams of a bucket."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    rows: CrossingKeyRows
    cells: Cells
    until: int | None
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, slice by slice; stays of last events at the end."""
        packs, columns = OpenedPacks(self.rows, self.cells), self.rows.columns
        last: Batch | None = None
        counts, undecided = TransitionCounts(), 0
        for table in packs.tables(batches):
            step = decided_events(last, self.rows.events(table), columns)
            last = step.last
            counts += TransitionCounts(repeated=step.repeated) + TransitionCounts.of(step.found)
            yield from self._rows_of(step.events, step.found)
        told = dict(packs.told)
        latest = told.pop(LATEST)
        if last is not None:
            until = latest - TIME_LIMIT if self.rows.is_measured else self.until
            assert until is not None
            found = decided_by_the_clock(last.crossings, until, columns.rule)
            counts += TransitionCounts.of(found)
            undecided = len(last) - found.row.size
            yield from self._rows_of(last, found)
        if packs.has_any:
            ids = [narrow_type(kind) for kind in self.rows.kinds[: len(columns.arguments.ids)]]
            kinds = [*ids, *[pa.int64()] * (len(self.names) - len(ids))]
            own = numbers_of(replace(TransitionSummary(), counts=counts, undecided=undecided))
            yield [pa.nulls(1, kind) for kind in kinds], of_all([told, own])

    def _rows_of(self, events: Batch, found: Transitions) -> Iterator[Answer]:
        """The output columns of what was found among events."""
        ids = events.ids[: len(self.rows.columns.arguments.ids)]
        given = [Gather(each, narrow_type(each.type)) for each in ids]
        for start in range(0, found.row.size, _BATCH_ROWS):
            part = found.rows(slice(start, start + _BATCH_ROWS))
            kinds = pa.array(part.transition.astype(np.int64))
            times = told_times(events.crossings, part)
            yield [*(column(part.row) for column in given), kinds, *times], None
