"""What is wrong in a file of CSV: where, and what to do about it."""

from __future__ import annotations

import csv as plain
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.csv as csv

from coincide.engine.files.csv_rules import CsvRules
from coincide.model.errors import DataError

_CELL = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to ([^:]+): (.*)", re.DOTALL
)
_LINE = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)", re.DOTALL)
_TOO_LONG = "straddles two block boundaries"
_QUOTED = re.compile(r"'(.*)'", re.DOTALL)
_FINE = re.compile(r":\d\d\.\d{7,9}\b")
_SHOWN = 40


class _File(Protocol):
    """What `CsvFile` is."""

    @property
    def side(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def open(self) -> Callable[[], pa.NativeFile]: ...
    @property
    def rules(self) -> CsvRules: ...
    @property
    def times(self) -> tuple[str, ...]: ...
    @property
    def fixed(self) -> tuple[str, ...]: ...
    def names(self) -> list[str]: ...


@contextmanager
def located(
    file: _File, convert: csv.ConvertOptions, block_bytes: int | None = None
) -> Iterator[None]:
    """Turn what PyArrow says of a file into a `DataError` that names line and column."""
    try:
        yield
    except pa.ArrowInvalid as error:
        if block_bytes is not None and _TOO_LONG in str(error):
            raise DataError(f"{file.side}: {file.path}, {_too_long(file, block_bytes)}") from error
        words = _words(file, convert)
        if words is None:
            raise
        raise DataError(f"{file.side}: {file.path}, {words}") from error


def _words(file: _File, convert: csv.ConvertOptions) -> str | None:
    """Where a file is wrong, and the cure; None if it is otherwise wrong."""
    rules = file.rules
    try:
        with file.open() as stream:
            reader = csv.open_csv(
                stream, read_options=rules.read_options(use_threads=False),
                parse_options=rules.parse_options(), convert_options=convert,
            )  # fmt: skip
            for _ in reader:
                pass
    except pa.ArrowInvalid as error:
        said = str(error)
    else:
        return None
    if found := _LINE.match(said):
        row, expected, got = map(int, found.groups())
        if "\0" in said:
            return (
                f"line {line_of(file, row):,} holds NUL bytes, as a loss of power leaves them; cut it off,"
                " or leave such lines out with --invalid drop"
            )
        wanted = f"{expected} columns are named" if rules.names else f"the header has {expected}"
        cells = f"{got} cell" if got == 1 else f"{got} cells"
        return (
            f"line {line_of(file, row):,} has {cells} where {wanted}; mend it, quote cells"
            " that hold the delimiter, say --csv-delimiter, --csv-quote, or leave such lines out with"
            " --invalid drop"
        )
    if found := _CELL.match(said):
        index, at, kind, why = found.groups()
        name = file.names()[int(index)]
        return f"line {line_of(file, int(at)):,}, column {name!r}: {_cure(file, name, kind, why)}"
    return None


def _cure(file: _File, name: str, kind: str, why: str) -> str:
    if "UTF8" in why:
        return "the text is not UTF-8; say --csv-encoding, such as latin-1 or cp1252"
    text = found[1] if (found := _QUOTED.search(why)) else ""
    shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
    if "expected a zone offset" in why:
        return (
            f"{shown} has no zone offset, and other times here have one; give all of them one, or say"
            f" --csv-type {name}=timestamp_ntz where none has"
        )
    if "expected no zone offset" in why:
        return (
            f"{shown} has a zone offset, and other times here have none; give all of them one, or say"
            f" --csv-type {name}=timestamp where all have"
        )
    if "timestamp[us" in kind and _FINE.search(text):
        return f"{shown} has more than six decimals of a second; say --tick ns"
    is_text = f", or --csv-type {name}=text if the column is text"
    return (
        f"{shown} is no {_kind(kind)}; mend it, or say --csv-null {text!r} if it stands for nothing"
        f"{dropping(file, name)}{'' if name in file.fixed else is_text}"
    )


def dropping(file: _File, name: str) -> str:
    """That rows of bad times can be left out, where that was not said."""
    can = name in file.times and not file.rules.drops
    return ", or leave such rows out with --invalid drop" if can else ""


def is_too_long(error: DataError) -> bool:
    """Whether a line was longer than what is read at once."""
    return _TOO_LONG in str(error.__cause__)


def time_cure(file: _File, name: str, kind: pa.DataType, text: str) -> str:
    """What to do about a text that is a time, but none of the column's type."""
    try:
        pa.array([text]).cast(kind)
    except pa.ArrowInvalid as error:
        return _cure(file, name, str(kind), str(error))
    return ""


def _too_long(file: _File, limit: int) -> str:
    """Where a line is longer than what is read at once."""
    with _records(file) as reader:
        begun = 0
        for cells in reader:
            if sum(map(len, cells)) > limit:
                break
            begun = reader.line_num
    at = file.rules.skip + begun + 1
    return (
        f"line {at:,} is longer than {limit >> 20} MB, the longest that is read; mend it, or say"
        " --csv-quote none if a quote in it is not closed"
    )


def _kind(kind: str) -> str:
    names = {"int64": "whole number", "double": "number", "bool": "boolean", "date32[day]": "date"}
    fine = "" if "ns" in kind else " of at most six decimals"
    return names.get(kind, f"ISO 8601 time{fine}, such as 2024-05-01T08:00:00Z")


def line_of(file: _File, row: int) -> int:
    """The line at which a row begins: quotes may hold line breaks, and empty lines are no rows."""
    rules = file.rules
    with _records(file) as reader:
        before = row - rules.skip - 1
        next(islice(filter(None, reader), before - 1, before), None) if before else None
        begun = reader.line_num
        cells: list[str] = next(filter(None, reader), [])
        return rules.skip + max(begun + 1, reader.line_num - "".join(cells).count("\n"))


@contextmanager
def _records(file: _File) -> Iterator[Any]:
    """A reader of the lines below those that are skipped, which counts lines."""
    rules = file.rules
    marks = {"quotechar": rules.quote} if rules.quote else {"quoting": plain.QUOTE_NONE}
    plain.field_size_limit(1 << 30)
    with file.open() as stream, io.TextIOWrapper(
        io.BufferedReader(stream), encoding=rules.encoding, errors="replace", newline=""
    ) as text:  # fmt: skip
        for _ in range(rules.skip):
            text.readline()
        yield plain.reader(text, delimiter=rules.delimiter, **marks)


_LINE_BYTES = 1 << 12
"""A file that is no longer is looked at, whether it is a header alone."""


def with_a_line(opened: Callable[[], pa.NativeFile], rules: CsvRules) -> pa.NativeFile:
    """A file that is open, with an end of its line where it is a header alone, or no row below names.

    PyArrow refuses both, as what a logger has written so far often is.
    """
    stream = opened()
    begin = bytes(stream.read(_LINE_BYTES) or b"")
    stream.close()
    text = begin.decode(rules.encoding, errors="replace")
    if len(begin) < _LINE_BYTES and _has_no_row(text, rules):
        return pa.BufferReader(f"{text}\n".encode(rules.encoding))
    return opened()


def _has_no_row(text: str, rules: CsvRules) -> bool:
    """Whether nothing stands below the names, and the last line has no end."""
    if rules.names:
        return not any(text.split("\n")[rules.skip :])
    lines = text.split("\n")
    return len(lines) == rules.skip + 1 and bool(lines[-1].strip())
