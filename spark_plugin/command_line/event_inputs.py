"""The inputs of a join, of which one stream is both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.arrow_inputs import ArrowInput
from spark_plugin.command_line.csv_keys import with_text_keys
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.arguments import JoinArguments


def both(inputs: Iterable[ArrowInput]) -> list[ArrowInput]:
    """Left and right; of one stream both are the same."""
    found = list(inputs)
    return [found[0], found[-1]]


def settled_arguments(request: JoinRequest, inputs: Sequence[ArrowInput]) -> JoinArguments:
    """The arguments for inputs of these columns: `JoinArguments.settled`.

    Raises
    ------
    Problem
        If nobody but Spark can tell the columns.
    """
    arguments = request.arguments
    if not arguments.is_open:
        return arguments
    for given in inputs:
        if given.source.is_uri and request.engine == "spark":
            raise Problem(
                f"{given.source.side}: '*' and --where need to know the columns, and of"
                f" {given.source.text} Spark alone can read them: name the columns, and filter the result"
            )
    return arguments.settled(*(given.schema for given in inputs))


def joined_tables(
    request: JoinRequest, inputs: Sequence[ArrowInput], tables: Sequence[pa.Table]
) -> list[pa.Table]:
    """What is joined: one table, or two whose keys can be compared."""
    if request.right is None:
        return [tables[0]]
    return with_text_keys(inputs, tables, request.keys)
