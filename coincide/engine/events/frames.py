"""Whatever is given as a table, as one of Arrow: by Arrow's C stream, as rows, or by the path of files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import can_be_width, check_name, in_usable_types
from coincide.engine.events.time_columns import in_plain_units
from coincide.model.errors import DroppedRowsWarning, SchemaError

if TYPE_CHECKING:
    from coincide.engine.files.finding import Given

TABLES = (
    "a table that offers Arrow's C stream, such as those of pyarrow, pandas, Polars and DuckDB, a dict of"
    " arrays, a list of dicts, or the path of files"
)
"""What `arrow_table` takes, in words."""


class Numbers(NamedTuple):
    """Columns that CSV writes as numbers: times, which may be decimals or texts of times, and floats."""

    times: Sequence[str] = ()
    floats: Sequence[str] = ()


NO_NUMBERS = Numbers()
_FRAMES = ("pandas", "polars")
"""Libraries whose frames give some of their columns by ``frame[names]``."""
_COLUMN = re.compile(r"Conversion failed for column (.+) with type ")


def offers_arrow(given: object) -> bool:
    """Whether `arrow_table` can make a table of it."""
    if hasattr(given, "toArrow"):
        return False  # Spark's DataFrames, whose stream, from 4.2 on, fails at timestamps
    offers = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    return offers or isinstance(given, Mapping) or _is_rows(given) or _names_files(given)


def arrow_table(
    side: str,
    given: Any,
    names: Sequence[str],
    numbers: Numbers = NO_NUMBERS,
    first: pa.Schema | None = None,
    *,
    drops: bool = False,
    may_lack: str | None = None,
) -> pa.Table:
    """A table of whatever offers Arrow's C stream, or C array; a stream is read to its end.

    `drops`: lines of CSV that are malformed, or have no time, are skipped with a warning. `may_lack`: the
    one of `names` that may be missing.
    """
    if _names_files(given):
        table = _of_files(side, given, list(dict.fromkeys(names)), numbers, drops, may_lack)
    elif _is_rows(given):
        table = _like(_of_rows(side, given), first)
    elif isinstance(given, Mapping):
        table = _like(_of_columns(side, given, names), first)
    elif isinstance(given, pa.Table):
        table = given
    else:
        has = may_lack is None or may_lack in [*getattr(given, "columns", ()), *_in_index(given)]
        names = names if has else [name for name in names if name != may_lack]
        table = _converted(side, _narrowed(side, given, names))
    return in_usable_types(table)


def _in_index(given: object) -> Sequence[str]:
    """The names in the index of a pandas frame, which become columns."""
    return getattr(getattr(given, "index", None), "names", ())


def _names_files(given: object) -> TypeGuard[Given]:
    if isinstance(given, (list, tuple)):
        return bool(given) and all(isinstance(each, (str, os.PathLike)) for each in given)
    return isinstance(given, (str, os.PathLike))


def _of_files(
    side: str,
    given: Given,
    names: list[str],
    numbers: Numbers,
    drops: bool,
    may_lack: str | None,
) -> pa.Table:
    from coincide.engine.files.arrow_inputs import input_of
    from coincide.engine.reports.warnings import warn

    read = input_of(side, given, *numbers, drops=drops)
    has = may_lack is None or may_lack in read.schema.names
    table = read.table(names if has else [name for name in names if name != may_lack])
    if lost := sum(read.source.skipped.values()):
        lines = f"{lost:,} {'line' if lost == 1 else 'lines'}"
        warn(
            f"{side}: {lines} of {read.source.text} skipped, with more or fewer cells than the header, or"
            " with no time",
            DroppedRowsWarning,
        )
    return table


def _is_rows(given: object) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    return isinstance(given, (list, tuple)) and all(isinstance(each, Mapping) for each in given)


def is_nothing(given: object) -> bool:
    """Whether it is a list of no rows, as an empty poll gives: it tells of no columns."""
    return isinstance(given, (list, tuple)) and not given


def _of_rows(side: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A row for each dict, of all their columns."""
    if is_nothing(rows):
        raise SchemaError(
            f"{side} is an empty list, which has no columns and no types. Give a table with a"
            " schema, such as schema.empty_table() of a pyarrow.Schema."
        )
    own = dict.fromkeys(name for row in rows for name in row)
    return _converted(side, {name: [row.get(name) for row in rows] for name in own})


