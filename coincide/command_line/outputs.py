"""Where the output goes: it is written aside and takes its place at the end, or not at all."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.problems import Problem
from coincide.engine.files.credentials import NOT_FOR_SPARK, check_encoded, holds_settings
from coincide.engine.files.csv_rules import CsvRules
from coincide.engine.files.finding import ParquetFiles, is_local, local_path
from coincide.engine.files.publishing import Output
from coincide.engine.files.result_rows import WRITERS, ArrowStream, ResultRows
from coincide.engine.files.source import COMPRESSED, FORMATS, STANDARD_INPUT, Source, source_of
from coincide.engine.room import DiskUse
from coincide.model.options import check_choice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STDOUT = "-"
_UNWRITTEN = (".tsv", ".json", ".jsonl", ".txt", ".xlsx", ".orc", ".avro")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def format_of_output(text: str, asked: str | None) -> str:
    """A key of `FORMATS`."""
    if asked is not None:
        check_choice("--output-format", asked, tuple(FORMATS))
    if text == STDOUT:
        return asked or "csv"
    name = text.lower().rstrip("/")
    if name.endswith(_UNWRITTEN):
        raise Problem(
            f"the format of the output {text} cannot be written. End its name in .parquet, .csv"
            " or .arrow."
        )
    named = _named(name)
    if asked is not None and named not in (None, asked):
        raise Problem(
            f"the name of the output {text} means {named}, but --output-format is {asked}. Remove"
            " --output-format, or rename the output."
        )
    return asked or named or "parquet"


def _named(name: str) -> str | None:
    packed = next((end for end in COMPRESSED if name.endswith(end)), "")
    bare = name.removesuffix(packed)
    found = next((kind for kind, each in FORMATS.items() if bare.endswith(each.endings)), None)
    if packed and found != "csv":
        raise Problem(
            f"the output {name} would be compressed, and only .csv can be compressed. Remove"
            f" {packed} from its name."
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an output goes and what it is: a path or URI, and a key of `FORMATS`."""

    output: str
    overwrite: bool = False
    output_format: str = "parquet"


class SparkUri:
    """A folder in another file system. Spark's committer writes it; nothing is moved afterwards."""

    def __init__(self, text: str, overwrite: bool, sources: Sequence[Source]) -> None:
        check_encoded("the output", text)
        if holds_settings(text):
            raise Problem(f"the output {text} {NOT_FOR_SPARK}")
        for source in sources:
            folder = source.text.rstrip("/*")
            if text == folder or text.startswith(folder + "/"):
                raise Problem(
                    f"the output {text} lies inside the {source.side} input. Write to another"
                    " place."
                )
        self.uri, self.mode = text, "overwrite" if overwrite else "errorifexists"

    def __enter__(self) -> SparkUri:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rows(self) -> int | None:
        """Unknown."""
        return None

    def publish(self, paths: Collection[str] | None = None) -> None:
        """Spark has done it."""


class OneFile(Output):
    """A file that this process writes."""

    def __init__(self, place: Place, sources: Sequence[Source]) -> None:
        inputs = [source.found for source in sources if not source.is_uri]
        super().__init__(
            place.output, place.overwrite, inputs, is_folder=False, replaces_files=True
        )
        self._format = place.output_format
        name = place.output.lower()
        self._packed = next((how for end, how in _PACKED.items() if name.endswith(end)), None)

    def rows_writer(self, schema: pa.Schema) -> ResultRows:
        """Takes the rows."""
        opened = partial(self.filesystem.open_output_stream, self.aside, compression=self._packed)
        return WRITERS[self._format](self.name, opened, schema)

    def disk_use(self) -> DiskUse | None:
        """What the file takes up, and what is free there; None elsewhere than on this machine."""
        if not is_local(self.filesystem):
            return None
        with suppress(OSError):
            free = shutil.disk_usage(os.path.dirname(self.aside)).free
            return DiskUse(os.path.getsize(self.aside), free)
        return None


