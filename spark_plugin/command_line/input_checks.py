"""What an engine would misread without a word, found before it reads."""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from spark_plugin.command_line.problems import Problem
from spark_plugin.ways.files.columns import check_present
from spark_plugin.worker.files.finding import HIDDEN
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.source import Source, path_keys


def check_for_spark(given: ArrowInput, columns: list[str]) -> None:
    """Refuse an input of which Spark would lose rows or change times, or that lacks a column.

    Raises
    ------
    Problem, SchemaError
    """
    source = given.source
    if source.is_uri:
        if source.file_format != "parquet":
            raise Problem(
                f"{source.side}: Spark reads {source.file_format} from this machine only; copy"
                f" {source.text} here, or make it Parquet"
            )
        return
    check_complete(given, columns)
    given.check_columns(columns)
    if source.file_format == "parquet":
        _check_visible(source)
        _check_subfolders(source)
        check_zones(given, columns)
        # Spark judges all files by one, and reads nanoseconds and columns of no type as integers.
        for aspect in (_unit, pa.types.is_null):
            _check_alike(given, columns, aspect, "use --engine local, or rewrite one of them")


def check_complete(given: ArrowInput, columns: list[str]) -> None:
    """Refuse Parquet of which some files lack a column; readers would fill it with nulls.

    Raises
    ------
    MissingColumn
    """
    if given.source.file_format == "parquet":
        own = path_columns(given.source)
        names = [name for name in columns if name not in own]
        check_present(given.source.side, given.file_schemas, names)


def check_zones(given: ArrowInput, columns: list[str]) -> None:
    """Refuse Parquet whose files differ in whether the times of a column have a zone.

    Raises
    ------
    Problem
    """
    if given.source.file_format == "parquet" and not given.source.is_uri:
        advice = "instants are no wall-clock times; rewrite one of them"
        _check_alike(given, columns, _zone, advice)


def has_plain_subfolders(source: Source) -> bool:
    """Whether a folder's files lie in subfolders whose names hold no columns."""
    return any("" in keys for keys in path_keys(source).values())


def path_columns(source: Source) -> set[str]:
    """The columns that stand in the paths of a folder's files."""
    return {key for keys in path_keys(source).values() for key in keys if key}


def _check_visible(source: Source) -> None:
    hidden = [file for file in source.found.paths if os.path.basename(file).startswith(HIDDEN)]
    if hidden:
        raise Problem(
            f"{source.side}: Spark leaves out files whose names start with _ or ., such as"
            f" {hidden[0]}; rename it, or use --engine local"
        )


def _check_subfolders(source: Source) -> None:
    """Beside files in ``key=value`` folders Spark leaves out all others."""
    keys = path_keys(source)
    if not path_columns(source):
        return
    first, *others = keys
    other = next((file for file in others if keys[file] != keys[first]), None)
    if other is None and "" not in keys[first]:
        return
    files = first if other is None else f"{first} and {other}"
    raise Problem(
        f"{source.side}: {source.text} holds subfolders key=value and plain ones, or not the same"
        f" keys for all files: {files}; give all files the same, name them with a glob, or use"
        " --engine local"
    )


def _zone(kind: pa.DataType) -> bool | None:
    return kind.tz is not None if pa.types.is_timestamp(kind) else None


def _unit(kind: pa.DataType) -> str | None:
    has_unit = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return str(kind.unit) if has_unit else None


def _check_alike(
    given: ArrowInput, columns: list[str], aspect: Callable[[pa.DataType], object], advice: str
) -> None:
    """Refuse a column that differs between the files of an input in an aspect, None of no account."""
    first: dict[str, tuple[str, pa.DataType]] = {}
    for file, schema in given.file_schemas:
        for field in schema:
            if field.name not in columns or aspect(field.type) is None:
                continue
            other, kind = first.setdefault(field.name, (file, field.type))
            if aspect(kind) != aspect(field.type):
                raise Problem(
                    f"{given.source.side}.{field.name} is {kind} in {other} and {field.type} in"
                    f" {file}; {advice}"
                )
