"""Result rows to one file, or one stream, of Parquet, CSV or Arrow IPC."""

from __future__ import annotations

import csv as plain
import io
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from coincide.errors import SchemaError
from spark_plugin.worker.files.parquet_rows import writing

_SPECIAL = r'[",\r\n]|^$'
"""What has to stand in quotes; an empty text has to, too, beside nothing at all."""


class ResultRows(Protocol):
    """Takes batches; as a context manager."""

    rows: int

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""


class _Opened:
    """A sink that is closed at the end.

    Parameters
    ----------
    name : str
        For messages.
    opened : callable
        The sink.
    schema : pa.Schema
    """

    def __init__(self, name: str, opened: Callable[[], pa.NativeFile], schema: pa.Schema) -> None:
        self._check(schema)
        self._name, self._schema, self.rows = name, schema, 0
        with writing(name):
            self._sink = opened()

    def __enter__(self) -> Self:
        try:
            with writing(self._name):
                self._begin()
        except BaseException:
            self._sink.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            with writing(self._name), self._sink:
                self._end()
            return
        # What broke it shall be told.
        with suppress(OSError):
            self._sink.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""
        with writing(self._name):
            self._write(batch)
        self.rows += batch.num_rows

    def _check(self, schema: pa.Schema) -> None:
        """Refuse columns that the format cannot hold."""

    def _begin(self) -> None:
        """What stands before the rows."""

    def _write(self, batch: pa.RecordBatch) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """What stands after the rows."""


class CsvRows(_Opened):
    """CSV with a header and commas. Texts stand in quotes in batches in which one needs them.

    Raises
    ------
    SchemaError
        For arrays and other columns that CSV cannot hold.
    DataError
        If the file cannot be written; also from its methods.
    """

    def _check(self, schema: pa.Schema) -> None:
        for field in schema:
            try:
                csv.write_csv(pa.table([pa.nulls(1, field.type)], ["x"]), pa.BufferOutputStream())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise SchemaError(
                    f"the output column {field.name} is {field.type}, which CSV cannot hold; write .parquet"
                    " or .arrow, or leave the column out"
                ) from None

    def _begin(self) -> None:
        line = io.StringIO()
        plain.writer(line, lineterminator="\n").writerow(self._schema.names)
        self._sink.write(line.getvalue().encode())

    def _write(self, batch: pa.RecordBatch) -> None:
        needs = any(map(_needs_quotes, batch.columns))
        options = csv.WriteOptions(
            include_header=False, quoting_style="needed" if needs else "none"
        )
        csv.write_csv(batch, self._sink, options)


class ArrowRows(_Opened):
    """Arrow IPC: a file, or a stream, where nobody can look back.

    Raises
    ------
    DataError
        If it cannot be written; also from its methods.
    """

    is_stream = False

    def _begin(self) -> None:
        new = pa.ipc.new_stream if self.is_stream else pa.ipc.new_file
        self._writer = new(self._sink, self._schema)

    def _write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def _end(self) -> None:
        self._writer.close()


class ArrowStream(ArrowRows):
    """Arrow IPC as a stream."""

    is_stream = True


def _needs_quotes(column: pa.Array) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _needs_quotes(column.dictionary)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return True
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return False
    return bool(pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py())
