"""How CSV is read: one set of rules for both engines, and a dialect for each side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from coincide.engine.events.schemas import with_types
from coincide.engine.files.csv_errors import (
    dropping,
    is_too_long,
    line_of,
    located,
    time_cure,
    with_a_line,
)
from coincide.engine.files.csv_rules import CsvRules, csv_rules
from coincide.engine.files.csv_times import (
    BLANKS,
    as_instants,
    as_shown,
    first_that_tells,
    has_offset,
    numbers_among,
    times_of,
)
from coincide.engine.files.source import STANDARD_INPUT, Source, reading
from coincide.model.errors import ConditionError, DataError

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_BLOCK_BYTES = 1 << 20
"""PyArrow's own measure of what is read at once; a line may be that long, and is tried with more then."""
_HEADER_BYTES = 1 << 16
_FIRST_BLOCK_BYTES = 16 << 20
"""The types of the columns come from this much of the first file, but numbers may turn out to be text."""
_SHOWN = 40
_COMMA = re.compile(r"\d:\d\d(:\d\d)?,\d+")
_POINTS = r"sed -E 's/(:[0-9]{2}),([0-9]+)/\1.\2/g' in.csv > out.csv"


@dataclass
class _Lost:
    """What a file has that is left out: lines of more or fewer cells, and rows whose time is none."""

    lines: list[object] = field(default_factory=list)
    rows: int = 0

    @property
    def count(self) -> int:
        return len(self.lines) + self.rows


