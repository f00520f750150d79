"""Columns of a read that the names of folders tell, as in ``day=2026-01-01/``, with Spark's values."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import types as T

from coincide.engine.files.file_constants import NO_CONSTANTS, FileConstants
from spark_plugin.frames.columns import arrow_type

_log = logging.getLogger("coincide")
_WHOLE = (
    T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DateType, T.TimestampType,
    T.TimestampNTZType,
)  # fmt: skip
_READERS: dict[type[T.DataType], Callable[[str], Any]] = {
    **dict.fromkeys(_WHOLE, int), **dict.fromkeys((T.FloatType, T.DoubleType), float),
    T.DecimalType: Decimal, T.StringType: str, T.BooleanType: lambda said: said == "true",
}  # fmt: skip
"""How values are read that Spark tells in its own form: a date in days, a time in microseconds."""
_NULL_FOLDER, _NULL = "__HIVE_DEFAULT_PARTITION__", "null"
"""How a folder, and a value of Spark's, say that there is no value."""
_BEGIN, _PATH, _END = "PartitionPath([", "],file:/", ")"


def told_by_folders(
    relation: Any, stored: Sequence[str], paths: Sequence[str]
) -> FileConstants | None:
    """What folders tell of some columns, as Spark has it; None where that is not known."""
    spec = relation.location().partitionSpec()
    kinds = T.StructType.fromJson(json.loads(spec.partitionColumns().json())).fields
    told = [field for field in kinds if field.name in stored]
    if not told:
        return NO_CONSTANTS
    if not all(_is_read(field.dataType) for field in told):
        return None
    # All in one answer: there may be thousands of folders. No name holds what is between two.
    mark = uuid4().hex
    found = dict(_values(part, kinds) for part in spec.partitions().mkString(mark).split(mark))
    folders = [path.rpartition("/")[0] for path in paths]
    if not all(found.get(folder) for folder in folders):
        _log.debug("files go through Spark, as it tells in other words what folders mean")
        return None
    number = {folder: row for row, folder in enumerate(found)}
    rows = {path: number[folder] for path, folder in zip(paths, folders, strict=True)}
    values = {
        field.name: _array(
            [(each or {}).get(field.name) for each in found.values()], field.dataType
        )
        for field in told
    }
    return FileConstants(pa.table(values), rows)


def _is_read(kind: T.DataType) -> bool:
    if isinstance(kind, T.DecimalType):  # with places behind the point Spark gives other values
        return kind.scale == 0
    return type(kind) in _READERS and (not isinstance(kind, T.StringType) or kind == T.StringType())


def _values(part: str, kinds: Sequence[T.StructField]) -> tuple[str, dict[str, Any] | None]:
    """A folder, and the value of each column; None if Spark's words mean something else."""
    # Spark shows texts as they are, commas and all, so the folder's name must say where they end.
    said, _, path = part.removeprefix(_BEGIN).rpartition(_PATH)
    folder = "/" + path.removesuffix(_END)
    steps = [step.partition("=") for step in folder.split("/")]
    texts = {unescaped(name): value for name, sign, value in steps if sign}
    if not texts.keys() >= {field.name for field in kinds}:
        return folder, None
    values, rest = {}, f"{said},"
    for field in kinds:
        of_folder, own = texts[field.name], None
        if isinstance(field.dataType, T.StringType):
            own = _NULL if of_folder == _NULL_FOLDER else unescaped(of_folder)
            if not rest.startswith(f"{own},"):
                return folder, None
        own = rest.partition(",")[0] if own is None else own
        rest = rest[len(own) + 1 :]
        try:
            values[field.name] = _value(field.dataType, of_folder, own)
        except (ValueError, ArithmeticError):
            return folder, None
    return folder, None if rest else values


def unescaped(name: str) -> str:
    """A part of a folder's name, as Hive and Spark read it: each code is a character."""
    if "%" not in name:
        return name
    return re.sub("%([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), name)


def _value(kind: T.DataType, of_folder: str, said: str) -> Any:
    if isinstance(kind, T.StringType):
        return None if of_folder == _NULL_FOLDER else said
    # What is not read is not asked for.
    read = _READERS.get(type(kind), str)
    return None if said == _NULL else read(said)


def _array(values: Sequence[Any], kind: T.DataType) -> pa.Array:
    of_arrow = arrow_type(kind)
    if not isinstance(kind, _WHOLE):
        return pa.array(values, of_arrow)
    width = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[of_arrow.bit_width]
    return pa.array(values, width).view(of_arrow)
