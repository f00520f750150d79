"""The inputs of joins of two sides, of which one stream is both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import pyarrow as pa

from spark_plugin.command_line.input_checks import (
    check_complete,
    check_for_spark,
    check_zones,
    path_columns,
)
from spark_plugin.command_line.requests import EventRequest
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.causality.places import names_of_coordinates
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.csv_keys import read_ahead, with_text_keys
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.inputs.unknown_types import Types, types_of_unknown
from spark_plugin.worker.pair_arguments import PairArguments


def inputs_of(request: EventRequest, sources: Iterable[Source]) -> list[ArrowInput]:
    """Left and right; of one stream both are the same. Spark's times are microseconds."""
    arguments, options = request.arguments, request.options
    found = [
        ArrowInput(
            source,
            request.engine == "local" and "ns" in (options.unit_of(source.side), options.tick),
            tuple(times),
            tuple(names_of_coordinates(place)),
        )
        for source, times, place in zip(
            sources, arguments.time_columns, arguments.places, strict=False
        )
    ]
    return [found[0], found[-1]]


def needed_types(request: EventRequest, inputs: Sequence[ArrowInput]) -> tuple[Types, Types]:
    """For columns of which no file tells the type; coordinates are numbers."""
    own, others = (
        {**dict.fromkeys(names_of_coordinates(place), pa.float64()), **found}
        for place, found in zip(
            request.arguments.places, types_of_unknown(request, inputs), strict=True
        )
    )
    return own, others


def checked_types(
    request: EventRequest,
    inputs: Sequence[ArrowInput],
    check: Callable[[PairArguments, list[pa.Table]], object],
) -> tuple[Types, Types]:
    """As `needed_types`; what is wrong with columns shows here, before rows are read.

    Parameters
    ----------
    request : EventRequest
        Whose columns are known.
    inputs : sequence of ArrowInput
    check : callable
        Takes arguments and tables without rows, one a stream, and raises where they do not go together.

    Raises
    ------
    CoincideError
    """
    for given, columns in zip(inputs, request.columns, strict=True):
        check_complete(given, columns)
        check_zones(given, columns)
    types = needed_types(request, inputs)
    needed = zip(inputs, request.columns, types, strict=True)
    empty = [given.typed(columns, kinds).empty_table() for given, columns, kinds in needed]
    arguments = request.arguments
    if _tests_guessed(arguments, inputs, empty):
        # They may prove to be texts, once all of CSV is read.
        arguments = arguments.without_where()
    check(arguments, _joined(request, inputs, empty))
    return types


def checked_before_spark(
    request: EventRequest,
    inputs: Sequence[ArrowInput],
    check: Callable[[PairArguments, list[pa.Table]], object],
) -> tuple[Types, Types]:
    """As `checked_types`: what can be told without Spark fails before it has to start.

    That is of times and places only: as keys, Spark takes many types for one that differ here.

    Raises
    ------
    CoincideError
    """
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = needed_types(request, inputs)
    arguments, tables = request.arguments, []
    needed = arguments.timestamp_columns
    for given, names, unknown in zip(inputs, needed, types, strict=True):
        if given.source.is_uri or path_columns(given.source).intersection(names):
            return types  # Spark alone knows of which type they are
        schema = given.typed(names, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    check(arguments.handing_out(needed), tables[: len(request.inputs)])
    return types


def read_tables(
    request: EventRequest,
    inputs: Sequence[ArrowInput],
    types: tuple[Types, Types],
    say: Callable[[str], None],
) -> list[pa.Table]:
    """What is joined: one table, or two whose keys can be compared.

    Parameters
    ----------
    request : EventRequest
    inputs : sequence of ArrowInput
    types : (Types, Types)
        As `checked_types` gives them.
    say : function of str
        Is told what is being read.

    Raises
    ------
    DataError
        If an input cannot be read.
    """
    inputs = read_ahead(request, inputs, types, say)
    tables = []
    needed = zip(inputs, request.columns, types, strict=True)
    for given, columns, kinds in islice(needed, len(request.inputs)):
        if given.rows is None:
            say(f"reading {given.source.text}")
        tables.append(given.table(columns, kinds))
    return _joined(request, inputs, tables)


def _tests_guessed(
    arguments: PairArguments, inputs: Sequence[ArrowInput], tables: Sequence[pa.Table]
) -> bool:
    """Whether `where` is on columns of CSV whose types are guessed from its beginning."""
    return any(
        set(given.guessed(table.schema)).intersection(names)
        for given, table, names in zip(inputs, tables, arguments.tested, strict=True)
    )


def _joined(
    request: EventRequest, inputs: Sequence[ArrowInput], tables: Sequence[pa.Table]
) -> list[pa.Table]:
    found = with_text_keys(inputs, [tables[0], tables[-1]], request.keys)
    return found[: len(request.inputs)]
