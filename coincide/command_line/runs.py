"""One run of a command: inputs, an engine, rows that become the output, and what is told of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from coincide.command_line.engines import settled
from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.outputs import LocalOutput, local_output, spark_output
from coincide.command_line.problems import warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.requests import Request
from coincide.command_line.summary import Summary
from coincide.engine.files.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(request: Request) -> Summary:
    """Do what is asked for, and write the output."""
    sources = request.sources()
    request = settled(request, sources)
    engine = _in_process if request.engine == "local" else _on_spark
    with warnings_as_lines(), Progress(request.hide) as progress:
        return told(request, sources, engine(request, sources, progress))


def _in_process(request: Request, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request, sources) as output:
        started = time.perf_counter()
        work = request.in_process(sources, progress)
        progress.show(request.doing)

        def say(rows: int) -> None:
            progress.show(f"{request.doing}: {rows:,} rows written")

        rows = _written(work.batches, work.schema, output, say)
        output.publish()
        return Summary(work.counted(), rows, time.perf_counter() - started)


def _written(
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


def _on_spark(request: Request, sources: list[Source], progress: Progress) -> Summary:
    with spark_output(request, sources) as output:
        work = request.on_spark(sources)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            done = work(spark, progress, output)
            seconds = time.perf_counter() - started
        rows = output.rows() if done.files is None else done.rows
        output.publish(done.files)
    return Summary(done.counted, rows, seconds, start_seconds)


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


def told(request: Request, sources: list[Source], done: Summary) -> Summary:
    """With what of the request and the inputs is told, too."""
    counts = {source.side: sum(source.skipped.values()) for source in sources}
    return replace(
        done,
        output=request.hide(request.output),
        engine=request.engine,
        engine_why=request.engine_why,
        skipped={side: count for side, count in counts.items() if count},
    )
