"""Results that go to standard output, where someone may stop reading."""

from __future__ import annotations

import io
import sys
from collections.abc import Collection
from typing import Any, Self

import pyarrow as pa

from spark_plugin.worker.files.parquet_rows import ParquetRows
from spark_plugin.worker.files.result_rows import ArrowStream, CsvRows, ResultRows

_NAME = "standard output"


class ReaderGone(Exception):
    """Who reads standard output has enough."""


class StandardOutput:
    """What is written here is out at once: nothing is published, and nothing is taken back.

    Parameters
    ----------
    file_format : {"csv", "arrow", "parquet"}
        Arrow is written as a stream.
    """

    def __init__(self, file_format: str) -> None:
        self._format = file_format

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rows_writer(self, schema: pa.Schema) -> ResultRows:
        """Takes the rows."""
        if self._format == "parquet":
            return ParquetRows(self, "", schema)
        rows = CsvRows if self._format == "csv" else ArrowStream
        return rows(_NAME, self.open_output_stream, schema)

    def open_output_stream(self, _: str = "") -> pa.NativeFile:
        """As of a file system."""
        return pa.PythonFile(_Pipe(), mode="w")

    def publish(self, paths: Collection[str] | None = None) -> None:
        """It is out."""


class _Pipe(io.RawIOBase):
    """Standard output, which stays open."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._out = sys.stdout.buffer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        try:
            return self._out.write(data)
        except BrokenPipeError:
            raise ReaderGone from None

    def flush(self) -> None:
        try:
            self._out.flush()
        except BrokenPipeError:
            raise ReaderGone from None

    def close(self) -> None:
        if not self.closed:
            self.flush()
            super().close()
