"""Numbers in CSV that may be names: read as they are written."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

BLANKS = " \t"
"""What the reader allows around numbers."""


def with_texts(schema: pa.Schema, times: Collection[str]) -> pa.Schema:
    """A schema to read by, so that nothing is lost: text for all that may be numbers, but for times."""
    return pa.schema(
        [
            field.with_type(pa.string())
            if _is_number(field.type) and field.name not in times
            else field
            for field in schema
        ]
    )


def with_numbers(table: pa.Table, schema: pa.Schema, decimal: str = ".") -> pa.Table:
    """All rows of an input as numbers again, in columns where each number prints as it was written.

    Others stay text: ``007``, ``+7`` and ``1e3`` may be names, and as numbers would be those of others.

    Parameters
    ----------
    table : pa.Table
        As read by `with_texts`.
    schema : pa.Schema
        The types that the beginning of the first file suggests.
    decimal : str
        What stands before decimals.
    """
    for i, field in enumerate(schema):
        if field.type != table.schema.field(i).type:
            texts = table.column(i)
            if decimal != "." and pa.types.is_floating(field.type):
                texts = pc.replace_substring(texts, decimal, ".")
            numbers = _numbers(texts, field.type)
            if numbers is not None:
                table = table.set_column(i, field, numbers)
    return table


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _numbers(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    texts = pc.utf8_trim(texts, characters=BLANKS)
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_integer(kind):
        return numbers if _equal(numbers.cast(pa.string()), texts) else None
    return numbers if _print_back(numbers, texts) else None


def _print_back(numbers: pa.ChunkedArray, texts: pa.ChunkedArray) -> bool:
    """Whether the texts are plain decimals, with zeros at their ends by one habit."""
    digits = pc.fill_null(pc.invert(pc.is_nan(numbers)), False)
    numbers, texts = numbers.filter(digits), texts.filter(digits)
    bare = pc.replace_substring_regex(texts, r"^(-?\d+)\.0+$", r"\1")
    bare = pc.replace_substring_regex(bare, r"(\.\d*[1-9])0+$", r"\1")
    return _equal(numbers.cast(pa.string()), bare) and _has_one_habit(texts)


def _has_one_habit(texts: pa.ChunkedArray) -> bool:
    """No zeros at the ends; or only those of ``1.0``; or always as many places. Not 1.1 beside 1.10."""
    places = pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))
    fewest, most = pc.min_max(places).as_py().values()
    ends = pc.match_substring_regex
    return (
        fewest == most
        or not pc.any(ends(texts, r"\.\d*0$")).as_py()
        or (fewest > 0 and not pc.any(ends(texts, r"\.\d+0$")).as_py())
    )


def _equal(printed: pa.ChunkedArray, texts: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(printed, texts), min_count=0).as_py())
