"""Columns of the result of an operator that keeps streams together: on the wire, and as handed out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from spark_plugin.dataframes.columns import MidnightType, decode, literal, quoted, text, wire_type


def result_time(given: T.DataType) -> T.DataType:
    """The type in which a time is handed out: as it came, but for numbers, which are ticks."""
    if isinstance(given, T.DateType):
        return MidnightType()
    own = (T.TimestampType, T.TimestampNTZType, T.DayTimeIntervalType)
    return given if isinstance(given, own) else T.LongType()


def computed_time(given: T.DataType) -> T.DataType:
    """As `result_time`, of times that no row has: beside dates, timestamps, as they are no midnights."""
    return T.TimestampNTZType() if isinstance(given, T.DateType) else result_time(given)


def wire_schema(kinds: Sequence[T.DataType]) -> T.StructType:
    """Of what a task hands over, for columns of these types."""
    return T.StructType([T.StructField(f"out{i}", wire_type(kind)) for i, kind in enumerate(kinds)])


def handed_out(
    found: DataFrame,
    names: Sequence[str],
    kinds: Sequence[T.DataType],
    words: Mapping[str, Sequence[str]],
) -> DataFrame:
    """What tasks found, as users see it.

    Parameters
    ----------
    found : DataFrame
        Of `wire_schema`.
    names : sequence of str
        Of the result's columns.
    kinds : sequence of DataType
        Theirs; bigint for those of `words`.
    words : mapping of str to sequence of str
        Columns in which a number on the wire stands for the word in that place.
    """
    wires = wire_schema(kinds).names
    columns = (
        f"{_word(wire, words[name]) if name in words else decode(wire, kind)} AS {quoted(name)}"
        for wire, name, kind in zip(wires, names, kinds, strict=True)
    )
    return found.selectExpr(*columns)


def _word(wire: str, words: Sequence[str]) -> str:
    cases = (f"WHEN {literal(i)} THEN {text(word)}" for i, word in enumerate(words))
    return f"CASE {wire} {' '.join(cases)} END"