class Gathered:
    """Parquet that Spark writes next to a file, or a pipe, which this process then fills with the rows."""

    def __init__(self, last: OneFile | StandardOutput) -> None:
        self._last = last
        self._folder: str | None = None
        self.filesystem: fs.FileSystem = fs.LocalFileSystem()
        self.aside = self.uri = ""

    def __enter__(self) -> Self:
        last = self._last.__enter__()
        if isinstance(last, OneFile):
            self.filesystem, self.aside = last.filesystem, last.beside("parts")
            self.uri = last.uri_of(self.aside)
            self.filesystem.create_dir(self.aside)
        else:
            self._folder = self.aside = tempfile.mkdtemp(prefix="coincide-parts-")
            self.uri = f"file://{self.aside}"
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._last.__exit__(*error)

    def rows(self) -> int:
        """The rows of what Spark has written."""
        return sum(self._opened(path).metadata.num_rows for path in self._parts())

    def publish(self, paths: Collection[str] | None = None) -> None:
        """Write the rows of these parts, or of all, where they are to be."""
        parts = [self._opened(path) for path in sorted(self._parts() if paths is None else paths)]
        schema = parts[0].schema_arrow.remove_metadata()
        with self._last.rows_writer(schema) as rows:
            for part in parts:
                for batch in part.iter_batches():
                    raise_if_interrupted()
                    rows.write(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
        self._last.publish()

    def _parts(self) -> list[str]:
        infos = self.filesystem.get_file_info(fs.FileSelector(self.aside))
        return [info.path for info in infos if info.path.endswith(".parquet")]

    def _opened(self, path: str) -> pq.ParquetFile:
        return pq.ParquetFile(path, filesystem=self.filesystem)


def local_output(place: Place, sources: Sequence[Source]) -> LocalOutput:
    """Where the local engine writes. Raises `CoincideError` if it cannot."""
    _check_name(place.output)
    return (
        StandardOutput(place.output_format) if place.output == STDOUT else OneFile(place, sources)
    )


def spark_output(place: Place, sources: Sequence[Source]) -> SparkOutput:
    """Where Spark writes: Parquet, or what is made of it. Raises `CoincideError` if it cannot."""
    text = place.output
    _check_name(text)
    if text != STDOUT and local_path(text) is None:
        if place.output_format != "parquet":
            raise Problem(
                f"the output {text} is {place.output_format}, but Spark writes only Parquet"
                " there. End its name in .parquet, or use --engine local."
            )
        return SparkUri(text.rstrip("/"), place.overwrite, sources)
    if text == STDOUT or place.output_format != "parquet":
        return Gathered(local_output(place, sources))
    inputs = [source.found for source in sources if not source.is_uri]
    return Output(text, place.overwrite, inputs, replaces_files=True)


def write_frame(frame: DataFrame, output: SparkOutput) -> None:
    """Let Spark write a DataFrame to an output."""
    mode = output.mode if isinstance(output, SparkUri) else "append"
    frame.write.mode(mode).parquet(output.uri)


def _check_name(text: str) -> None:
    if not text.strip():
        raise Problem("the output has no name. Give one with -o.")


_PACKED_STARTS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_MOST = 6


def check_page(page: str, output: str, overwrite: bool, inputs: tuple[ParquetFiles, ...]) -> None:
    """Refuse a page that could not be written, before there is anything to write."""
    from coincide.engine.exploration.pages import checked_place, is_page

    if not is_page(page):
        raise Problem(f"--page must end in .html (found {page}). Rename it.")
    if os.path.abspath(page) == os.path.abspath(output):
        raise Problem(f"--page and -o are the same file (found {page}). Rename one of them.")
    checked_place(page, overwrite, inputs)


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
    packed = next((end for sign, end in _PACKED_STARTS.items() if begin.startswith(sign)), "")
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
        """As in a file system."""
        return pa.PythonFile(_Pipe(), mode="w")

    def disk_use(self) -> None:
        """It takes no room here."""

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


LocalOutput = OneFile | StandardOutput
SparkOutput = Output | Gathered | SparkUri
