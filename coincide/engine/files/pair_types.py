"""Types of two inputs of a join that must go together: what no file tells, and keys of CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.keys import key_pairs
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import arrow_time_column, plain_type
from coincide.engine.events.time_columns import resolve_tick
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.csv_texts import holds_whole
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.sides import SIDES

Types = dict[str, pa.DataType]


def unknown_types(
    arguments: PairArguments, schemas: tuple[pa.Schema, pa.Schema]
) -> tuple[Types, Types]:
    """Types for the time columns and keys of both sides of which no file tells the type."""
    # A time is what the other times are; a key is what it is on the other side.
    times = arguments.clocks
    known = [
        [kind for kind in _kinds(schema, names) if _is_time(kind)]
        for schema, names in zip(schemas, times, strict=True)
    ]
    found: tuple[Types, Types] = {}, {}
    for i, schema in enumerate(schemas):
        for name in times[i]:
            if _is_unknown(schema, name):
                found[i][name] = next(iter(known[i] + known[1 - i]), _time_of_nothing(arguments))
    for names in key_pairs(arguments.by):
        for i, schema in enumerate(schemas):
            if _is_unknown(schema, names[i]) and names[i] not in found[i]:
                found[i][names[i]] = _other_key(schemas[1 - i], found[1 - i], names[1 - i])
    return found


def _is_unknown(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_null(schema.field(name).type)


def _kinds(schema: pa.Schema, names: tuple[str, str]) -> Iterator[pa.DataType]:
    return (plain_type(schema.field(name).type) for name in names if name in schema.names)


def _is_time(kind: pa.DataType) -> bool:
    types = pa.types
    is_temporal = types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind)
    return is_temporal or types.is_integer(kind) or types.is_floating(kind)


def _time_of_nothing(arguments: PairArguments) -> pa.DataType:
    """The first type of which ticks count all durations: a file without rows refuses no duration."""
    for kind in (pa.int64(), pa.float64()):
        columns = [arrow_time_column(side, "", kind) for side in SIDES]
        try:
            arguments.check_tick(resolve_tick(columns, arguments.options))
        except (ConditionError, SchemaError):
            continue
        return kind
    return pa.timestamp("us")


def _other_key(schema: pa.Schema, found: Types, name: str) -> pa.DataType:
    if name in found:
        return found[name]
    if name not in schema.names or _is_unknown(schema, name):
        return pa.string()
    return plain_type(schema.field(name).type)


def with_like_texts(
    inputs: Sequence[ArrowInput], tables: Sequence[pa.Table], by: Sequence[tuple[str, str]]
) -> list[pa.Table]:
    """Both tables, keys of CSV, which names no types, as the other side has them."""
    # Whole numbers are the texts that they were where the other side has texts. Decimals that are
    # whole, such as those that pandas writes where some are missing, are whole numbers where it has
    # these.
    found = list(tables)
    for names in by:
        kinds = [_kind(table, name) for table, name in zip(tables, names, strict=True)]
        floats = [
            i
            for i, kind in enumerate(kinds)
            if pa.types.is_floating(kind) and names[i] in inputs[i].guessed(tables[i].schema)
        ]
        is_number = all(pa.types.is_integer(kind) or i in floats for i, kind in enumerate(kinds))
        if is_number and all(holds_whole(tables[i].column(names[i])) for i in floats):
            for i in floats:
                found[i] = _cast(found[i], names[i], pa.int64())
        for i, kind in enumerate(kinds):
            if not inputs[i].source.format.is_text or names[i] in inputs[i].times:
                continue
            # Where nothing is written, what looked like decimals may be texts.
            is_empty = pa.types.is_floating(kind) and _is_empty(tables[i], names[i])
            if is_string(kinds[1 - i]) and (pa.types.is_integer(kind) or is_empty):
                found[i] = _cast(found[i], names[i], pa.string())
    return found


def tell_of_texts(
    inputs: Sequence[ArrowInput],
    before: Sequence[pa.Table],
    after: Sequence[pa.Table],
    by: Sequence[tuple[str, str]],
) -> None:
    """A line on stderr for each key whose numbers `with_like_texts` compares as texts."""
    for names in by:
        for i, name in enumerate(names):
            kind = _kind(after[i], name)
            if _is_empty(before[i], name) or not is_string(kind) or _kind(before[i], name) == kind:
                continue
            own, other = inputs[i].source.side, inputs[1 - i].source.side
            print(
                f"coincide: the key {name!r} holds numbers on the {own} and text on the {other}"
                f"{_example(before[1 - i].column(names[1 - i]))}: compared as text, where '007' is not '7'",
                file=sys.stderr,
            )


def _cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, pa.field(name, kind), table.column(at).cast(kind))


def _is_empty(table: pa.Table, name: str) -> bool:
    return name not in table.schema.names or table.column(name).null_count == len(table)


def _kind(table: pa.Table, name: str) -> pa.DataType:
    return plain_type(table.schema.field(name).type) if name in table.schema.names else pa.null()


def _example(texts: pa.ChunkedArray) -> str:
    """A text that is no whole number as we print it, if there is one."""
    texts = pc.drop_null(texts.cast(pa.string()))
    odd = texts.filter(pc.invert(pc.match_substring_regex(texts, r"^(0|-?[1-9]\d*)$")))
    return f", such as {odd[0].as_py()[:40]!r}" if len(odd) else ""
