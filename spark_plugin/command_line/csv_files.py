"""How CSV is read: one set of rules, for both engines."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as csv

from spark_plugin.command_line.inputs import Source
from spark_plugin.command_line.problems import Problem

# Without it a line break in quotes is an error, but only where a block happens to end.
_PARSING = csv.ParseOptions(newlines_in_values=True)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_HEADER_BYTES = 1 << 16
_FIRST_BLOCK_BYTES = 16 << 20
"""The types of the columns come from this much of the first file."""


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
