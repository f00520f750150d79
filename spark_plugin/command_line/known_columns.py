"""Requests that need to know all columns of their inputs: those of `'*'` and of `--where`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from spark_plugin.command_line.problems import Problem
from spark_plugin.command_line.requests import EventRequest
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.pair_arguments import PairArguments

Request = TypeVar("Request", bound=EventRequest)
Arguments = TypeVar("Arguments", bound=PairArguments)


def with_known_columns(request: Request, inputs: Sequence[ArrowInput]) -> Request:
    """The request for inputs of these columns.

    Raises
    ------
    CoincideError
        As `known_columns`.
    """
    return replace(request, arguments=known_columns(request.arguments, inputs, request.engine))


def known_columns(arguments: Arguments, inputs: Sequence[ArrowInput], engine: str) -> Arguments:
    """The arguments for inputs of these columns: `PairArguments.settled`.

    Raises
    ------
    CoincideError
        If nobody but Spark can read them, or `--where` makes no sense of them.
    """
    if not arguments.is_open:
        return arguments
    for given in inputs:
        if given.source.is_uri and engine == "spark":
            raise Problem(
                f"{given.source.side}: '*' and --where need to know the columns, and of"
                f" {given.source.text} Spark alone can read them: name the columns, and filter the result"
            )
    return arguments.settled(*(given.schema for given in inputs))
