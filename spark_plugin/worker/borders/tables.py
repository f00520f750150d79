"""The border crossings of tables that come one after the other, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from spark_plugin.worker.borders.arguments import BorderArguments
from spark_plugin.worker.borders.monitor import BorderMonitor
from spark_plugin.worker.borders.readings import ReadingColumns, read_readings
from spark_plugin.worker.borders.reports import BorderSummary


class TableCrossings:
    """Border crossings of tables of readings.

    Parameters
    ----------
    schema : pa.Schema
        Of the readings.
    queries : pa.Table, whatever offers Arrow's C stream, list of dicts, or path
    arguments : BorderArguments

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `coincide.border_crossing_tables`.
    """

    def __init__(self, schema: pa.Schema, queries: Any, arguments: BorderArguments) -> None:
        self._columns = ReadingColumns.of(schema, arguments)
        self._monitor = BorderMonitor(
            queries, stream=arguments.stream, time=arguments.time, values=arguments.values,
            query=arguments.query, closed_column=arguments.closed_column, options=arguments.options,
        )  # fmt: skip
        self._monitor.push(schema.empty_table())
        self.schema = self._monitor.schema

    def batches(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """The crossings of tables, each in any order and later than all before it."""
        for table in tables:
            readings = read_readings(table, self._columns)
            yield from self._monitor.crossings(readings, in_any_order=True)

    def summary(self) -> BorderSummary:
        """What was found so far."""
        return self._monitor.summary()
