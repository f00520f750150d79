"""Inputs on standard input, and results on standard output."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Collection
from typing import Any, Self

import pyarrow as pa
from pyarrow import fs

from coincide.command_line.problems import Problem
from coincide.engine.files.csv_rules import CsvRules
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.result_rows import WRITERS, ArrowStream, ResultRows
from coincide.engine.files.source import FORMATS, STANDARD_INPUT, Source, source_of

_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_MOST = 6


def check_once(inputs: Collection[str]) -> None:
    """Refuse two inputs from one standard input."""
    if sum(text == STANDARD_INPUT for text in inputs) > 1:
        raise Problem("standard input can be one input only. Name a file for the other one.")


def read_in(side: str, file_format: str | None, csv: CsvRules) -> Source:
    """What comes in, as an input whose file goes when the input does."""
    if sys.stdin.isatty():
        raise Problem(
            f"{side}: standard input is a terminal. Pipe CSV or Arrow IPC in, or name a file."
        )
    begin = sys.stdin.buffer.read(_MOST)
    told = (kind for kind, each in FORMATS.items() if begin.startswith(each.magic or (b"\0",)))
    kind = file_format or next(told, "csv")
    if FORMATS[kind].has_row_groups or begin.startswith(FORMATS["parquet"].magic):
        raise Problem(
            f"{side}: standard input is read as CSV or Arrow IPC, not as Parquet. Name the file."
        )
    packed = next((end for sign, end in _PACKED.items() if begin.startswith(sign)), "")
    kept = tempfile.NamedTemporaryFile(prefix="coincide-", suffix=packed)  # noqa: SIM115
    kept.write(begin)
    shutil.copyfileobj(sys.stdin.buffer, kept)
    kept.flush()
    found = ParquetFiles(side, fs.LocalFileSystem(), (kept.name,), (STANDARD_INPUT,))
    return source_of(STANDARD_INPUT, found, kind, csv, held=kept)


_NAME = "standard output"


class ReaderGone(Exception):
    """Who reads standard output has enough."""


class StandardOutput:
    """What is written here is out at once: nothing is published, and nothing is taken back."""

    def __init__(self, file_format: str) -> None:
        self._format = file_format

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rows_writer(self, schema: pa.Schema) -> ResultRows:
        """Takes the rows."""
        rows = ArrowStream if self._format == "arrow" else WRITERS[self._format]
        return rows(_NAME, self.open_output_stream, schema)

    def open_output_stream(self) -> pa.NativeFile:
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
