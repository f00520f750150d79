"""Keys of CSV, which names no types: alike on both sides, or compared as texts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import plain_type
from coincide.engine.files.arrow_inputs import ArrowInput, Asked, Types
from coincide.engine.files.csv_times import holds_whole


def read_ahead(
    request: Asked,
    inputs: Sequence[ArrowInput],
    types: tuple[Types, Types],
    say: Callable[[str], None],
) -> list[ArrowInput]:
    """The inputs, CSV with its rows, since only these tell what its columns and keys are.

    A line on stderr tells where numbers are compared as texts.
    """
    if not any(map(_is_csv, inputs)):
        return list(inputs)
    tables: list[pa.Table] = []
    for given, columns, kinds in zip(inputs, request.columns, types, strict=True):
        if tables and given is inputs[0]:  # one stream, which is both
            tables.append(tables[0])
        elif _is_csv(given):
            say(f"reading {given.source.text}")
            tables.append(given.table(columns, kinds))
        else:
            tables.append(given.typed(columns, kinds).empty_table())
    alike = with_text_keys(inputs, tables, request.keys)
    for names in request.keys:
        _tell(names, [given.source.side for given in inputs], tables, alike)
    return [
        replace(given, rows=rows) if _is_csv(given) else given
        for given, rows in zip(inputs, alike, strict=True)
    ]


def with_text_keys(
    inputs: Sequence[ArrowInput],
    tables: Sequence[pa.Table],
    by: Sequence[tuple[str, str]],
) -> list[pa.Table]:
    """Both tables, whole numbers of CSV as the texts that they were where the other side has texts.

    Decimals of CSV that are whole, such as those that pandas writes where some are missing, are whole
    numbers beside whole numbers.
    """
    found = _with_whole_keys(inputs, tables, by)
    for i, given in enumerate(inputs):
        keys = [key for key in by if key[i] not in given.times] if _is_csv(given) else []
        for key in keys:
            name = key[i]
            kind, other = _kind(tables[i], name), _kind(tables[1 - i], key[1 - i])
            if not _is_text(other):
                continue
            # Where nothing stands nobody knows whether what looked like decimals are texts.
            is_empty = _is_empty(tables[i], name)
            if pa.types.is_integer(kind) or (pa.types.is_floating(kind) and is_empty):
                found[i] = _cast(found[i], name, pa.string())
    return found


def _with_whole_keys(
    inputs: Sequence[ArrowInput],
    tables: Sequence[pa.Table],
    by: Sequence[tuple[str, str]],
) -> list[pa.Table]:
    found = list(tables)
    for key in by:
        kinds = [_kind(table, name) for table, name in zip(tables, key, strict=True)]
        floats = [
            i
            for i, kind in enumerate(kinds)
            if pa.types.is_floating(kind) and _is_csv(inputs[i]) and key[i] not in inputs[i].as_told
        ]
        is_number = all(pa.types.is_integer(kind) or i in floats for i, kind in enumerate(kinds))
        if is_number and all(holds_whole(tables[i].column(key[i])) for i in floats):
            for i in floats:
                found[i] = _cast(found[i], key[i], pa.int64())
    return found


def _cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, pa.field(name, kind), table.column(at).cast(kind))


def _is_csv(given: ArrowInput) -> bool:
    return given.source.file_format == "csv"


def _is_empty(table: pa.Table, name: str) -> bool:
    return name not in table.schema.names or table.column(name).null_count == len(table)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _kind(table: pa.Table, name: str) -> pa.DataType:
    return plain_type(table.schema.field(name).type) if name in table.schema.names else pa.null()


def _tell(
    names: tuple[str, str],
    sides: Sequence[str],
    before: Sequence[pa.Table],
    after: Sequence[pa.Table],
) -> None:
    for i, side in enumerate(sides):
        name = names[i]
        if _is_empty(before[i], name):
            continue
        if _kind(before[i], name) != _kind(after[i], name) and _is_text(_kind(after[i], name)):
            print(
                f"coincide: the key {name!r} holds numbers on the {side} and text on the {sides[1 - i]}"
                f"{_example(before[1 - i].column(names[1 - i]))}: compared as text, where '007' is not '7'",
                file=sys.stderr,
            )


def _example(texts: pa.ChunkedArray) -> str:
    """A text that is no whole number as we print it, if there is one."""
    texts = pc.drop_null(texts.cast(pa.string()))
    odd = texts.filter(pc.invert(pc.match_substring_regex(texts, r"^(0|-?[1-9]\d*)$")))
    return f", such as {odd[0].as_py()[:40]!r}" if len(odd) else ""