@dataclass(frozen=True)
class CsvFile:
    """One file."""

    side: str
    path: str
    open: Callable[[], pa.NativeFile]
    rules: CsvRules
    fixed: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        source: Source,
        path: str,
        fixed: tuple[str, ...] = (),
        times: tuple[str, ...] = (),
    ) -> CsvFile:
        """One file of an input."""
        raw = partial(source.found.filesystem.open_input_stream, path, compression="detect")
        opened = partial(with_a_line, raw, source.csv)
        shown = "standard input" if source.text == STANDARD_INPUT else path
        return cls(source.side, shown, opened, source.csv, fixed, times, source.skipped)

    def names(self) -> list[str]:
        """Of the columns."""
        if self.rules.names:
            return list(self.rules.names)
        with self.open() as stream:
            reader = csv.open_csv(
                stream, read_options=self.rules.read_options(),
                parse_options=self.rules.parse_options(),
                convert_options=self.rules.convert_options(),
            )  # fmt: skip
            return list(reader.schema.names)

    def schema(self, nanoseconds: bool) -> pa.Schema:
        """Names and types of the columns, from the beginning; null where nothing stands."""
        told = self.rules.of_words(nanoseconds)
        if self.rules.time_format:
            zone = "UTC" if has_offset(self.rules.time_format) else None
            own = pa.timestamp("ns" if nanoseconds else "us", zone)
            told = {**dict.fromkeys(self.times, own), **told}
        said = self._shown(pa.schema(list(told.items())))
        convert = self.rules.convert_options(column_types=said)
        with located(self, convert, _FIRST_BLOCK_BYTES), self.open() as stream:
            reader = csv.open_csv(
                stream,
                read_options=self.rules.read_options(block_size=_FIRST_BLOCK_BYTES),
                parse_options=self.rules.parse_options(),
                convert_options=convert,
            )
            found = reader.schema
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
        with self.open() as stream:
            reader = csv.open_csv(
                stream,
                read_options=self.rules.read_options(block_size=_FIRST_BLOCK_BYTES),
                parse_options=self.rules.parse_options(),
                convert_options=convert,
            )
            batch = reader.read_next_batch()
        return [
            name
            for name in names
            if pc.any(pc.match_substring_regex(batch.column(name), r"\.\d{7}")).as_py()
        ]

    def header(self) -> str:
        """The first line, or the beginning of it."""
        with self.open() as stream:
            begin = bytes(stream.read(_HEADER_BYTES) or b"")
        lines = begin.decode(self.rules.encoding, errors="replace").splitlines()[self.rules.skip :]
        return next(iter(lines), "")

    def table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema."""
        try:
            return self._read(schema, _BLOCK_BYTES)
        except DataError as error:
            if not is_too_long(error):
                raise
        return self._read(schema, _FIRST_BLOCK_BYTES)

    def _read(self, schema: pa.Schema, block_bytes: int) -> pa.Table:
        convert, lost = self._typed(schema), _Lost()
        with located(self, convert, block_bytes), self.open() as stream:
            table = csv.read_csv(
                stream,
                read_options=self.rules.read_options(block_size=block_bytes),
                parse_options=self.rules.parse_options(lost.lines.append),
                convert_options=convert,
            )
        found = self._with_times(table, schema, lost)
        self.skipped[self.path] = lost.count
        return found

    def _shown(self, schema: pa.Schema) -> pa.Schema:
        """A schema to read by: wall-clock times of clocks, and texts of times that are not read as such."""
        schema = as_shown(schema)
        return with_types(schema, dict.fromkeys(self._texts(schema), pa.string()))

    def _texts(self, schema: pa.Schema) -> list[str]:
        """The times that are read as texts."""
        if not (self.rules.time_format or self.rules.drops):
            return []
        others = (pa.int64(), pa.float64(), pa.string()) if self.rules.drops else ()
        return [
            f.name
            for f in schema
            if f.name in self.times and (pa.types.is_timestamp(f.type) or f.type in others)
        ]

    def _with_times(self, table: pa.Table, schema: pa.Schema, gone: _Lost) -> pa.Table:
        """What was read, with times for texts, and without the rows whose text is none."""
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
        if wrong is not None:
            kept = table.filter(pc.invert(wrong))
            gone.rows += len(table) - len(kept)
            table = kept
        return as_instants(table, schema, self._place)

    def _numbers(self, texts: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
        """Texts as numbers; null where one is none."""
        texts = numbers_among(texts, self.rules.decimal, may_be_infinite=kind != pa.int64())
        if kind == pa.string():
            return texts
        plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), self.rules.decimal, ".")
        try:
            return plain.cast(kind)
        except pa.ArrowInvalid:
            parts = plain.filter(pc.match_substring_regex(plain, r"[.eE]"))
            why = time_cure(self, name, kind, str(parts[0]) if len(parts) else "")
            raise DataError(f"{self.side}: {self.path}, column {name!r}: {why}") from None

    def _check_may_lose(
        self,
        texts: pa.ChunkedArray,
        lost: pa.ChunkedArray,
        name: str,
        kind: pa.DataType,
        row: int,
    ) -> None:
        """Refuse texts that are no times, unless they may be left out, and would not be times otherwise."""
        form = self.rules.time_format
        if form and not self.rules.drops:
            text = repr(str(texts[row])[:_SHOWN])
            raise DataError(
                f"{self._place(row)}, column {name!r}: {text} is no time of the format {form!r}; mend it,"
                f" or say --csv-null {text} if it stands for nothing, or --invalid drop"
            )
        lost_texts = texts.filter(lost)
        for zone in () if form else (None, "UTC"):
            others = times_of(lost_texts, pa.timestamp("ns", zone), "")
            if (at := pc.index(pc.is_valid(others), True).as_py()) >= 0:
                why = time_cure(self, name, kind, str(lost_texts[at]))
                raise DataError(f"{self.side}: {self.path}, column {name!r}: {why}")

    def _place(self, row: int) -> str:
        """Where a row is, for messages."""
        above = self.rules.skip + (not self.rules.names)
        return f"{self.side}: {self.path}, line {line_of(self, above + row + 1):,}"

    def _typed(self, schema: pa.Schema) -> csv.ConvertOptions:
        return self.rules.convert_options(
            include_columns=schema.names, column_types=self._shown(schema)
        )

    def kind_of_texts(self, name: str, nanoseconds: bool) -> pa.DataType | None:
        """The type of a column of times or numbers that looks like text, if bad cells may be left out."""
        is_time = name in self.times
        row, text = self._first(name)
        unit = "ns" if nanoseconds else "us"
        kinds = [
            pa.float64(),
            *((pa.timestamp(unit), pa.timestamp(unit, "UTC")) if is_time else ()),
        ]
        kind = next((kind for kind in kinds if self._fits(text, kind)), None)
        if kind is not None:
            replace(self, skipped={}).table(pa.schema([(name, kind)]))
            return kind if self.rules.drops and is_time else None
        if is_time and _COMMA.search(text):
            raise DataError(
                f"{self.side}: {self.path}, line {line_of(self, row):,}, column {name!r}:"
                f" {text[:_SHOWN]!r} has a comma before its fraction; make it a point, such as by {_POINTS}"
            )
        what = (
            "time; write ISO 8601, such as 2024-05-01T08:00:00Z, or numbers and --unit, or say how times"
            " are written by --time-format, such as '%d/%m/%Y %H:%M:%S'"
            if is_time
            else "number; name a column of numbers"
        )
        shown = repr(text[:_SHOWN])
        raise DataError(
            f"{self.side}: {self.path}, line {line_of(self, row):,}, column {name!r}: {shown} is no {what};"
            f" say --csv-null {shown} if it stands for nothing"
            f"{dropping(self, name)}"
        )

    def _first(self, name: str) -> tuple[int, str]:
        """The first text of a column, and its row, the header and lines above it counted with the rows."""
        row = self.rules.skip + (not self.rules.names)
        convert = self.rules.convert_options(
            include_columns=[name], column_types={name: pa.string()}
        )
        with self.open() as stream:
            reader = csv.open_csv(
                stream, read_options=self.rules.read_options(),
                parse_options=self.rules.parse_options(), convert_options=convert,
            )  # fmt: skip
            for batch in reader:
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


def check_separator(source: Source, header: str) -> None:
    """Refuse a file whose names are separated, but not by its delimiter."""
    delimiter = source.csv.delimiter
    found = [mark for mark in _SEPARATORS if mark in header]
    if delimiter not in header and found:
        mark = "tab" if found[0] == "\t" else repr(found[0])
        raise DataError(
            f"{source.side}: the columns of {source.text} are separated by {_SEPARATORS[found[0]]}, and are"
            f" read as by {_SEPARATORS.get(delimiter, repr(delimiter))}; say --csv-delimiter {mark}"
        )


def check_said(rules: CsvRules, sources: Sequence[Source]) -> None:
    """Refuse what is said of CSV and is of no input."""
    files = [source for source in sources if source.file_format == "csv" and not source.is_uri]
    if rules.said and not files:
        is_one = len(rules.said) == 1
        raise DataError(
            f"{' and '.join(rules.said)} {'means' if is_one else 'mean'} nothing, as no input is CSV;"
            f" leave {'it' if is_one else 'them'} out, or say --format csv"
        )
    if not rules.types:
        return
    found = set()
    for source in files:
        with reading(source):
            found.update(CsvFile.of(source, source.found.paths[0]).names())
    missing = [name for name in rules.types if name not in found]
    if missing:
        raise DataError(
            f"--csv-type {missing[0]}: no input has such a column; they have"
            f" {', '.join(map(repr, sorted(found)))}"
        )


def _plain(kind: pa.DataType, nanoseconds: bool) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if nanoseconds else "us", kind.tz)
    if kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null()):
        return kind
    return pa.string()


_SINGLE = ("delimiter", "quote", "decimal", "skip", "encoding", "time_format")
_LISTS = ("null", "type", "names")


def side_rules(words: Mapping[str, Any], side: str) -> tuple[CsvRules, CsvRules]:
    """The rules of one side, and what of them is said of this side alone."""
    option = f"--{side}-csv"
    own = _parts(option, words.get(f"{side}_csv"))
    try:
        return csv_rules({**words, **own}), csv_rules(own, is_all=False)
    except ConditionError as error:
        if not own:
            raise
        raise ConditionError(f"{option}: {error}") from None


def check_own(side: str, own: CsvRules, source: Source | None) -> None:
    """Refuse what is said of the CSV of one side, which is none, or not there, or lacks a column."""
    if not own.said:
        return
    if source is None:
        raise ConditionError(
            f"--{side}-csv is of {side.upper()}, and there is one stream; leave it out"
        )
    if source.file_format != "csv":
        raise ConditionError(
            f"--{side}-csv means nothing, as {source.text} is {source.file_format}; leave it out"
        )
    with reading(source):
        has = CsvFile.of(source, source.found.paths[0]).names()
    missing = [name for name in own.types if name not in has]
    if missing:
        raise ConditionError(
            f"--{side}-csv type={missing[0]}: {source.text} has no such column; it has"
            f" {', '.join(map(repr, has))}"
        )


def _parts(option: str, text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in _pairs(option, text or ""):
        name = word.replace("-", "_")
        if name in _LISTS:
            found.setdefault(f"csv_{name}", []).append(value)
        elif name in _SINGLE:
            found[f"csv_{name}"] = _number(option, value) if name == "skip" else value
        else:
            known = ", ".join(sorted((*_SINGLE, *_LISTS))).replace("_", "-")
            raise ConditionError(f"{option}: {word!r} is none of {known}")
    return found


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConditionError(f"{option}: {error} in {text!r}; quote it twice") from None
    parts = [word.partition("=") for word in words]
    for word, (name, sign, value) in zip(words, parts, strict=True):
        if not (name and sign and value):
            raise ConditionError(
                f"{option} takes NAME=VALUE, such as 'delimiter=; null=NA'; found {word!r}"
            )
    return [(name, value) for name, _, value in parts]


def _number(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConditionError(f"{option}: skip takes a number of lines; found {text!r}") from None
