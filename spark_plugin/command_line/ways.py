"""Whether a join may take the direct way, from what is known before any footer is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from coincide.errors import DataError, SchemaError
from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.input_checks import path_columns
from spark_plugin.command_line.problems import Problem, tell_closed
from spark_plugin.ways.files.columns import MissingColumn
from spark_plugin.ways.files.planning import NotDirect
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.files.finding import place_of
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.inputs.unknown_types import Types

Planned = TypeVar("Planned")


def _closed(
    request: JoinRequest, inputs: list[ArrowInput], types: tuple[Types, Types]
) -> str | None:
    """Why the direct way is closed; None if it may be open."""
    if request.way not in ("auto", "direct"):
        return "as asked"
    for given, columns, unknown in zip(inputs, request.columns, types, strict=True):
        side = given.source.side
        if given.source.file_format != "parquet":
            return f"{side} is no Parquet"
        if given.source.is_uri and not _opens(given.source):
            return f"PyArrow does not open {given.source.text}"
        if unknown or path_columns(given.source).intersection(columns):
            return f"{side} has columns that its files do not hold or do not give a type"
    return None


def _opens(source: Source) -> bool:
    try:
        place_of(source.side, source.text)
    except DataError:
        return False
    return True


def planned_directly(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    plan: Callable[[str, str | None, JoinArguments], Planned],
) -> Planned | str:
    """What `plan` makes of both inputs, or why the direct way is closed.

    Raises
    ------
    Problem
        If the way is closed, and the request asks for it.
    """
    closed = _closed(request, inputs, types)
    if closed is None:
        try:
            right = None if request.right is None else inputs[1].source.text
            return plan(inputs[0].source.text, right, request.arguments)
        except MissingColumn:
            raise
        except NotDirect as error:
            if request.way == "auto":
                tell_closed(request.hide(str(error)))
            closed = str(error)
        except SchemaError as error:
            # What is wrong with columns is said by the other way, which may also bridge it.
            closed = str(error)
    refuse_if_asked(request, closed)
    return closed


def refuse_if_asked(request: JoinRequest, closed: str) -> None:
    """Refuse what was asked for and is not possible."""
    if request.way == "direct":
        raise Problem(f"--way direct is not possible: {closed}")
