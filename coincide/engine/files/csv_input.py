"""CSV: a dialect for each input, types from what is written, and where a file is wrong."""

from __future__ import annotations

import csv as plain
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from coincide.engine.events.schemas import with_types
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.csv_comments import MARKS as COMMENT_MARKS
from coincide.engine.files.csv_comments import Uncommented
from coincide.engine.files.csv_rules import CsvRules, advice, type_word
from coincide.engine.files.csv_texts import (
    BLANKS,
    as_instants,
    as_shown,
    first_that_tells,
    floats_of,
    form_with_letter,
    has_offset,
    is_of_zone,
    numbers_among,
    read_as_texts,
    times_of,
    with_numbers,
    with_texts,
    with_times,
)
from coincide.engine.files.finding import FILENAME
from coincide.engine.files.source import STANDARD_INPUT, Source, reading
from coincide.model.errors import ConditionError, DataError, option, several

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BLOCK_BYTES = 1 << 20
"""PyArrow's own measure of what is read at once; a line may be that long, and is tried with more then."""
_HEADER_BYTES = 1 << 16
_FIRST_BLOCK_BYTES = 16 << 20
"""The types of the columns come from this much of the first file, but numbers may turn out to be text."""
_LINE_BYTES = 1 << 12
"""A file that is no longer is looked at, whether it is a header alone."""
_SHOWN = 40
_MOST_ABOVE = 100
"""Lines in which a header is looked for."""
_WORDS = {"\t": "tab"}
_DROPPING = option("invalid", "drop")
_FORMAT = "--time-format, such as '%d/%m/%Y %H:%M:%S'"
_COMMA = re.compile(r"\d:\d\d(:\d\d)?,\d+")
_POINTS = r"sed -E 's/(:[0-9]{2}),([0-9]+)/\1.\2/g' in.csv > out.csv"


