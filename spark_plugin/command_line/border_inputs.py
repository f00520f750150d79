"""The inputs of `coincide borders`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from spark_plugin.command_line.input_checks import check_complete, check_zones, path_columns
from spark_plugin.ways.files.time_order import TimeOrdered
from spark_plugin.worker.arrow.schemas import plain_schema
from spark_plugin.worker.borders.arguments import BorderArguments
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.source import Source


@dataclass(frozen=True)
class BorderInputs:
    """Readings and queries, and what is needed of them.

    Parameters
    ----------
    arguments : BorderArguments
    readings, queries : ArrowInput
    """

    arguments: BorderArguments
    readings: ArrowInput
    queries: ArrowInput

    @classmethod
    def of(
        cls, arguments: BorderArguments, readings: Source, queries: Source, engine: str
    ) -> BorderInputs:
        """The inputs of an engine."""
        options, values = arguments.options, tuple(arguments.values)
        borders = [f"{end}_{name}" for name in values for end in ("lower", "upper")]
        fine = engine == "local" and "ns" in (options.unit, options.tick)
        return cls(
            arguments,
            ArrowInput(readings, fine, (arguments.time,), values),
            ArrowInput(queries, floats=("lower", "upper", *borders)),
        )

    @property
    def sources(self) -> list[Source]:
        """Of both."""
        return [self.readings.source, self.queries.source]

    @property
    def types(self) -> dict[str, pa.DataType]:
        """For columns of readings of which no file tells the type."""
        floats = dict.fromkeys(self.arguments.values, pa.float64())
        return {self.arguments.time: pa.int64(), **floats}

    def query_table(self) -> pa.Table:
        """The queries.

        Raises
        ------
        Problem, SchemaError
            If they cannot be read, or lack a column.
        """
        given = self.queries.schema.names
        pairs = self.arguments.border_names(given)
        types = {name: pa.float64() for pair in pairs for name in pair}
        columns = self.arguments.query_columns(given)
        check_complete(self.queries, columns)
        return self.queries.table(columns, types)

    def schema(self) -> pa.Schema:
        """Of the readings, as their files tell it.

        Raises
        ------
        Problem, SchemaError
            If they cannot be read, or lack a column.
        """
        return plain_schema(self.readings.typed(self.arguments.columns, self.types))

    def checked_schema(self) -> pa.Schema:
        """The same, where the files are to be read by PyArrow, and must go together."""
        check_complete(self.readings, self.arguments.columns)
        check_zones(self.readings, self.arguments.columns)
        return self.schema()

    def tables(self, schema: pa.Schema) -> tuple[pa.Schema, Iterable[pa.Table]]:
        """The readings, one row group at a time where each is later than those before it, else whole.

        Parameters
        ----------
        schema : pa.Schema
            As the files tell it: CSV may hold something else.

        Returns
        -------
        pa.Schema
        iterable of pa.Table
        """
        source = self.readings.source
        # Floats are rounded to ticks: one may be later in its row group, and of a tick of the next.
        is_float = pa.types.is_floating(schema.field(self.arguments.time).type)
        if source.file_format == "parquet" and not path_columns(source) and not is_float:
            ordered = TimeOrdered.of(source.found, self.arguments.time, schema)
            if ordered is not None:
                return schema, ordered.tables()
        table = self.readings.table(self.arguments.columns, self.types)
        return plain_schema(table.schema), [table]
