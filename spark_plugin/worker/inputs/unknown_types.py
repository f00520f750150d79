"""The types of columns that hold nothing: an empty side still gives a result of the right schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from coincide.errors import ConditionError
from coincide.sides import SIDES
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.arrow.time_columns import TimeColumn, resolve_tick
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.asked import Asked

Types = dict[str, pa.DataType]


def types_of_unknown(request: Asked, inputs: Sequence[ArrowInput]) -> tuple[Types, Types]:
    """Types for what the files do not tell; of inputs that only Spark can open nothing is known."""
    left, right = (
        pa.schema([]) if request.engine == "spark" and given.source.is_uri else given.told(columns)
        for given, columns in zip(inputs, request.columns, strict=True)
    )
    return unknown_types(request, (left, right))


def unknown_types(request: Asked, schemas: tuple[pa.Schema, pa.Schema]) -> tuple[Types, Types]:
    """Types for the time columns and keys of both sides of which no file tells the type.

    A time is what the other times are; a key is what it is on the other side.

    Parameters
    ----------
    request : Asked
    schemas : (pa.Schema, pa.Schema)
        The needed columns, null where the type is not known.
    """
    times = request.clocks
    known = [_known_times(schema, names) for schema, names in zip(schemas, times, strict=True)]
    found: tuple[Types, Types] = {}, {}
    for i, schema in enumerate(schemas):
        for name in times[i]:
            if _is_unknown(schema, name):
                found[i][name] = next(iter(known[i] + known[1 - i]), _time_of_nothing(request))
    for names in request.keys:
        for i, schema in enumerate(schemas):
            if _is_unknown(schema, names[i]) and names[i] not in found[i]:
                found[i][names[i]] = _other_key(schemas[1 - i], found[1 - i], names[1 - i])
    return found


def _is_unknown(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_null(schema.field(name).type)


def _known_times(schema: pa.Schema, names: tuple[str, str]) -> list[pa.DataType]:
    return [kind for kind in _kinds(schema, names) if _is_time(kind)]


def _kinds(schema: pa.Schema, names: tuple[str, str]) -> Iterator[pa.DataType]:
    return (plain_type(schema.field(name).type) for name in names if name in schema.names)


def _is_time(kind: pa.DataType) -> bool:
    types = pa.types
    is_temporal = types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind)
    return is_temporal or types.is_integer(kind) or types.is_floating(kind)


def _time_of_nothing(request: Asked) -> pa.DataType:
    """Integers, unless the durations need to know how long a tick is."""
    try:
        columns = [TimeColumn(side, "", "integer") for side in SIDES]
        request.check_tick(resolve_tick(columns, request.options))
    except ConditionError:
        return pa.timestamp("us")
    return pa.int64()


def _other_key(schema: pa.Schema, found: Types, name: str) -> pa.DataType:
    if name in found:
        return found[name]
    if name not in schema.names or _is_unknown(schema, name):
        return pa.string()
    return plain_type(schema.field(name).type)