class Reader(ArrowInput):
    """An input of CSV."""

    def file_schema(self, file: str) -> pa.Schema:
        """As the beginning of a file tells it, with times and floats where these are asked for."""
        one = CsvFile(self, file)
        try:
            schema = one.schema(self.nanoseconds)
        except (pa.ArrowInvalid, DataError):
            self._check_header(one, {*self.times, *self.floats})
            self._check_separator(one.header())
            raise
        own = {f.name: f.type for f in schema if f.name not in self.source.csv.types}
        # A column may begin with whole numbers, and times with days.
        changed = {
            name: pa.float64() for name in self.floats if own.get(name) in (pa.int64(), pa.null())
        }
        stamps = pa.timestamp("ns" if self.nanoseconds else "us")
        changed |= {name: stamps for name in self.times if own.get(name) == pa.date32()}
        for name in (*self.times, *self.floats):
            if own.get(name) == pa.string():
                kind = one.kind_of_texts(name, self.nanoseconds)
                changed |= {} if kind is None else {name: kind}
        return with_types(schema, changed)

    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema, in types that lose nothing of what is written."""
        read = with_texts(schema, self._of_known_types)
        files = [CsvFile(self, file) for file in self.source.found.paths]
        decimals = {*self.times} - {*self.source.csv.types}
        own = self.own(read_as_texts(read, decimals))
        tables = [self.named(file.table(own), file.path, read) for file in files]
        names, decimal = floats_of(read, decimals), self.source.csv.decimal
        try:
            table = with_times(pa.concat_tables(tables), names, decimal)
        except pa.ArrowInvalid:
            for file in files:
                file.table(self.own(read))  # says where the text is that is no number
            raise
        schema = with_types(schema, {name: table.schema.field(name).type for name in names})
        return with_numbers(table, schema, decimal)

    def guessed(self, schema: pa.Schema) -> list[str]:
        """Columns of a schema that look like numbers, and may be texts below what was looked at."""
        read = with_texts(schema, self._of_known_types)
        return [f.name for f in schema if f.type != read.field(f.name).type]

    @property
    def _of_known_types(self) -> set[str]:
        return {*self.times, *self.floats, *self.source.csv.types}

    def check_columns(self, columns: list[str]) -> None:
        """As for all formats; one column may be several, with another separator."""
        names = self.stored.names
        if missing := {name for name in columns if name not in self.schema.names} - {FILENAME}:
            self._check_header(CsvFile(self, self.source.found.paths[0]), missing)
            if len(names) == 1:
                self._check_separator(names[0])
        super().check_columns(columns)

    def _check_header(self, file: CsvFile, names: set[str]) -> None:
        """Refuse a file that has lines above the header, which names these columns."""
        source, (lines, delimiter) = self.source, file.above_header(names)
        if not lines:
            return
        marks = {line[0] for line in lines if line.strip()}
        is_comment = len(marks) == 1 and marks.issubset(COMMENT_MARKS) and not source.csv.comment
        skipped = {"skip": str(source.csv.skip + len(lines))}
        settings = {"comment": marks.pop()} if is_comment else skipped
        if delimiter != source.csv.delimiter:
            settings["delimiter"] = _WORDS.get(delimiter, delimiter)
        what = several(len(lines), "line")
        raise DataError(
            f"{source.side}: {source.text} has {what} above its header, such as"
            f" {next(filter(str.strip, lines), '')[:_SHOWN]!r}. Use"
            f" {advice(source.side, source.csv, **settings)}."
        )

    def _check_separator(self, header: str) -> None:
        """Refuse a file whose names are separated, but not by its delimiter."""
        source, delimiter = self.source, self.source.csv.delimiter
        found = [mark for mark in _SEPARATORS if mark in header]
        if delimiter not in header and found:
            mark = _WORDS.get(found[0], found[0])
            raise DataError(
                f"{source.side}: {source.text} separates columns by {_SEPARATORS[found[0]]}, but"
                f" is read as separated by {_SEPARATORS.get(delimiter, repr(delimiter))}. Use"
                f" {advice(source.side, source.csv, delimiter=mark)}."
            )


@dataclass(frozen=True)
class CsvFile:
    """One file of an input."""

    given: ArrowInput
    file: str

    @property
    def path(self) -> str:
        """For messages."""
        return "standard input" if self.given.source.text == STANDARD_INPUT else self.file

    @property
    def place(self) -> str:
        """For messages: the side and the file."""
        return f"{self.given.source.side}: {self.path}"

    @property
    def rules(self) -> CsvRules:
        """How it is written."""
        return self.given.source.csv

    def open(self) -> pa.NativeFile:
        """Its bytes, with an end of the line where it is a header alone, or no row below names."""
        # PyArrow refuses both, as what a logger has written so far often is.
        files = self.given.source.found.filesystem
        with self._without_comments(files) as stream:
            begin = bytes(stream.read(_LINE_BYTES) or b"")
        text = begin.decode(self.rules.read_encoding, errors="replace")
        if len(begin) < _LINE_BYTES and _has_no_row(text, self.rules):
            return pa.BufferReader(f"{text}\n".encode(self.rules.read_encoding))
        return self._without_comments(files)

    def _without_comments(self, files: pa.fs.FileSystem) -> pa.NativeFile:
        stream, rules = files.open_input_stream(self.file, compression="detect"), self.rules
        if not rules.comment:
            return stream
        text = Uncommented(stream, rules.encoding, rules.comment, rules.quote)
        return pa.PythonFile(io.BufferedReader(text), mode="r")

    @contextmanager
    def _batches(
        self, convert: csv.ConvertOptions, block_size: int = _BLOCK_BYTES, **read: Any
    ) -> Iterator[csv.CSVStreamingReader]:
        with self.open() as stream:
            yield csv.open_csv(
                stream, read_options=self.rules.read_options(block_size=block_size, **read),
                parse_options=self.rules.parse_options(), convert_options=convert,
            )  # fmt: skip

    def names(self) -> list[str]:
        """The names of the columns."""
        if self.rules.names:
            return list(self.rules.names)
        with self._batches(self.rules.convert_options()) as batches:
            return list(batches.schema.names)

    def schema(self, nanoseconds: bool) -> pa.Schema:
        """Names and types of the columns, from the beginning; null where nothing is written."""
        told = self.rules.of_words(nanoseconds)
        if self.rules.time_format:
            zone = "UTC" if has_offset(self.rules.time_format) else None
            own = pa.timestamp("ns" if nanoseconds else "us", zone)
            told = {**dict.fromkeys(self.given.times, own), **told}
        convert = self.rules.convert_options(
            column_types=self._shown(pa.schema(list(told.items())))
        )
        with (
            self._located(convert, _FIRST_BLOCK_BYTES),
            self._batches(convert, _FIRST_BLOCK_BYTES) as batches,
        ):
            found = batches.schema
        fine = () if nanoseconds else self._finer_than_micros(found)
        kinds = [(f.name, _plain(f.type, nanoseconds or f.name in fine)) for f in found]
        return pa.schema([(name, told.get(name, kind)) for name, kind in kinds])

    def _finer_than_micros(self, schema: pa.Schema) -> list[str]:
        """Columns of times with more than six decimals at the beginning."""
        names = [f.name for f in schema if pa.types.is_timestamp(f.type) and f.type.unit == "ns"]
        names = [name for name in names if name not in self.rules.types]
        if not names:
            return []
        convert = self.rules.convert_options(
            include_columns=names, column_types=dict.fromkeys(names, pa.string())
        )
        with self._batches(convert, _FIRST_BLOCK_BYTES) as batches:
            batch = batches.read_next_batch()
        finer = {name: pc.match_substring_regex(batch.column(name), r"\.\d{7}") for name in names}
        return [name for name in names if pc.any(finer[name]).as_py()]

    def header(self) -> str:
        """The first line, or the beginning of it."""
        with self.open() as stream:
            begin = bytes(stream.read(_HEADER_BYTES) or b"")
        lines = begin.decode(self.rules.read_encoding, errors="replace").splitlines()
        return next(filter(str.strip, lines[self.rules.skip :]), "")

    def above_header(self, names: set[str]) -> tuple[list[str], str]:
        """The lines above a line with these names, if there are some, and the delimiter there."""
        with self.open() as stream:
            begin = bytes(stream.read(_HEADER_BYTES) or b"")
        lines = begin.decode(self.rules.read_encoding, errors="replace").splitlines()
        lines = lines[self.rules.skip : self.rules.skip + _MOST_ABOVE]
        for i, line in enumerate(lines if names and not self.rules.names else ()):
            for mark in dict.fromkeys([self.rules.delimiter, *_SEPARATORS]):
                cells = next(plain.reader([line], delimiter=mark, **self._marks), [])
                if names <= {*cells}:
                    return lines[:i] if any(map(str.strip, lines[:i])) else [], mark
        return [], self.rules.delimiter

    @property
    def _marks(self) -> dict[str, Any]:
        """How Python's reader knows quotes."""
        quote = self.rules.quote
        return {"quotechar": quote} if quote else {"quoting": plain.QUOTE_NONE}

    def table(self, schema: pa.Schema, counts: bool = True) -> pa.Table:
        """The columns of a schema; what is left out is counted."""
        try:
            table, left_out = self._read(schema, _BLOCK_BYTES)
        except DataError as error:
            if _TOO_LONG not in str(error.__cause__):
                raise
            table, left_out = self._read(schema, _FIRST_BLOCK_BYTES)
        if counts:
            self.given.source.skipped[self.path] = left_out
        return table

    def _read(self, schema: pa.Schema, block_bytes: int) -> tuple[pa.Table, int]:
        """The columns of a schema, and how many lines are left out."""
        lines: list[object] = []
        convert = self.rules.convert_options(
            include_columns=schema.names, column_types=self._shown(schema)
        )
        with self._located(convert, block_bytes), self.open() as stream:
            table = csv.read_csv(
                stream, read_options=self.rules.read_options(block_size=block_bytes),
                parse_options=self.rules.parse_options(lines.append), convert_options=convert,
            )  # fmt: skip
        found = self._with_times(self._with_decimals(table), schema)
        instants = as_instants(found, schema, self._line, self.rules.repeated_hour)
        return instants, len(lines) + len(table) - len(found)

    def _with_decimals(self, table: pa.Table) -> pa.Table:
        """What was read, with decimals for texts. Arrow's reader lets digits overflow."""
        for i, name in enumerate(table.column_names):
            if self._is_decimal(name):
                texts, kind = table.column(name), self.rules.types[name]
                point = re.escape(self.rules.decimal)
                plain = pc.utf8_trim(texts, BLANKS)
                plain = pc.replace_substring_regex(plain, rf"({point}\d*?)0+$", r"\1")
                digits = rf"0*\d{{0,{kind.precision - kind.scale}}}(?:{point}\d{{0,{kind.scale}}})?"
                fits = pc.match_substring_regex(plain, rf"^[+-]?{digits}$")
                fits = pc.and_(fits, pc.match_substring_regex(plain, r"\d"))
                if (row := pc.index(fits, False).as_py()) >= 0:
                    cure = self._cure_of_decimal(name, str(texts[row]), kind)
                    raise DataError(f"{self._line(row)}, column {name!r}: {cure}.")
                table = table.set_column(
                    i, name, pc.replace_substring(plain, self.rules.decimal, ".").cast(kind)
                )
        return table

    def _is_decimal(self, name: str) -> bool:
        return pa.types.is_decimal(self.rules.types.get(name, pa.null()))

    def _shown(self, schema: pa.Schema) -> pa.Schema:
        """A schema to read by: wall-clock times of clocks, and texts of times that are not read as such."""
        schema = as_shown(schema)
        texts = [f.name for f in schema if self._is_decimal(f.name)]
        return with_types(schema, dict.fromkeys([*texts, *self._texts(schema)], pa.string()))

    def _texts(self, schema: pa.Schema) -> list[str]:
        """The times that are read as texts."""
        if not (self.rules.time_format or self.rules.drops):
            return []
        others = (pa.int64(), pa.float64(), pa.string()) if self.rules.drops else ()
        return [
            f.name
            for f in schema
            if f.name in self.given.times and (pa.types.is_timestamp(f.type) or f.type in others)
        ]

    def _with_times(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        """What was read, with times for texts, and without the rows whose text is no time."""
        shown = as_shown(schema)
        wrong: pa.ChunkedArray | None = None
        for name in self._texts(schema):
            texts, kind = table.column(name), shown.field(name).type
            if pa.types.is_timestamp(kind):
                times = times_of(texts, kind, self.rules.time_format)
            else:
                times = self._numbers(texts, kind, name)
            lost = pc.and_(pc.is_valid(texts), pc.is_null(times))
            if (row := pc.index(lost, True).as_py()) >= 0:
                self._check_may_lose(texts, lost, name, kind, row)
                wrong = lost if wrong is None else pc.or_(wrong, lost)
            table = table.set_column(table.schema.get_field_index(name), name, times)
        return table if wrong is None else table.filter(pc.invert(wrong))

    def _numbers(self, texts: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
        """Texts as numbers; null where one is no number."""
        texts = numbers_among(texts, self.rules.decimal, may_be_infinite=kind != pa.int64())
        if kind == pa.string():
            return texts
        plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), self.rules.decimal, ".")
        try:
            return plain.cast(kind)
        except pa.ArrowInvalid:
            parts = plain.filter(pc.match_substring_regex(plain, r"[.eE]"))
            raise self._no_time(name, kind, str(parts[0]) if len(parts) else "") from None

    def _check_may_lose(
        self, texts: pa.ChunkedArray, lost: pa.ChunkedArray, name: str, kind: pa.DataType, row: int
    ) -> None:
        """Refuse texts that are no times, unless they may be left out, and would not be times otherwise."""
        form = self.rules.time_format
        if form and not self.rules.drops:
            text = repr(str(texts[row])[:_SHOWN])
            raise DataError(
                f"{self._line(row)}, column {name!r}: {text} is not a time of the format"
                f" {form!r}. Correct it, use --csv-null {text} if it means nothing, or use"
                f" {_DROPPING}."
            )
        lost_texts = texts.filter(lost)
        for zone in () if form else (None, "UTC"):
            others = times_of(lost_texts, pa.timestamp("ns", zone), "")
            if (at := pc.index(pc.is_valid(others), True).as_py()) >= 0:
                raise self._no_time(name, kind, str(lost_texts[at]))

    def _no_time(self, name: str, kind: pa.DataType, text: str) -> DataError:
        """What to do about a text that is a time, but none of the column's type."""
        why = ""
        try:
            pa.array([text]).cast(kind)
        except pa.ArrowInvalid as error:
            why = self._cure(name, str(kind), str(error))
        return DataError(f"{self.place}, column {name!r}: {why}.")

    def kind_of_texts(self, name: str, nanoseconds: bool) -> pa.DataType | None:
        """The type of a column of times or numbers that looks like text, if bad cells may be left out."""
        is_time = name in self.given.times
        row, text = self._first(name)
        unit = "ns" if nanoseconds else "us"
        stamps = (pa.timestamp(unit), pa.timestamp(unit, "UTC")) if is_time else ()
        kind = next((kind for kind in (pa.float64(), *stamps) if self._fits(text, kind)), None)
        if kind is not None:
            self.table(pa.schema([(name, kind)]), counts=False)
            return kind if self.rules.drops and is_time else None
        at = f"{self.place}, line {self._line_of(row):,}, column {name!r}: {text[:_SHOWN]!r}"
        if is_time and _COMMA.search(text):
            raise DataError(
                f"{at} has a comma before its fraction. Make it a point, for example by {_POINTS}"
            )
        what = (
            "time. Write ISO 8601, such as 2024-05-01T08:00:00Z, or numbers with --unit, or give"
            f" the format with {_FORMAT}"
            if is_time
            else "number. Name a column of numbers"
        )
        raise DataError(
            f"{at} is not a {what}. If it means nothing, use --csv-null"
            f" {text[:_SHOWN]!r}{self._dropping(name)}."
        )

    def _first(self, name: str) -> tuple[int, str]:
        """The first text of a column, and its row, the header and lines above it counted with the rows."""
        row = self.rules.skip + (not self.rules.names)
        convert = self.rules.convert_options(
            include_columns=[name], column_types={name: pa.string()}
        )
        with self._batches(convert) as batches:
            for batch in batches:
                texts = batch.column(0)
                if texts.null_count < len(texts):
                    plain = pc.replace_substring(texts, self.rules.decimal, ".")
                    at = max(first_that_tells(plain), 0)
                    return row + at + 1, str(texts[at])
                row += len(texts)
        return row, ""

    def _fits(self, text: str, kind: pa.DataType) -> bool:
        if pa.types.is_floating(kind):
            text = text.replace(self.rules.decimal, ".")
        try:
            pa.array([text.strip(BLANKS)]).cast(kind)
        except pa.ArrowInvalid:
            return False
        return True

    # What is wrong, and where

    @contextmanager
    def _located(self, convert: csv.ConvertOptions, block_bytes: int) -> Iterator[None]:
        """Turn what PyArrow says of a file into a `DataError` that names line and column."""
        try:
            yield
        except pa.ArrowInvalid as error:
            is_long = _TOO_LONG in str(error)
            words = self._too_long(block_bytes) if is_long else self._wrong(convert)
            if words is None:
                raise
            raise DataError(f"{self.place}, {words}.") from error

    def _wrong(self, convert: csv.ConvertOptions) -> str | None:
        """Where a file is wrong, and the cure; None if it is otherwise wrong."""
        try:
            with self._batches(convert, use_threads=False) as batches:
                for _ in batches:
                    pass
        except pa.ArrowInvalid as error:
            said = str(error)
        else:
            return None
        if found := _LINE.match(said):
            row, expected, got = map(int, found.groups())
            line = f"line {self._line_of(row):,}"
            if "\0" in said:
                return (
                    f"{line} holds NUL bytes, which a loss of power can leave. Cut it off, or"
                    f" skip such lines with {_DROPPING}"
                )
            wanted = (
                f"{expected} columns are named"
                if self.rules.names
                else f"the header has {expected}"
            )
            cells = f"{got} cell" if got == 1 else f"{got} cells"
            text = said[found.end() :].lstrip(": ")
            if text.startswith(COMMENT_MARKS) and not self.rules.comment:
                comment = advice(self.given.source.side, self.rules, comment=text[0])
                return (
                    f"{line} has {cells} where {wanted}. If it is a comment, use {comment}. Or"
                    f" correct it, or skip such lines with {_DROPPING}"
                )
            return (
                f"{line} has {cells} where {wanted}. Correct it, quote cells that hold the"
                " delimiter, use --csv-delimiter or --csv-quote, or skip such lines with"
                f" {_DROPPING}"
            )
        if found := _CELL.match(said):
            index, at, kind, why = found.groups()
            name = self.names()[int(index)]
            line = f"line {self._line_of(int(at)):,}"
            return f"{line}, column {name!r}: {self._cure(name, kind, why)}"
        return None

    def _cure_of_decimal(self, name: str, text: str, typed: pa.DataType) -> str:
        """What to do about a cell that is no decimal of its column."""
        shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
        return (
            f"{shown} is not a number of at most {typed.precision} digits, {typed.scale} of them after"
            f" the point. Correct it, use a wider decimal than --csv-type {name}={type_word(typed)}, or"
            f" --csv-null {text!r} if it means nothing"
        )

    def _cure(self, name: str, kind: str, why: str) -> str:
        if "UTF8" in why:
            return (
                "the text is not UTF-8. Give its encoding with --csv-encoding, such as latin-1 or"
                " cp1252"
            )
        text = found[1] if (found := _QUOTED.search(why)) else ""
        shown = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
        if "zone offset" in why:
            return self._cure_of_offset(name, text, shown, "expected no" not in why)
        if "timestamp[us" in kind and _FINE.search(text):
            return f"{shown} has more than six decimals of a second. Use --tick ns"
        is_fixed = name in (*self.given.times, *self.given.floats)
        is_text = "" if is_fixed else f", or --csv-type {name}=text if the column is text"
        is_time = name in self.given.times and "timestamp" in kind
        form = f", give the format of the column with {_FORMAT}" if is_time else ""
        return (
            f"{shown} is not {_kind(kind)}. Correct it{form}, or use --csv-null {text!r} if it means"
            f" nothing{self._dropping(name)}{is_text}"
        )

    def _cure_of_offset(self, name: str, text: str, shown: str, lacks: bool) -> str:
        """What to do about a time that has an offset or lacks one, unlike its column."""
        found, wanted = ("no zone offset", "one") if lacks else ("a zone offset", "none")
        typed = self.rules.types.get(name)
        if typed is None:
            kind = "timestamp_ntz where none has" if lacks else "timestamp where all have"
            return (
                f"{shown} has {found}, and other times here have {wanted}. Give all of them one, or"
                f" use --csv-type {name}={kind}"
            )
        said = f"--csv-type {name}={type_word(typed)}"
        if lacks:
            return (
                f"{shown} has {found}, and {said} is of times with one. Use {name}=timestamp_ntz, or"
                f" {name}=timestamp@ZONE if you know the zone, such as timestamp@Europe/Rome"
            )
        form = form_with_letter(text)
        letter = f", or --time-format {form!r} if the Z is wrong and means nothing" if form else ""
        return (
            f"{shown} has {found}, and {said} is of times without one. Use --csv-type"
            f" {name}=timestamp if the offset is right{letter}"
        )

    def _dropping(self, name: str) -> str:
        """That rows of bad times can be left out, where that was not said."""
        can = name in self.given.times and not self.rules.drops
        return f", or skip such rows with {_DROPPING}" if can else ""

    def _too_long(self, limit: int) -> str:
        """Where a line is longer than what is read at once."""
        with self._records() as reader:
            begun = 0
            for cells in reader:
                if sum(map(len, cells)) > limit:
                    break
                begun = reader.line_num
        return (
            f"line {self.rules.skip + begun + 1:,} is longer than {limit >> 20} MB, the longest"
            " that is read. Shorten it, or use --csv-quote none if it holds an unclosed quote"
        )

    def _line(self, row: int) -> str:
        """Where a row is, for messages."""
        above = self.rules.skip + (not self.rules.names)
        return f"{self.place}, line {self._line_of(above + row + 1):,}"

    def _line_of(self, row: int) -> int:
        """The line at which a row begins: quotes may hold line breaks, and empty lines are no rows."""
        skip = self.rules.skip
        with self._records() as reader:
            before = row - skip - 1
            next(islice(filter(None, reader), before - 1, before), None) if before else None
            begun = reader.line_num
            cells: list[str] = next(filter(None, reader), [])
            return skip + max(begun + 1, reader.line_num - "".join(cells).count("\n"))

    @contextmanager
    def _records(self) -> Iterator[Any]:
        """A reader of the lines below those that are skipped, which counts lines."""
        rules = self.rules
        plain.field_size_limit(1 << 30)
        with self.open() as stream, io.TextIOWrapper(
            io.BufferedReader(stream), encoding=rules.read_encoding, errors="replace", newline=""
        ) as text:  # fmt: skip
            for _ in range(rules.skip):
                text.readline()
            yield plain.reader(text, delimiter=rules.delimiter, **self._marks)


