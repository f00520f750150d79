"""A row in words, in SQL: for messages about rows that are refused in a worker."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as T

from spark_plugin.dataframes.columns import text


def example(columns: Sequence[tuple[str, T.StructField]]) -> str:
    """SQL of a row's values with their names, as ``name=value, name=value``.

    Parameters
    ----------
    columns : sequence of (str, StructField)
        Where each value stands, and the column that it is of.
    """
    parts = [f"{text(field.name + '=')}, {_shown(value, field)}" for value, field in columns]
    between = text(", ")
    return f"concat({f', {between}, '.join(parts)})"


def _shown(value: str, field: T.StructField) -> str:
    # Bytes may be no text.
    plain = f"hex({value})" if isinstance(field.dataType, T.BinaryType) else value
    return f"coalesce(CAST({plain} AS STRING), 'None')"
