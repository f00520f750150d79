"""Tables of any library as tables of Arrow, by Arrow's C stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def offers_arrow(given: object) -> bool:
    """Whether `arrow_table` can make a table of it."""
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def arrow_table(given: Any) -> pa.Table:
    """A table of whatever offers Arrow's C stream, or C array; a stream is read to its end."""
    table = given if isinstance(given, pa.Table) else pa.table(given)
    for i, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
            table = table.set_column(i, field.name, _with_plain_texts(table.column(i)))
    return table


def _with_plain_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Categories of Polars: Arrow takes nothing from dictionaries of string views."""
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
        for chunk in column.chunks
    ]
    kind = pa.dictionary(column.type.index_type, pa.large_string())
    return pa.chunked_array(chunks, kind)