_CELL = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error to ([^:]+): (.*)", re.DOTALL
)
_LINE = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)", re.DOTALL)
_TOO_LONG = "straddles two block boundaries"
_QUOTED = re.compile(r"'(.*)'", re.DOTALL)
_FINE = re.compile(r":\d\d\.\d{7,9}\b")


def _kind(kind: str) -> str:
    names = {
        "int64": "a whole number", "double": "a number", "bool": "a boolean",
        "date32[day]": "a date",
    }  # fmt: skip
    fine = "" if "ns" in kind else " of at most six decimals"
    return names.get(kind, f"an ISO 8601 time{fine}, such as 2024-05-01T08:00:00Z")


def _has_no_row(text: str, rules: CsvRules) -> bool:
    """Whether no row follows the names, and the last line has no end."""
    lines = text.split("\n")[rules.skip :]
    if rules.names:
        return not any(lines)
    return bool(lines and lines[-1].strip()) and not any(map(str.strip, lines[:-1]))


def _plain(kind: pa.DataType, nanoseconds: bool) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if nanoseconds else "us", kind.tz)
    if kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null()):
        return kind
    return pa.string()


def check_said(rules: CsvRules, sources: Sequence[Source]) -> None:
    """Refuse options of CSV that meet no input."""
    files = [source for source in sources if source.format.is_text and not source.is_uri]
    if rules.said and not files:
        is_one = len(rules.said) == 1
        raise DataError(
            f"{' and '.join(rules.said)} {'has' if is_one else 'have'} no effect, as no input is"
            f" CSV. Remove {'it' if is_one else 'them'}, or use --format csv."
        )
    hours = any(source.csv.repeated_hour for source in files)
    if hours and not any(is_of_zone(kind) for s in files for kind in s.csv.types.values()):
        raise ConditionError(
            "--repeated-hour applies to times of clocks of a zone (found none). Name the zone with"
            " --csv-type COLUMN=timestamp@ZONE, or remove it."
        )
    found = {name for source in files for name in _names(source)} if rules.types else set()
    missing = [name for name in rules.types if name not in found]
    if missing:
        raise DataError(
            f"--csv-type {missing[0]}: no input has such a column (found"
            f" {', '.join(map(repr, sorted(found)))}). Name one of these."
        )


def check_own(side: str, own: CsvRules, source: Source | None) -> None:
    """Refuse CSV options of one side that is no CSV, or not there, or lacks a column."""
    if not own.said:
        return
    if source is None:
        raise ConditionError(
            f"--{side}-csv applies to {side.upper()}, but there is one stream. Remove it."
        )
    if not source.format.is_text:
        raise ConditionError(
            f"--{side}-csv has no effect, as {source.text} is {source.file_format}. Remove it."
        )
    has = _names(source)
    missing = [name for name in own.types if name not in has]
    if missing:
        raise ConditionError(
            f"--{side}-csv type={missing[0]}: {source.text} has no such column (found"
            f" {', '.join(map(repr, has))}). Name one of these."
        )


def _names(source: Source) -> list[str]:
    with reading(source):
        return CsvFile(Reader(source), source.found.paths[0]).names()
