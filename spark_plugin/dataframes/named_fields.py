"""Columns of DataFrames by their names."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.errors import SchemaError
from spark_plugin.worker.arrow.schemas import check_name

_fields: WeakKeyDictionary[DataFrame, dict[str, list[T.StructField]]] = WeakKeyDictionary()


def field_of(frame: DataFrame, side: str, name: str) -> T.StructField:
    """A top-level field by name.

    Raises
    ------
    SchemaError
        If it is missing or stands twice.
    """
    alike = _fields_of(frame).get(name.lower(), [])
    named = [field for field in alike if field.name == name]
    if len(named) != 1:
        check_name(side, name, frame.columns)
    if "${" in name:
        raise SchemaError(
            f"{side} has the column {name!r}, in which Spark would replace what follows ${{; rename it"
        )
    if len(alike) > 1 and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise SchemaError(
            f"{side} has columns that Spark cannot tell apart:"
            f" {', '.join(field.name for field in alike)}; rename all but one"
        )
    return named[0]


def _fields_of(frame: DataFrame) -> dict[str, list[T.StructField]]:
    """All fields by their names in lower case: of many columns each is looked for."""
    known = _fields.get(frame)
    if known is None:
        known = {}
        for each in frame.schema.fields:
            known.setdefault(each.name.lower(), []).append(each)
        _fields[frame] = known  # whole, as other threads see it
    return known


def can_be_named(name: str, lowered: Sequence[str]) -> bool:
    """Whether SQL can name a column, among columns whose names in lower case are given."""
    return "${" not in name and lowered.count(name.lower()) == 1
