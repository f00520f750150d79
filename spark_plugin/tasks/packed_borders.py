"""Border crossings of files in no order: readings packed by stream where they are read, and searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns, read_readings
from coincide.engine.borders.reports import COUNTED, BorderSummary
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import Ids, narrow_type, one_array
from coincide.engine.reports.metrics import numbers_of, of_all
from spark_plugin.tasks.borders import (
    STREAM,
    TIME,
    PartitionSearch,
    ShippedQueries,
    value_names,
    values_of,
)
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.packed_keys import Cells, KeyRows, OpenedPacks
from spark_plugin.tasks.wire import on_the_wire


@dataclass(frozen=True)
class ReadingKeyRows(KeyRows):
    """Makes readings of the rows of files; `kind` is the type in which streams cross."""

    columns: ReadingColumns
    kind: pa.DataType

    @property
    def needed(self) -> list[str]:
        """As in `KeyRows`."""
        return self.columns.arguments.columns

    @property
    def keys(self) -> list[str]:
        """As in `KeyRows`."""
        return [STREAM]

    @property
    def counted(self) -> tuple[str, ...]:
        """As in `KeyRows`."""
        return COUNTED

    def read(self, table: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """As in `KeyRows`."""
        readings, arguments = read_readings(table, self.columns), self.columns.arguments
        values = zip(value_names(arguments.dimensions), readings.values.T, strict=True)
        rows = pa.table({
            STREAM: on_the_wire(arguments.stream or STREAM, readings.streams, self.kind),
            TIME: readings.times,
            **{name: np.ascontiguousarray(each) for name, each in values},
        })  # fmt: skip
        counts = readings.counts
        told = BorderSummary(counts.rows, counts.invalid, rounded=counts.rounded)
        return rows, numbers_of(told)

    def times_of(self, rows: pa.Table) -> np.ndarray:
        """As in `KeyRows`."""
        return 2 * one_array(rows.column(TIME)).to_numpy()


@dataclass(frozen=True)
class PackedCrossingTask(CountingTask):
    """Tells the crossings of the streams of a bucket, in order of times within a stream."""

    counted: ClassVar[tuple[str, ...]] = COUNTED

    rows: ReadingKeyRows
    cells: Cells
    arguments: BorderArguments
    queries: ShippedQueries
    names: tuple[str, ...] = ()
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns, slice by slice."""
        packs = OpenedPacks(self.rows, self.cells)
        search: PartitionSearch | None = None
        streams = Ids.none(self.rows.kind)
        for table in packs.tables(batches):
            search = search or self._search()
            given = one_array(table.column(STREAM))
            streams, numbers = streams.numbered(given)
            found = search.crossings(
                numbers, one_array(table.column(TIME)).to_numpy(),
                values_of(table, self.arguments.dimensions),
                Gather(given, narrow_type(given.type)), counting="least",
            )  # fmt: skip
            for columns in found:
                yield columns, None
        if packs.has_any:
            search = search or self._search()
            nulls = [pa.nulls(1, kind) for kind in search.kinds(narrow_type(self.rows.kind))]
            yield nulls, of_all([packs.told, numbers_of(search.summary(SideCounts()))])

    def _search(self) -> PartitionSearch:
        load_task_backend(self.arguments.options.backend)
        return PartitionSearch(self.queries, self.arguments)
