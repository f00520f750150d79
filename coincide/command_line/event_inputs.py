"""The inputs of joins of two sides; one stream is both; what would be misread is found first."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from coincide.command_line.problems import Problem
from coincide.command_line.requests import EventRequest
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import arrow_time_column, plain_type
from coincide.engine.events.time_columns import resolve_tick
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.common_schema import check_alike
from coincide.engine.files.csv_texts import holds_whole
from coincide.engine.files.finding import HIDDEN
from coincide.engine.files.source import Source, as_parquet, path_columns, path_keys
from coincide.engine.join.aggregate_types import types_of_nothing
from coincide.engine.join.join import check_preferred_in_tasks
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import ConditionError, SchemaError
from coincide.model.sides import SIDES

Request = TypeVar("Request", bound=EventRequest)


class Prepared(NamedTuple, Generic[Request]):
    """A request that knows the columns of left and right, and the types of those that no file tells."""

    request: Request
    inputs: list[ArrowInput]
    types: tuple[Types, Types]

    def needed(self) -> Iterator[tuple[ArrowInput, list[str], Types]]:
        """Each input with its columns and their types; of one stream there is one."""
        found = zip(self.inputs, self.request.columns, self.types, strict=True)
        return islice(found, len(self.request.inputs))


def prepared(request: Request, sources: Sequence[Source]) -> Prepared[Request]:
    """What is wrong with columns shows here, before rows are read or Spark starts."""
    inputs = _inputs(request, sources)
    request = _with_known_columns(request, inputs)
    check = checked_types if request.engine == "local" else _checked_before_spark
    return Prepared(request, inputs, check(request, inputs))


def _inputs(request: EventRequest, sources: Sequence[Source]) -> list[ArrowInput]:
    """Left and right; of one stream both are the same. Spark's times are microseconds."""
    arguments, options = request.arguments, request.arguments.options
    found = [
        arrow_input(
            source,
            request.engine == "local" and "ns" in (options.unit_of(source.side), options.tick),
            tuple(times),
            tuple(names),
            numbered=numbered and request.engine == "local",
        )
        for source, times, names, numbered in zip(
            sources, arguments.time_columns, arguments.coordinates, arguments.numbered, strict=False
        )
    ]
    return [found[0], found[-1]]


def _with_known_columns(request: Request, inputs: Sequence[ArrowInput]) -> Request:
    """The request for inputs of these columns: `PairArguments.settled`."""
    if not request.arguments.is_open:
        return request
    for given in inputs:
        if given.source.is_uri and request.engine == "spark":
            raise Problem(
                f"{given.source.side}: '*' and --where need the names of the columns, but only"
                f" Spark can read {given.source.text}. Name the columns, and filter the result."
            )
    arguments = request.arguments.settled(*(given.schema for given in inputs))
    return replace(request, arguments=arguments)


def _needed_types(request: EventRequest, inputs: Sequence[ArrowInput]) -> tuple[Types, Types]:
    """For columns of which no file tells the type; coordinates, and what is added up, are numbers."""
    arguments = request.arguments
    left, right = (
        # Nothing is known of an input that Spark alone can open.
        pa.schema([]) if request.engine == "spark" and given.source.is_uri else given.told(columns)
        for given, columns in zip(inputs, request.columns, strict=True)
    )
    given: list[Types] = [dict.fromkeys(names, pa.float64()) for names in arguments.coordinates]
    given[arguments.side_of_matches] |= types_of_nothing(arguments.asked_aggregates)
    own, others = (
        {**one, **found}
        for one, found in zip(given, unknown_types(arguments, (left, right)), strict=True)
    )
    return own, others


def checked_types(request: EventRequest, inputs: Sequence[ArrowInput]) -> tuple[Types, Types]:
    """As `_needed_types`; what is wrong with columns shows here, before rows are read."""
    types = _needed_types(request, inputs)
    needed = zip(inputs, request.columns, types, strict=True)
    empty = [given.typed(columns, kinds).empty_table() for given, columns, kinds in needed]
    arguments = request.arguments
    if _tests_guessed(arguments, inputs, empty):
        # They may prove to be texts, once all of CSV is read.
        arguments = replace(arguments, where=None)
    keys = request.arguments.key_names
    request.check(arguments, with_like_texts(inputs, empty, keys)[: len(request.inputs)])
    return types


