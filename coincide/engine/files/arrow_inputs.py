"""Inputs as Arrow: their schemas, the needed columns as tables, and what is asked of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coincide.engine.events.keys import key_pairs
from coincide.engine.events.schemas import check_name, plain_type, with_types
from coincide.engine.events.time_columns import TimeColumn, resolve_tick
from coincide.engine.files.csv_files import CsvFile, check_separator
from coincide.engine.files.csv_times import (
    floats_of,
    read_as_texts,
    with_numbers,
    with_texts,
    with_times,
)
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
from coincide.engine.files.old_timestamps import (
    check_calendar,
    exact_instants,
    holds_dates,
    int96_columns,
    int96_times,
    with_instants,
)
from coincide.engine.files.source import Source, reading, source_of
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import ConditionError, DataError
from coincide.model.options import CorrelateOptions
from coincide.model.sides import SIDES
from coincide.model.units import Tick

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_IPC_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ArrowInput:
    """One input, read by PyArrow."""

    source: Source
    nanoseconds: bool = False
    times: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    rows: pa.Table | None = field(default=None, repr=False, compare=False)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns, as the first file tells them."""
        if self.rows is not None:
            return self.rows.schema
        with reading(self.source):
            if self.source.file_format == "parquet":
                if self.source.found.folder:  # the paths of its files may hold columns
                    return with_instants(self._dataset.schema, int96_columns(self._footers[0]))
                return _told(self._footers[0])
            return self._file_schema(self.source.found.paths[0])

    def check_columns(self, columns: list[str]) -> None:
        """Refuse columns that are missing or stand twice."""
        names = self.schema.names
        if self.source.file_format == "csv" and len(names) == 1 and set(columns) - {*names}:
            check_separator(self.source, names[0])
        for name in columns:
            if name != FILENAME or name in names:
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
            later = self._later_schemas()
            while pa.null() in schema.types and (found := next(later, None)) is not None:
                schema = _filled(schema, found)
        return schema

    def typed(self, columns: list[str], types: Mapping[str, pa.DataType]) -> pa.Schema:
        """As `told`, with types for the columns of which no file tells it; text without."""
        schema = self.told(columns)
        unknown = [field.name for field in schema if pa.types.is_null(field.type)]
        return with_types(schema, {name: types.get(name, pa.string()) for name in unknown})

    def table(self, columns: list[str], types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
        """The rows, with some of the columns."""
        if self.rows is not None:
            return self.rows.select(columns)
        schema = self.typed(columns, types or {})
        with reading(self.source):
            if self.source.file_format == "parquet":
                return self._parquet_table(schema)
            if self.source.file_format == "csv":
                return self._csv_table(schema)
            own = self.own(schema)
            return pa.concat_tables(
                self.named(self._ipc_table(file, own), file, schema)
                for file in self.source.found.paths
            )

    def own(self, schema: pa.Schema) -> pa.Schema:
        """What of a schema files hold."""
        return without_name(schema) if self.lacks_name(schema.names) else schema

    def named(self, table: pa.Table, file: str, schema: pa.Schema) -> pa.Table:
        """What was read of a file by `own`, with all columns."""
        return named(table, file, schema.names) if self.lacks_name(schema.names) else table

    @cached_property
    def file_schemas(self) -> list[tuple[str, pa.Schema]]:
        """Path and schema of each Parquet file, without the columns that stand in its path."""
        with reading(self.source):
            return list(zip(self.source.found.paths, map(_told, self._footers), strict=True))

    @cached_property
    def _footers(self) -> list[pq.FileMetaData]:
        """Of its Parquet files."""
        files = self.source.found
        footers = []
        for path in files.paths:
            with files.filesystem.open_input_file(path) as file:
                footers.append(pq.read_metadata(file))
        return footers

    @cached_property
    def _dataset(self) -> ds.Dataset:
        return self._dataset_of(None)

    def _dataset_of(self, schema: pa.Schema | None, int96_unit: str = "us") -> ds.Dataset:
        """Its Parquet files; INT96 of Spark covers years that nanoseconds cannot count."""
        import pyarrow.dataset as ds  # loads pandas where it is installed

        found = self.source.found
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit=int96_unit)
        # The paths of a folder's files may hold columns.
        return ds.dataset(
            found.folder or list(found.paths), schema=schema,
            format=ds.ParquetFileFormat(read_options=options),
            filesystem=found.filesystem, partitioning="hive" if found.folder else None,
        )  # fmt: skip

    def _later_schemas(self) -> Iterator[pa.Schema]:
        """Of the files after the first one."""
        if self.source.file_format == "parquet":
            yield from (schema for _, schema in self.file_schemas[1:])
        else:
            yield from map(self._file_schema, self.source.found.paths[1:])

    def _file_schema(self, file: str) -> pa.Schema:
        if self.source.file_format == "csv":
            return self._csv_schema(self.csv_file(file))
        with self.open_ipc(file) as reader:
            return reader.schema

    def open_ipc(self, file: str) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        """One of its files of Arrow IPC."""
        handle = self.source.found.filesystem.open_input_file(file)
        if handle.read(len(_IPC_FILE_MAGIC)) == _IPC_FILE_MAGIC:
            return pa.ipc.open_file(handle, options=None)
        handle.seek(0)
        return pa.ipc.open_stream(handle)

    def _parquet_table(self, schema: pa.Schema) -> pa.Table:
        schema = self._with_widest_floats(schema)
        names, own = schema.names, self._dataset.schema
        stored = self.own(schema)
        as_told = all(own.field(field.name).type == field.type for field in stored)
        dataset = self._dataset if as_told else self._dataset_of(stored)
        if self.lacks_name(names):
            table = dataset.to_table(columns=[*stored.names, "__filename"])
            of_file = pc.replace_substring_regex(table["__filename"], "^.*/", "")
            table = table.append_column(FILENAME, of_file).select(names)
        else:
            table = dataset.to_table(columns=names)
        if not any(holds_dates(kind) for kind in schema.types):
            return table
        check_calendar(self.source.side, table, self._footers)
        old = int96_times(table.schema, self._footers)
        if not old:
            return table
        fine = self._dataset_of(None, "ns").to_table(columns=old)
        return exact_instants(self.source.side, table, fine)

    def _with_widest_floats(self, schema: pa.Schema) -> pa.Schema:
        """As files with more digits have them, which a cast to fewer would lose in silence."""
        narrow = [f.name for f in schema if f.type in (pa.float16(), pa.float32())]
        schemas = [found for _, found in self.file_schemas] if narrow else []
        kinds = {
            name: [found.field(name).type for found in schemas if name in found.names]
            for name in narrow
        }
        widest = {
            name: max(filter(pa.types.is_floating, found), key=lambda kind: kind.bit_width)
            for name, found in kinds.items()
            if found
        }
        return with_types(schema, widest)

    def csv_file(self, file: str) -> CsvFile:
        """One of its files."""
        fixed = (*self.times, *self.floats)
        return CsvFile.of(self.source, file, fixed, self.times)

    def _csv_schema(self, file: CsvFile) -> pa.Schema:
        try:
            schema = file.schema(self.nanoseconds)
        except (pa.ArrowInvalid, DataError):
            check_separator(self.source, file.header())
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
                kind = file.kind_of_texts(name, self.nanoseconds)
                changed |= {} if kind is None else {name: kind}
        return with_types(schema, changed)

    def _csv_table(self, schema: pa.Schema) -> pa.Table:
        read = with_texts(schema, self.as_told)
        files = [self.csv_file(file) for file in self.source.found.paths]
        own = self.own(read_as_texts(read, self.decimals))
        tables = [self.named(file.table(own), file.path, read) for file in files]
        names, decimal = floats_of(read, self.decimals), self.source.csv.decimal
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
        if self.source.file_format != "csv" or self.rows is not None:
            return []
        read = with_texts(schema, self.as_told)
        return [f.name for f in schema if f.type != read.field(f.name).type]

    @property
    def decimals(self) -> set[str]:
        """Time columns of CSV whose numbers are read as decimals."""
        return {*self.times} - {*self.source.csv.types}

    @property
    def as_told(self) -> set[str]:
        """Columns of CSV whose types are known, however their numbers are written."""
        return {*self.times, *self.floats, *self.source.csv.types}

    def _ipc_table(self, file: str, schema: pa.Schema) -> pa.Table:
        with self.open_ipc(file) as reader:
            table = reader.read_all().select(schema.names)
        unknown = [field.name for field in table.schema if pa.types.is_null(field.type)]
        return table.cast(
            with_types(table.schema, {name: schema.field(name).type for name in unknown})
        )


