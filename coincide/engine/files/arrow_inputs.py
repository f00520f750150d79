"""Inputs as Arrow: their schemas, and the needed columns as tables. Each format has a reader of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import pyarrow as pa

from coincide.engine.events.row_numbers import ID, with_number, with_row_numbers
from coincide.engine.events.schemas import check_name, with_types
from coincide.engine.files.common_schema import check_files
from coincide.engine.files.csv_rules import CsvRules
from coincide.engine.files.finding import (
    FILENAME,
    Given,
    find_files,
    lacks_name,
    named,
    with_name,
    without_name,
    words_of,
)
from coincide.engine.files.source import Source, path_columns, reading, source_of
from coincide.model.remembered import remembered


def arrow_input(
    source: Source,
    nanoseconds: bool = False,
    times: tuple[str, ...] = (),
    floats: tuple[str, ...] = (),
    *,
    numbered: bool = False,
) -> ArrowInput:
    """The reader of an input; `times` and `floats` are what columns of texts shall be.

    `numbered`: without a column of ids, the numbers of rows are these.
    """
    reader: type[ArrowInput] = import_module(source.format.module, __package__).Reader
    return reader(source, nanoseconds, times, floats, numbered)


def input_of(
    side: str,
    given: Given,
    times: Sequence[str] = (),
    floats: Sequence[str] = (),
    *,
    drops: bool = False,
) -> ArrowInput:
    """The input that files of any format are."""
    words = words_of(given)
    source = source_of(", ".join(words), find_files(side, words), csv=CsvRules(drops=drops))
    return arrow_input(source, times=tuple(times), floats=tuple(floats))


@dataclass(frozen=True)
class ArrowInput(ABC):
    """One input. A format is a module with such a class, called ``Reader``, and a line in `FORMATS`.

    A reader has `file_schema` and `whole_table`; further methods are for formats that know more.
    """

    source: Source
    nanoseconds: bool = False
    times: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    numbered: bool = False

    @abstractmethod
    def file_schema(self, file: str) -> pa.Schema:
        """Names and types of all columns of a file; null where it does not tell the type."""

    @abstractmethod
    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema, of all files, in these types, or those of the files."""

    @remembered
    def schema(self) -> pa.Schema:
        """Names and types of all columns, as the first file tells them."""
        return with_number(self.stored) if self.numbered else self.stored

    @remembered
    def stored(self) -> pa.Schema:
        """Those that files have."""
        with reading(self.source):
            return self.first_schema()

    def makes_ids(self, columns: Collection[str]) -> bool:
        """Whether ids are asked for, and are numbers of rows."""
        return self.numbered and ID in columns and ID not in self.stored.names

    def first_schema(self) -> pa.Schema:
        """As `schema`."""
        return self.file_schema(self.source.found.paths[0])

    def later_schemas(self) -> Iterator[pa.Schema]:
        """The schemas of the files after the first one."""
        return map(self.file_schema, self.source.found.paths[1:])

    @property
    def file_schemas(self) -> list[tuple[str, pa.Schema]]:
        """Path and schema of each file, where files tell it; else none."""
        return []

    def in_time_order(self, time: str, schema: pa.Schema) -> Iterator[pa.Table] | None:
        """The rows, part by part, each later than the one before; None where nothing tells that."""
        del time, schema
        return None

    def guessed(self, schema: pa.Schema) -> list[str]:
        """Columns of a schema that look like numbers, and may be texts below what was looked at."""
        del schema
        return []

    def check_columns(self, columns: list[str]) -> None:
        """Refuse columns that are missing, are there twice, or mean something else in another file."""
        if len(self.source.found.paths) > 1:
            of_files = set(columns) - path_columns(self.source)
            if self.lacks_name(columns):
                of_files.remove(FILENAME)
            check_files(self.source.side, self.file_schemas, of_files, of_files & set(self.times))
        names, made = self.stored.names, self.makes_ids(columns)
        for name in columns:
            if (name != FILENAME or name in names) and not (made and name == ID):
                check_name(self.source.side, name, names)

    def lacks_name(self, columns: Collection[str]) -> bool:
        """Whether the name of the file is asked for, which files do not hold."""
        return lacks_name(columns, self.schema.names)

    def told(self, columns: list[str]) -> pa.Schema:
        """Names and types of some columns; null where no file tells the type."""
        self.check_columns(columns)
        own = with_name(self.schema) if self.lacks_name(columns) else self.schema
        schema = pa.schema([own.field(name) for name in columns])
        with reading(self.source):
            later = self.later_schemas()
            while pa.null() in schema.types and (found := next(later, None)) is not None:
                unknown = {field.name for field in schema if pa.types.is_null(field.type)}
                schema = with_types(schema, {f.name: f.type for f in found if f.name in unknown})
        return schema

    def typed(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Schema:
        """As `told`, with types for the columns of which no file tells it; text without."""
        schema = self.told(columns)
        unknown = [field.name for field in schema if pa.types.is_null(field.type)]
        return with_types(schema, {name: types.get(name, pa.string()) for name in unknown})

    def table(self, columns: list[str], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
        """The rows, with some of the columns."""
        schema = self.typed(columns, types or {})
        made = self.makes_ids(columns)
        stored = pa.schema([f for f in schema if f.name != ID]) if made else schema
        with reading(self.source):
            table = self.whole_table(stored)
        return with_row_numbers(table, ()).select(columns) if made else table

    def own(self, schema: pa.Schema) -> pa.Schema:
        """What of a schema files hold."""
        return without_name(schema) if self.lacks_name(schema.names) else schema

    def named(self, table: pa.Table, file: str, schema: pa.Schema) -> pa.Table:
        """What was read of a file by `own`, with all columns."""
        return named(table, file, schema.names) if self.lacks_name(schema.names) else table
