"""How CSV is read: one set of rules, for both engines."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from spark_plugin.command_line.inputs import Source
from spark_plugin.command_line.problems import Problem

# Without it a line break in quotes is an error, but only where a block happens to end.
_PARSING = csv.ParseOptions(newlines_in_values=True)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER_BYTES = 1 << 16
_FIRST_BLOCK_BYTES = 16 << 20
"""The types of the columns come from this much of the first file, but numbers may turn out to be text."""
_BLANKS = " \t"
"""What the reader allows around numbers."""


def csv_schema(stream: pa.NativeFile, nanoseconds: bool) -> pa.Schema:
    """Names and types of the columns, from the beginning of a file; null where nothing stands.

    Parameters
    ----------
    stream : pa.NativeFile
        A file, decompressed.
    nanoseconds : bool
        Keep timestamps in nanoseconds; otherwise they are microseconds, like Spark's.
    """
    options = csv.ReadOptions(block_size=_FIRST_BLOCK_BYTES)
    reader = csv.open_csv(
        stream, read_options=options, parse_options=_PARSING, convert_options=_convert()
    )
    return pa.schema([field.with_type(_plain(field.type, nanoseconds)) for field in reader.schema])


def csv_header(stream: pa.NativeFile) -> str:
    """The first line of a file, or the beginning of it."""
    begin = stream.read(_HEADER_BYTES) or b""
    return next(iter(bytes(begin).decode(errors="replace").splitlines()), "")


def check_separator(source: Source, header: str) -> None:
    """Refuse a file whose names are separated, but not by commas.

    Raises
    ------
    Problem
        That says how to convert it.
    """
    found = [mark for mark in _SEPARATORS if mark in header]
    if "," not in header and found:
        raise Problem(
            f"{source.side}: the columns of {source.text} are separated by {_SEPARATORS[found[0]]}, and CSV"
            ' is read with commas; make it Parquet once, for example with python -c "import pyarrow.csv as'
            " c, pyarrow.parquet as p; p.write_table(c.read_csv('in.csv',"
            f" parse_options=c.ParseOptions(delimiter={found[0]!r})), 'out.parquet')\""
        )


def csv_table(stream: pa.NativeFile, schema: pa.Schema) -> pa.Table:
    """The columns of a schema of one file. A value that does not fit its type is an error."""
    convert = _convert(include_columns=schema.names, column_types=schema)
    return csv.read_csv(stream, parse_options=_PARSING, convert_options=convert)


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


def with_numbers(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """All rows of an input as numbers again, in columns where each number prints as it was written.

    Others stay text: ``007``, ``+7`` and ``1e3`` may be names, and as numbers would be those of others.

    Parameters
    ----------
    table : pa.Table
        As read by `with_texts`.
    schema : pa.Schema
        The types that the beginning of the first file suggests.
    """
    for i, field in enumerate(schema):
        if field.type != table.schema.field(i).type:
            numbers = _numbers(table.column(i), field.type)
            if numbers is not None:
                table = table.set_column(i, field, numbers)
    return table


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _numbers(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    texts = pc.utf8_trim(texts, characters=_BLANKS)
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


def _convert(**more: object) -> csv.ConvertOptions:
    return csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=True,
        true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"], **more,
    )  # fmt: skip


def _plain(kind: pa.DataType, nanoseconds: bool) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if nanoseconds else "us", kind.tz)
    if kind in (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.null()):
        return kind
    return pa.string()
