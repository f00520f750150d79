"""What the columns of both streams are: said by the first table of each, held to by the others."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from coincide.errors import ConditionError, DataError, SchemaError
from coincide.sides import SIDES
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.arrow.frames import needed_among
from spark_plugin.worker.arrow.schemas import check_name, of_dicts, plain_type, type_of
from spark_plugin.worker.arrow.tables import read_side
from spark_plugin.worker.arrow.time_columns import resolve_tick, scale_of
from spark_plugin.worker.arrow.wide_columns import decoded
from spark_plugin.worker.streams.arguments import StreamArguments
from spark_plugin.worker.timestamps.names import arrow_clocks

_TEXTS = {pa.string(), pa.large_string()}
_BYTES = {pa.binary(), pa.large_binary()}


def needed_schema(side: str, schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The columns that are needed, in plain types.

    Raises
    ------
    SchemaError
        If one is missing or stands twice.
    """
    return pa.schema([(name, type_of(schema, side, name)) for name in names])


def open_names(schema: pa.Schema, number: int, join: JoinArguments) -> list[str]:
    """Columns of a side of which some are needed, before the other side's are known."""
    names = join.columns[number]
    if not join.is_open:
        return names
    needed = [*names, *needed_among(schema.names, join.words_of_needed)]
    in_order = (name for name in schema.names if name in needed)
    return list(dict.fromkeys([*in_order, *names]))


def in_schema(side: str, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The needed columns of a later table, in the types of the first.

    Raises
    ------
    SchemaError
        If one is missing, stands twice, or is of another type.
    DataError
        If texts of more than 2 GiB are to be of the first table's type.
    """
    columns = []
    for field in schema:
        check_name(side, field.name, table.column_names)
        columns.append(_as_type(side, field, table.column(field.name)))
    return pa.table(columns, schema=schema)


def _as_type(side: str, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    found = plain_type(column.type)
    if found != field.type and not _is_alike(found, field.type):
        raise SchemaError(
            f"{side}.{field.name} is {found} and was {field.type} in the first table; cast it, or make a"
            f" new stream{of_dicts([(field.type, found)])}"
        )
    try:
        return decoded(column, field.type)
    except pa.ArrowInvalid as error:
        raise DataError(f"{side}.{field.name}: {error}; push fewer rows at once") from error


def _is_alike(found: pa.DataType, first: pa.DataType) -> bool:
    """Whether types differ in how writers store values: an empty column may have none at all."""
    return pa.types.is_null(found) or any({found, first} <= kinds for kinds in (_TEXTS, _BYTES))


def check_alone(number: int, table: pa.Table, arguments: StreamArguments) -> None:
    """Refuse the rows of a side whose partner's columns nobody knows yet, where they are invalid.

    The tick of both together may be finer: what this side's own would round is looked at once it is known.

    Raises
    ------
    SchemaError, DataError
    """
    side, join = SIDES[number], arguments.join
    names = join.times[number]
    clocks = arrow_clocks(side, names, table.schema)
    tick = resolve_tick(clocks, join.options)
    scales = [scale_of(clock, tick, join.options) for clock in clocks]
    try:
        columns = names.resolved((scales[0], scales[1]), join.longest(tick)[number])
    except ConditionError:
        return
    keys = (join.keys, join.right_keys)[number]
    read_side(table, columns, keys, join.payload[number], join.options.invalid)
