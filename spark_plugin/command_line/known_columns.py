"""Requests that need to know all columns of their inputs: those of `'*'` and of `--where`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from spark_plugin.command_line.problems import Problem
from spark_plugin.command_line.requests import EventRequest
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput

Request = TypeVar("Request", bound=EventRequest)


def with_known_columns(request: Request, inputs: Sequence[ArrowInput]) -> Request:
    """The request for inputs of these columns: `PairArguments.settled`.

    Raises
    ------
    CoincideError
        If nobody but Spark can read them, or `--where` makes no sense of them.
    """
    if not request.arguments.is_open:
        return request
    for given in inputs:
        if given.source.is_uri and request.engine == "spark":
            raise Problem(
                f"{given.source.side}: '*' and --where need to know the columns, and of"
                f" {given.source.text} Spark alone can read them: name the columns, and filter the result"
            )
    return request.of(request.arguments.settled(*(given.schema for given in inputs)))
