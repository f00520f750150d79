"""What commands do alike: batches into a file, a session of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.outputs import LocalOutput
from coincide.command_line.progress import Progress
from coincide.command_line.requests import Request
from coincide.command_line.summary import Finished

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def written(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    output: LocalOutput,
    say: Callable[[int], None],
) -> int:
    """Write batches to the file that becomes the output, and tell how many rows they had."""
    with output.rows_writer(schema) as groups:
        for batch in batches:
            raise_if_interrupted()
            groups.write(batch)
            say(groups.rows)
    raise_if_interrupted()
    return groups.rows


@contextmanager
def spark_at_work(
    request: Request, progress: Progress
) -> Iterator[tuple[SparkSession, float, float]]:
    """The session of one command, when it was there, and how long that took: seconds."""
    from coincide.command_line.spark import session  # imports pyspark

    progress.show("starting Spark")
    begun = time.perf_counter()
    with session(request.master, request.conf, request.debug) as spark:
        started = time.perf_counter()
        raise_if_interrupted()
        yield spark, started, started - begun
    raise_if_interrupted()


def finished(
    request: Request,
    what: str,
    counted: tuple[dict[str, object], list[tuple[str, str]]] | None,
    rows: int | None,
    seconds: float,
    start_seconds: float | None = None,
) -> Finished:
    """What a command says of itself in the end."""
    values, about = counted or ({}, [(what, "not counted")])
    output = request.hide(request.output)
    return Finished(
        values, about, rows, seconds, output, request.engine, start_seconds, request.engine_why
    )
