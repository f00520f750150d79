"""Tables of any library as tables of Arrow, by Arrow's C stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from coincide.errors import SchemaError
from spark_plugin.worker.arrow.schemas import check_name
from spark_plugin.worker.arrow.wide_columns import decoded

_FRAMES = ("pandas", "polars")
"""Libraries whose frames give some of their columns by ``frame[names]``."""
_COLUMN = re.compile(r"Conversion failed for column (.+) with type ")


def offers_arrow(given: object) -> bool:
    """Whether `arrow_table` can make a table of it."""
    return hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")


def arrow_table(side: str, given: Any, names: Sequence[str]) -> pa.Table:
    """A table of whatever offers Arrow's C stream, or C array; a stream is read to its end.

    Parameters
    ----------
    side : str
    given : object
    names : sequence of str
        The columns that are needed: a frame may have others that Arrow has no type for.

    Raises
    ------
    SchemaError
        If Arrow cannot take a column over, or a needed one stands twice.
    """
    table = (
        given if isinstance(given, pa.Table) else _converted(side, _narrowed(side, given, names))
    )
    for i, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_run_end_encoded(kind):
            column = decoded(table.column(i), kind.value_type)
            table = table.set_column(i, field.name, column)
        elif pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
            table = table.set_column(i, field.name, _with_plain_texts(table.column(i)))
    return table


def needed_names(given: object, names: Sequence[str], words: str | None) -> list[str]:
    """The columns that are needed of a frame, where words tell of further ones; None: all.

    More than are needed may be among them.
    """
    own = [name for name in getattr(given, "columns", ()) if isinstance(name, str)]
    if words is None:
        return list(dict.fromkeys([*own, *names]))
    return list(dict.fromkeys([*names, *needed_among(own, words)]))


def needed_among(names: Sequence[str], words: str | None) -> list[str]:
    """Those of some columns that words may tell of; None: all."""
    return [name for name in names if words is None or f"_{name}" in words]


def _narrowed(side: str, given: Any, names: Sequence[str]) -> Any:
    """Of a frame the needed columns, if they are all there and not, say, in its index."""
    libraries = {kind.__module__.partition(".")[0] for kind in type(given).__mro__}
    if libraries.isdisjoint(_FRAMES) or not hasattr(given, "columns"):
        return given
    own = list(given.columns)
    if not set(names) <= set(own):
        return given
    for name in names:
        check_name(side, name, own)
    return given[list(names)]


def _converted(side: str, given: Any) -> pa.Table:
    try:
        return pa.table(given)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        found = _COLUMN.search(str(error))
        what = f"the column {found[1]!r}" if found else "a column"
        why = error.args[0] if error.args else type(error).__name__
        raise SchemaError(
            f"{side}: Arrow has no type for the values of {what}: {why}; give it values of one type, or"
            " leave it out"
        ) from error


def _with_plain_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Categories of Polars: Arrow takes nothing from dictionaries of string views."""
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
        for chunk in column.chunks
    ]
    kind = pa.dictionary(column.type.index_type, pa.large_string())
    return pa.chunked_array(chunks, kind)


def kind_of(given: object) -> str:
    """The type of what was given, with the package that it is from."""
    package, name = type(given).__module__.split(".")[0], type(given).__name__
    return name if package == "builtins" else f"{package}.{name}"