def _checked_before_spark(
    request: EventRequest, inputs: Sequence[ArrowInput]
) -> tuple[Types, Types]:
    """As `checked_types`: what is wrong without Spark fails before it has to start."""
    # Without keys: as these, Spark takes many types for one that differ here.
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = _needed_types(request, inputs)
    arguments, tables = request.arguments.of_times(), []
    for given, names, unknown in zip(inputs, arguments.columns, types, strict=True):
        if given.source.is_uri or path_columns(given.source).intersection(names):
            return types  # Spark alone knows of which type they are
        schema = given.typed(names, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    request.check(arguments, tables[: len(request.inputs)])
    at = min(arguments.side_of_matches, len(request.inputs) - 1)
    check_preferred_in_tasks(arguments.choice, arguments.sides[at], tables[at].schema)
    return types


def read_tables(asked: Prepared[Request], say: Callable[[str], None]) -> list[pa.Table]:
    """What is joined: one table, or two whose keys can be compared."""
    tables = []
    for given, columns, kinds in asked.needed():
        say(f"reading {given.source.text}")
        tables.append(given.table(columns, kinds))
    request, inputs = asked.request, asked.inputs
    before, keys = [tables[0], tables[-1]], request.arguments.key_names
    found = with_like_texts(inputs, before, keys)
    tell_of_texts(inputs, before, found, keys)
    return found[: len(request.inputs)]


def _tests_guessed(
    arguments: PairArguments, inputs: Sequence[ArrowInput], tables: Sequence[pa.Table]
) -> bool:
    """Whether `where` is on columns of CSV whose types are guessed from its beginning."""
    return any(
        set(given.guessed(table.schema)).intersection(names)
        for given, table, names in zip(inputs, tables, arguments.tested, strict=True)
    )


def check_for_spark(given: ArrowInput, columns: list[str]) -> None:
    """Refuse an input of which Spark would lose rows or change times, or that lacks a column."""
    source = given.source
    if not source.format.has_row_groups:
        raise Problem(
            f"{source.side}: Spark reads Parquet only (found {source.file_format} in"
            f" {source.text}). Use --engine local."
            f" {as_parquet(source.text, source.file_format, source.csv.delimiter)}"
        )
    if source.is_uri:
        return
    given.check_columns(columns)
    _check_visible(source)
    _check_subfolders(source)
    # Spark judges all files by one, and reads nanoseconds and columns of no type as integers.
    for aspect in (_unit, pa.types.is_null):
        advice = "Use --engine local, or rewrite one of them"
        check_alike(source.side, given.file_schemas, columns, aspect, advice)


def has_plain_subfolders(source: Source) -> bool:
    """Whether a folder's files lie in subfolders whose names hold no columns."""
    return any("" in keys for keys in path_keys(source).values())


def _check_visible(source: Source) -> None:
    hidden = [file for file in source.found.paths if os.path.basename(file).startswith(HIDDEN)]
    if hidden:
        raise Problem(
            f"{source.side}: Spark skips files whose names start with _ or . (found {hidden[0]})."
            " Rename it, or use --engine local."
        )


def _check_subfolders(source: Source) -> None:
    """Where files are in ``key=value`` folders, Spark leaves out all others."""
    keys = path_keys(source)
    if not path_columns(source):
        return
    first, *others = keys
    other = next((file for file in others if keys[file] != keys[first]), None)
    if other is None and "" not in keys[first]:
        return
    files = first if other is None else f"{first} and {other}"
    raise Problem(
        f"{source.side}: all files of {source.text} must be in subfolders key=value with the same"
        f" keys, or none of them (found {files}). Give all files the same keys, name them with a"
        " glob, or use --engine local."
    )


def _unit(kind: pa.DataType) -> str | None:
    has_unit = pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
    return str(kind.unit) if has_unit else None


Types = dict[str, pa.DataType]


def unknown_types(
    arguments: PairArguments, schemas: tuple[pa.Schema, pa.Schema]
) -> tuple[Types, Types]:
    """Types for the time columns and keys of both sides of which no file tells the type."""
    of_nothing = partial(time_of_nothing, [arguments])
    own, others = types_of_unknown(arguments.clocks, arguments.key_names, schemas, of_nothing)
    return own, others


def types_of_unknown(
    times: Sequence[Sequence[str]],
    keys: Sequence[Sequence[str]],
    schemas: Sequence[pa.Schema],
    of_nothing: Callable[[], pa.DataType],
) -> list[Types]:
    """The same for several inputs: the time columns of each, and for each key its name in each."""
    # A time is what the other times are; a key is what it is in the other inputs.
    known = [
        [kind for kind in _kinds(schema, names) if _is_time(kind)]
        for schema, names in zip(schemas, times, strict=True)
    ]
    found: list[Types] = [{} for _ in schemas]
    for i, schema in enumerate(schemas):
        others = [kind for j, kinds in enumerate(known) if j != i for kind in kinds]
        for name in times[i]:
            if _is_unknown(schema, name):
                told = [*known[i], *others]
                found[i][name] = told[0] if told else of_nothing()
    for names in keys:
        for i, schema in enumerate(schemas):
            if _is_unknown(schema, names[i]) and names[i] not in found[i]:
                kinds = (_key(schemas[j], found[j], names[j]) for j in range(len(names)) if j != i)
                told = [kind for kind in kinds if kind is not None]
                found[i][names[i]] = told[0] if told else pa.string()
    return found


def _is_unknown(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and pa.types.is_null(schema.field(name).type)


def _kinds(schema: pa.Schema, names: Sequence[str]) -> Iterator[pa.DataType]:
    return (plain_type(schema.field(name).type) for name in names if name in schema.names)


def _is_time(kind: pa.DataType) -> bool:
    types = pa.types
    is_temporal = types.is_timestamp(kind) or types.is_date(kind) or types.is_duration(kind)
    return is_temporal or types.is_integer(kind) or types.is_floating(kind)


def time_of_nothing(asked: Sequence[PairArguments]) -> pa.DataType:
    """The first type of which ticks count all durations: a file without rows refuses no duration."""
    for kind in (pa.int64(), pa.float64()):
        columns = [arrow_time_column(side, "", kind) for side in SIDES]
        try:
            for arguments in asked:
                arguments.check_tick(resolve_tick(columns, arguments.options))
        except (ConditionError, SchemaError):
            continue
        return kind
    return pa.timestamp("us")


def _key(schema: pa.Schema, found: Types, name: str) -> pa.DataType | None:
    """What is known of the type of a key in one input."""
    if name in found:
        return found[name]
    if name not in schema.names or _is_unknown(schema, name):
        return None
    return plain_type(schema.field(name).type)


def with_like_texts(
    inputs: Sequence[ArrowInput], tables: Sequence[pa.Table], by: Sequence[Sequence[str]]
) -> list[pa.Table]:
    """All tables, keys of CSV, which names no types, as the others have them."""
    # Whole numbers are the texts that they were where another one has texts. Decimals that are
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
            if _other_text(kinds, i) is not None and (pa.types.is_integer(kind) or is_empty):
                found[i] = _cast(found[i], names[i], pa.string())
    return found


def tell_of_texts(
    inputs: Sequence[ArrowInput],
    before: Sequence[pa.Table],
    after: Sequence[pa.Table],
    by: Sequence[Sequence[str]],
    where: str = "on the",
) -> None:
    """A line on stderr for each key whose numbers `with_like_texts` compares as texts."""
    for names in by:
        for i, name in enumerate(names):
            kind = _kind(after[i], name)
            if _is_empty(before[i], name) or not is_string(kind) or _kind(before[i], name) == kind:
                continue
            kinds = [_kind(table, each) for table, each in zip(before, names, strict=True)]
            other = _other_text(kinds, i)
            assert other is not None
            own, its = inputs[i].source.side, inputs[other].source.side
            print(
                f"coincide: the key {name!r} holds numbers {where} {own} and text {where}"
                f" {its}{_example(before[other].column(names[other]))}. It is compared as text,"
                " where '007' is not '7'",
                file=sys.stderr,
            )


def _other_text(kinds: Sequence[pa.DataType], own: int) -> int | None:
    """The first of the other inputs that has texts."""
    return next((j for j, kind in enumerate(kinds) if j != own and is_string(kind)), None)


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