def _of_columns(side: str, columns: Mapping[str, Any], names: Sequence[str]) -> pa.Table:
    """A column for each array, or each that is needed."""
    wanted = [name for name in columns if name in names] or [*columns]
    found = {name: _as_column(side, name, columns[name]) for name in wanted}
    lengths = {name: len(column) for name, column in found.items()}
    if len({*lengths.values()}) > 1:
        words = ", ".join(f"{length:,} of {name!r}" for name, length in lengths.items())
        raise SchemaError(
            f"{side}: all columns of a dict must have as many values (found {words}). Give each row"
            " a value in each of them, such as None."
        )
    return _converted(side, found)


_COARSE_UNITS = ("Y", "M", "W", "h", "m")
"""Units of NumPy's times that Arrow does not know."""


def _as_column(side: str, name: str, given: Any) -> Any:
    """An array or a list as Arrow takes it."""
    if hasattr(given, "__array__") and not _is_of_frames(given):
        given = np.asanyarray(given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        if given.dtype.kind in "mM" and np.datetime_data(given.dtype)[0] in _COARSE_UNITS:
            return given.astype(f"{given.dtype.kind}8[s]")
        return given.astype(given.dtype.newbyteorder("="), copy=False)
    is_listing = not isinstance(given, (np.ndarray, str, bytes, Mapping)) and hasattr(
        given, "__len__"
    )
    if is_listing:
        return given
    found = f"the shape {given.shape}" if isinstance(given, np.ndarray) else kind_of(given)
    raise SchemaError(
        f"{side}: the column {name!r} of a dict must be an array of one dimension, or a list (found"
        f" {found}). Give a dict for each row in a list, or an array for each column."
    )


def _is_of_frames(given: object) -> bool:
    """Whether Arrow knows more of a column than its values, such as a time zone."""
    return hasattr(given, "__arrow_array__") or _library(given) in (*_FRAMES, "pyarrow")


def _like(table: pa.Table, first: pa.Schema | None) -> pa.Table:
    """A table of what names no types, its numbers as in the first one."""
    for i, field in enumerate(table.schema):
        if first is not None and field.name in first.names:
            column = _as_number(table.column(i), first.field(field.name).type)
            table = table.set_column(i, field.name, column)
    return table


def _as_number(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Numbers as another type of numbers; as they are if one would be lost."""
    if column.type == kind or not (can_be_width(column.type) and can_be_width(kind)):
        return column
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return column


def own_names(given: object, side: str = "table") -> list[str]:
    """The columns of what was given as a table, where they are known before it is read."""
    if _names_files(given):
        from coincide.engine.files.arrow_inputs import input_of

        return input_of(side, given).schema.names
    if isinstance(given, Mapping):
        return [*given]
    return [name for name in getattr(given, "columns", ()) if isinstance(name, str)]


def needed_names(given: object, names: Sequence[str], words: str | None) -> list[str]:
    """The columns that are needed of a frame, where words tell of further ones; None: all."""
    # More than are needed may be among them.
    own = own_names(given)
    if words is None:
        return list(dict.fromkeys([*own, *names]))
    return list(dict.fromkeys([*names, *needed_among(own, words)]))


def needed_among(names: Sequence[str], words: str | None) -> list[str]:
    """Those of some columns that words may tell of; None: all."""
    # SQL writes a backtick in a name twice; an expression prints it once.
    return [
        name
        for name in names
        if words is None or f"_{name}" in words or f"_{name.replace('`', '``')}" in words
    ]


def _narrowed(side: str, given: Any, names: Sequence[str]) -> Any:
    """The needed columns of a frame, if they are all there and not, say, in its index."""
    if _library(given) not in _FRAMES or not hasattr(given, "columns"):
        return given
    own = list(given.columns)
    if not set(names) <= set(own):
        return given
    for name in names:
        check_name(side, name, own)
    return given[list(names)]


def _library(given: object) -> str | None:
    """The library whose frames and columns these are, or those of a subclass."""
    found = (kind.__module__.partition(".")[0] for kind in type(given).__mro__)
    return next((name for name in found if name in (*_FRAMES, "pyarrow")), None)


def _converted(side: str, given: Any) -> pa.Table:
    if isinstance(given, dict):
        given = {
            name: in_plain_units(f"{side}.{name}", each) if isinstance(each, np.ndarray) else each
            for name, each in given.items()
        }
    try:
        return pa.table(given)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError) as error:
        found = _COLUMN.search(str(error))
        what = f"the column {found[1]!r}" if found else "a column"
        why = error.args[0] if error.args else type(error).__name__
        raise SchemaError(
            f"{side}: Arrow has no type for the values of {what} ({why}). Give it values of one"
            " type, or remove it."
        ) from error


def kind_of(given: object) -> str:
    """The type of what was given, with the package that it is from."""
    package, name = type(given).__module__.split(".")[0], type(given).__name__
    return name if package == "builtins" else f"{package}.{name}"