def _told(footer: pq.FileMetaData) -> pa.Schema:
    """The columns of a Parquet file."""
    return with_instants(footer.schema.to_arrow_schema(), int96_columns(footer))


def _filled(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """A schema, what it does not know taken from another one."""
    unknown = {field.name for field in schema if pa.types.is_null(field.type)}
    return with_types(schema, {f.name: f.type for f in other if f.name in unknown})


def input_of(side: str, given: Given, numbers: Sequence[str] = ()) -> ArrowInput:
    """The input that files of any format are; `numbers` name times."""
    words = words_of(given)
    return ArrowInput(source_of(", ".join(words), find_files(side, words)), times=tuple(numbers))


class Asked:
    """What it takes to read two inputs as a join needs them; requests of the command line are such."""

    arguments: PairArguments
    """Of the join."""
    engine: str
    """``"spark"`` where Spark alone may know the inputs."""

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""
        return self.arguments.columns

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The columns that must be equal, of both sides."""
        return key_pairs(self.arguments.by)

    @property
    def clocks(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of the earlier and the later time, of both sides."""
        return self.arguments.clocks

    @property
    def options(self) -> CorrelateOptions:
        """How times are counted, and more."""
        return self.arguments.options

    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which durations cannot be counted."""
        self.arguments.check_tick(tick)


Types = dict[str, pa.DataType]


def types_of_unknown(request: Asked, inputs: Sequence[ArrowInput]) -> tuple[Types, Types]:
    """Types for what the files do not tell; of inputs that only Spark can open nothing is known."""
    left, right = (
        pa.schema([]) if request.engine == "spark" and given.source.is_uri else given.told(columns)
        for given, columns in zip(inputs, request.columns, strict=True)
    )
    return unknown_types(request, (left, right))


def unknown_types(request: Asked, schemas: tuple[pa.Schema, pa.Schema]) -> tuple[Types, Types]:
    """Types for the time columns and keys of both sides of which no file tells the type.

    A time is what the other times are; a key is what it is on the other side.
    """
    times = request.clocks
    known = [_known_times(schema, names) for schema, names in zip(schemas, times, strict=True)]
    found: tuple[Types, Types] = {}, {}
    for i, schema in enumerate(schemas):
        for name in times[i]:
            if _is_unknown(schema, name):
                found[i][name] = next(iter(known[i] + known[1 - i]), _time_of_nothing(request))
    for names in request.keys:
        for i, schema in enumerate(schemas):
            if _is_unknown(schema, names[i]) and names[i] not in found[i]:
                found[i][names[i]] = _other_key(schemas[1 - i], found[1 - i], names[1 - i])
    return found


def _is_unknown(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_null(schema.field(name).type)


def _known_times(schema: pa.Schema, names: tuple[str, str]) -> list[pa.DataType]:
    return [kind for kind in _kinds(schema, names) if _is_time(kind)]


def _kinds(schema: pa.Schema, names: tuple[str, str]) -> Iterator[pa.DataType]:
    return (plain_type(schema.field(name).type) for name in names if name in schema.names)


def _is_time(kind: pa.DataType) -> bool:
    types = pa.types
    is_temporal = types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind)
    return is_temporal or types.is_integer(kind) or types.is_floating(kind)


def _time_of_nothing(request: Asked) -> pa.DataType:
    """Integers, unless the durations need to know how long a tick is."""
    try:
        columns = [TimeColumn(side, "", "integer") for side in SIDES]
        request.check_tick(resolve_tick(columns, request.options))
    except ConditionError:
        return pa.timestamp("us")
    return pa.int64()


def _other_key(schema: pa.Schema, found: Types, name: str) -> pa.DataType:
    if name in found:
        return found[name]
    if name not in schema.names or _is_unknown(schema, name):
        return pa.string()
    return plain_type(schema.field(name).type)
