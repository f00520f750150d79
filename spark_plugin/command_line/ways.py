"""Whether a join may take the direct way, from what is known before any footer is read."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pyarrow as pa
from pyarrow import fs

from coincide.errors import SchemaError
from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.arrow_inputs import ArrowInput
from spark_plugin.command_line.input_checks import path_columns
from spark_plugin.command_line.problems import Problem
from spark_plugin.command_line.unknown_types import Types
from spark_plugin.ways.files.columns import MissingColumn
from spark_plugin.ways.files.local import LocalFilesJoin
from spark_plugin.ways.files.planning import NotDirect


def closed_way(
    request: JoinRequest, inputs: list[ArrowInput], types: tuple[Types, Types]
) -> str | None:
    """Why the direct way is closed; None if it may be open."""
    if request.way not in ("auto", "direct"):
        return "as asked"
    for given, columns, unknown in zip(inputs, request.columns, types, strict=True):
        side = given.source.side
        if given.source.file_format != "parquet":
            return f"{side} is no Parquet"
        if given.source.is_uri and not _opens(given.source.text):
            return f"PyArrow does not open {given.source.text}"
        if unknown or path_columns(given.source).intersection(columns):
            return f"{side} has columns that its files do not hold or do not give a type"
    return None


def _opens(uri: str) -> bool:
    try:
        fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError):
        return False
    return True


def local_files_join(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    say: Callable[[int, int], None],
) -> tuple[LocalFilesJoin | None, str]:
    """The join of files in this process, or None where the way is closed; and why.

    Raises
    ------
    Problem
        If the way is closed, and the request asks for it.
    """
    closed = closed_way(request, inputs, types)
    if closed is None:
        try:
            left, right = (given.source.text for given in inputs)
            job = LocalFilesJoin(left, right, request.arguments, say)
            return job, job.plan.describe()
        except MissingColumn:
            raise
        except NotDirect as error:
            warn_of_the_slower_way(request, error)
            closed = str(error)
        except SchemaError as error:
            # What is wrong with columns is said by the other way, which may also bridge it.
            closed = str(error)
    refuse_if_asked(request, closed)
    return None, closed


def warn_of_the_slower_way(request: JoinRequest, closed: NotDirect) -> None:
    """Say on stderr, before the slower way begins, why it is taken and what would help."""
    if request.way == "auto":
        print(f"coincide: not directly: {request.hide(str(closed))}", file=sys.stderr)


def refuse_if_asked(request: JoinRequest, closed: str) -> None:
    """Refuse what was asked for and is not possible."""
    if request.way == "direct":
        raise Problem(f"--way direct is not possible: {closed}")
