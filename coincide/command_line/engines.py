"""One run of a command: its inputs, on which engine it runs and why, and its summary."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow.parquet as pq

from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.outputs import local_output, spark_output
from coincide.command_line.problems import warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.requests import Request
from coincide.command_line.summary import Summary
from coincide.engine.files.finding import place_of
from coincide.engine.files.footers import parsed_footers
from coincide.engine.files.source import COMPRESSED, Source, reading
from coincide.engine.room import bytes_words, check_most, free_memory
from coincide.model.errors import DataError
from coincide.model.extras import SPARK, require
from coincide.model.threads import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUTO = "auto"
BYTES_OF_A_ROW = 200
"""Memory that a join in one process takes for a row without its columns: sorted, counted and matched."""
COPIES = 2
"""Copies of the columns, which are read and then sorted."""
BYTES_OF_A_BYTE = 8
"""Memory for each byte of a file without a footer, whose rows may be short."""
_UNPACKED = 5
_SHARE = 2
"""One part in this many of what is free may be taken."""

_Request = TypeVar("_Request", bound=Request)


def settled(request: _Request, sources: Sequence[Source]) -> _Request:
    """The request with an engine instead of ``"auto"``, and why it is this one."""
    if request.engine != AUTO:
        return request
    engine, why = _chosen(request, sources)
    return replace(request, engine=engine, engine_why=request.hide(why))


def _chosen(request: Request, sources: Sequence[Source]) -> tuple[str, str]:
    if not opens("output", request.output):
        return "spark", f"PyArrow cannot open {request.output}"
    for source in sources:
        if source.is_uri and not opens(source.side, source.text):
            return "spark", f"PyArrow cannot open {source.text}"
    columns = request.read_columns or [None] * len(sources)
    sizes, needed = zip(*map(_size, sources, columns), strict=False)
    told = f"{bytes_words(sum(sizes))} of input"
    if not any(source.format.has_row_groups for source in sources):
        # Spark would read them into the memory of this process, and then copy them.
        return "local", told
    free = free_memory() // _SHARE
    if sum(needed) <= free:
        return "local", told
    return "spark", (
        f"{told} would need about {bytes_words(sum(needed))} of memory in one process, and"
        f" {bytes_words(free)} is half of the free memory"
    )


def opens(what: str, text: str) -> bool:
    """Whether PyArrow reads and writes there."""
    with suppress(DataError):
        return bool(place_of(what, text)) if text.strip() else True
    return False


def _size(source: Source, columns: Collection[str] | None) -> tuple[int, int]:
    """Bytes of an input as it lies there, and as a join in one process needs them, about."""
    files = source.found
    infos = files.filesystem.get_file_info(list(files.paths))
    stored = sum(info.size or 0 for info in infos)
    if not source.format.has_row_groups:
        packed = sum(info.size or 0 for info in infos if info.path.lower().endswith(COMPRESSED))
        return stored, BYTES_OF_A_BYTE * (stored + (_UNPACKED - 1) * packed)

    with reading(source):
        told = [_rows_and_bytes(footer, columns) for footer in parsed_footers(files)]
    rows, plain = map(sum, zip(*told, strict=True))
    return stored, BYTES_OF_A_ROW * rows + COPIES * plain


def _rows_and_bytes(footer: pq.FileMetaData, columns: Collection[str] | None) -> tuple[int, int]:
    """Rows of a Parquet file, and bytes of some columns, or all, before they were compressed."""
    size = 0
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        chunks = map(group.column, range(group.num_columns))
        size += sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if columns is None or chunk.path_in_schema.partition(".")[0] in columns
        )
    return footer.num_rows, size


def run(request: Request) -> Summary:
    """Do the work, and write the output."""
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
        total: int | None = None

        def pulse(events: int) -> None:
            raise_if_interrupted()
            if events and not groups.rows:
                progress.show(f"{request.doing}: {events:,} events have been compared")

        with output.rows_writer(work.schema) as groups, watched(pulse):
            for batch in work.batches:
                raise_if_interrupted()
                groups.write(batch)
                work.limit.check_disk(groups.rows, output.disk_use())
                if total is None and (total := work.limit.rows):
                    progress.tell_many(total)
                of = "" if total is None else f" of {total:,}"
                progress.show(
                    f"{request.doing}: {groups.rows:,}{of} rows written", groups.rows, total
                )
        raise_if_interrupted()
        output.publish()
        return Summary(work.counted(), groups.rows, time.perf_counter() - started)


def _on_spark(request: Request, sources: list[Source], progress: Progress) -> Summary:
    require(SPARK, "pyspark", "pandas")
    with spark_output(request, sources) as output:
        work = request.on_spark(sources)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            done = work(spark, progress, output)
            seconds = time.perf_counter() - started
        pairs = done.counted.values.get("pairs")
        check_most(pairs if isinstance(pairs, int) else 0, request.most_pairs)
        rows = output.rows() if done.files is None else done.rows
        output.publish(done.files)
    return Summary(done.counted, rows, seconds, start_seconds)


@contextmanager
def spark_at_work(
    request: Request, progress: Progress
) -> Iterator[tuple[SparkSession, float, float]]:
    """The session of one command, when it was there, and how long that took: seconds."""
    require(SPARK, "pyspark", "pandas")
    from coincide.command_line.spark import session  # imports pyspark

    progress.show("starting Spark")
    begun = time.perf_counter()
    with session(request.master, request.conf, request.debug) as spark:
        started = time.perf_counter()
        raise_if_interrupted()
        yield spark, started, started - begun
    raise_if_interrupted()


def told(request: Request, sources: list[Source], done: Summary) -> Summary:
    """With what the summary says of the request and the inputs."""
    counts = {source.side: sum(source.skipped.values()) for source in sources}
    return replace(
        done,
        output=request.hide(request.output),
        engine=request.engine,
        engine_why=request.engine_why,
        skipped={side: count for side, count in counts.items() if count},
    )
