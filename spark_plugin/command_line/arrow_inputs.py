"""Inputs as Arrow: their schemas, and the needed columns as tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from spark_plugin.command_line.csv_files import csv_schema, csv_table
from spark_plugin.command_line.inputs import Source, reading
from spark_plugin.command_line.problems import Problem
from spark_plugin.tables import check_name

_IPC_FILE_MAGIC = b"ARROW1"


@dataclass(frozen=True)
class ArrowInput:
    """One input, read by PyArrow.

    Parameters
    ----------
    source : Source
    nanoseconds : bool
        Times are counted in nanoseconds (only CSV asks).
    """

    source: Source
    nanoseconds: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns.

        Raises
        ------
        Problem
            If the input cannot be read.
        """
        with reading(self.source):
            if self.source.file_format == "parquet":
                return self._dataset.schema
            if self.source.file_format == "csv":
                with self._open(self._files[0]) as stream:
                    return csv_schema(stream, self.nanoseconds)
            with self._open_ipc(self._files[0]) as reader:
                return reader.schema

    def check_columns(self, columns: list[str]) -> None:
        """Refuse columns that are missing or stand twice.

        Raises
        ------
        SchemaError
        """
        for name in columns:
            check_name(self.source.side, name, self.schema.names)

    def table(self, columns: list[str]) -> pa.Table:
        """The rows, with some of the columns.

        Raises
        ------
        Problem
            If the input cannot be read.
        SchemaError
            If a column is missing.
        """
        self.check_columns(columns)
        with reading(self.source):
            if self.source.file_format == "parquet":
                return self._dataset.to_table(columns=columns)
            one = self._csv_table if self.source.file_format == "csv" else self._ipc_table
            tables = [one(file, columns) for file in self._files]
            return pa.concat_tables(tables)

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, list[str]]:
        if not self.source.is_uri:
            return fs.LocalFileSystem(), self.source.paths
        if "*" in self.source.text:
            raise Problem(
                f"{self.source.side}: a glob needs a path on this machine, or --engine spark"
            )
        filesystem, path = fs.FileSystem.from_uri(self.source.text)
        return filesystem, [path]

    @cached_property
    def _files(self) -> list[str]:
        if self.source.files:
            return list(self.source.files)
        filesystem, (path,) = self._place
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(f"{self.source.text} does not exist")
        if info.is_file:
            return [path]
        found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        files = sorted(
            f.path for f in found if f.is_file and not f.base_name.startswith(("_", "."))
        )
        if not files:
            raise FileNotFoundError(f"{self.source.text} holds no files")
        return files

    @cached_property
    def _dataset(self) -> ds.Dataset:
        filesystem, paths = self._place
        if len(paths) > 1:
            return ds.dataset(paths, filesystem=filesystem, format="parquet")
        partitioning = "hive" if self.source.is_uri or self.source.folder else None
        return ds.dataset(
            paths[0], filesystem=filesystem, format="parquet", partitioning=partitioning
        )

    def _open(self, file: str) -> pa.NativeFile:
        return self._place[0].open_input_stream(file, compression="detect")

    def _open_ipc(self, file: str) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        handle = self._place[0].open_input_file(file)
        if handle.read(len(_IPC_FILE_MAGIC)) == _IPC_FILE_MAGIC:
            return pa.ipc.open_file(handle, options=None)
        handle.seek(0)
        return pa.ipc.open_stream(handle)

    def _csv_table(self, file: str, columns: list[str]) -> pa.Table:
        with self._open(file) as stream:
            return csv_table(stream, self.schema, columns)

    def _ipc_table(self, file: str, columns: list[str]) -> pa.Table:
        with self._open_ipc(file) as reader:
            return reader.read_all().select(columns)


def with_like_keys(left: pa.Table, right: pa.Table, by: list[str]) -> tuple[pa.Table, pa.Table]:
    """Both tables, text keys of one type: writers differ in how they store strings, not in what.

    Parameters
    ----------
    left, right : pa.Table
    by : list of str
    """
    for name in by:
        kinds = [table.schema.field(name).type for table in (left, right)]
        if kinds[0] != kinds[1] and all(_is_text(kind) for kind in kinds):
            left, right = (_cast(table, name, pa.large_string()) for table in (left, right))
    return left, right


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


def _cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    index = table.schema.get_field_index(name)
    column = table.column(index)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return table.set_column(index, pa.field(name, kind), column.cast(kind))
