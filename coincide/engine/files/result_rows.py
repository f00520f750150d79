"""Result rows to one file, or one stream, of Parquet, CSV or Arrow IPC."""

from __future__ import annotations

import csv as plain
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from coincide.engine.events.rows import is_string
from coincide.model.errors import DataError, SchemaError

_SPECIAL = r'[",\r\n]|^$'
"""What has to be in quotes; an empty text has to, too, unlike a null."""


class ResultRows:
    """Takes batches, and writes them to a sink that is closed at the end; as a context manager."""

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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            with writing(self._name), self._sink:
                self._end()
            return
        # The file is lost anyway; users shall read what broke it, not that it cannot be closed.
        with suppress(OSError):
            self._give_up()
            self._sink.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""
        with writing(self._name):
            self._write(batch)
        self.rows += batch.num_rows

    def _check(self, schema: pa.Schema) -> None:
        """Refuse columns that the format cannot hold."""

    def _begin(self) -> None:
        """Write what comes before the rows."""

    def _write(self, batch: pa.RecordBatch) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        """Write what comes after the rows."""

    def _give_up(self) -> None:
        """Close what is open in addition to the sink."""


class CsvRows(ResultRows):
    """CSV with a header and commas. Texts are in quotes in batches in which one needs them."""

    def _check(self, schema: pa.Schema) -> None:
        for field in schema:
            try:
                csv.write_csv(pa.table([pa.nulls(1, field.type)], ["x"]), pa.BufferOutputStream())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise SchemaError(
                    f"the output column {field.name} has the type {field.type}, which CSV cannot"
                    " hold. Write .parquet or .arrow, or remove the column."
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


class ArrowRows(ResultRows):
    """Arrow IPC: a file, or a stream, where a reader cannot look back."""

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
    return is_string(kind) and bool(pc.any(pc.match_substring_regex(column, _SPECIAL)).as_py())


_ROWS_IN_GROUP = 1_000_000
_BYTES_IN_GROUP = 128 << 20
_ROWS_IN_SAMPLE = 1 << 16


class ParquetRows(ResultRows):
    """Parquet, whose row groups gather small batches.

    Whole numbers are written as differences (where ids and times of matches are nearly in order), or
    plainly and packed by LZ4 (where events have enough matches that the same ids come again and
    again): whichever makes the first rows smaller, which is also the faster one. Parquet's dictionaries
    are neither.
    """

    _writer: pq.ParquetWriter | None = None
    _waiting_rows = _waiting_bytes = 0

    def _check(self, schema: pa.Schema) -> None:
        for field in schema:
            try:
                pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
            except pa.ArrowNotImplementedError as error:
                raise SchemaError(
                    f"the output column {field.name} has the type {field.type}, which Parquet"
                    " cannot hold. Cast it, or remove it."
                ) from error

    def _begin(self) -> None:
        self._waiting: list[pa.RecordBatch] = []

    def _write(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._waiting_rows += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= _ROWS_IN_GROUP or self._waiting_bytes >= _BYTES_IN_GROUP:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        if self._writer is None:
            self._writer = _writer(self._sink, table)
        if self._waiting:
            self._writer.write_table(table, row_group_size=_ROWS_IN_GROUP)
        self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def _end(self) -> None:
        self._flush()
        self._give_up()

    def _give_up(self) -> None:
        if self._writer is not None:
            self._writer.close()


WRITERS: dict[str, type[ResultRows]] = {
    "parquet": ParquetRows,
    "csv": CsvRows,
    "arrow": ArrowRows,
}
"""By the names of formats."""


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn failures to write a file or a folder into a `DataError` that names it."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DataError(f"cannot write {name}: {reason}") from error


def _writer(sink: pa.NativeFile, table: pa.Table) -> pq.ParquetWriter:
    """A writer for tables like this one, whose beginning decides how numbers are written."""
    sample = table.slice(0, _ROWS_IN_SAMPLE)
    columns = [i for i, field in enumerate(table.schema) if _is_number(_element(field.type))]
    numbers = sample.select(columns)
    ways = sorted(_WAYS, key=lambda way: _size(numbers, way)) if numbers.num_rows else _WAYS
    return pq.ParquetWriter(sink, table.schema, **_settings(table.schema, ways[0]))


_WAYS = (("DELTA_BINARY_PACKED", "snappy"), ("PLAIN", "lz4"))
"""How numbers may be written: encoding and compression."""


def _size(table: pa.Table, way: tuple[str, str]) -> int:
    """Bytes of a table that is written in a way."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **_settings(table.schema, way))
    return int(sink.getvalue().size)


def _settings(schema: pa.Schema, way: tuple[str, str]) -> dict[str, Any]:
    encoding, compression = way
    numbers = _paths_of_numbers(schema)
    others = [path for path in map(_path, schema) if path not in numbers]
    return {
        "use_dictionary": others or False,
        "column_encoding": dict.fromkeys(numbers, encoding) or None,
        "compression": dict.fromkeys(others, "snappy") | dict.fromkeys(numbers, compression),
    }


def _path(field: pa.Field) -> str:
    """A column as Parquet names it, the elements of lists apart."""
    return f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name


def _paths_of_numbers(schema: pa.Schema) -> list[str]:
    return [_path(field) for field in schema if _is_number(_element(field.type))]


def _element(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_list(kind) else kind


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_timestamp(kind) or types.is_date32(kind)
