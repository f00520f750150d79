"""`coincide join`, on either engine."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from coincide.errors import SchemaError
from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.arrow_inputs import ArrowInput
from spark_plugin.command_line.csv_keys import read_ahead, with_text_keys
from spark_plugin.command_line.input_checks import (
    check_complete,
    check_for_spark,
    check_zones,
    path_columns,
)
from spark_plugin.command_line.inputs import Source, find_source
from spark_plugin.command_line.interruption import raise_if_interrupted
from spark_plugin.command_line.outputs import SparkUri, local_output, spark_output, write_frame
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.spark_session import session
from spark_plugin.command_line.summary import Summary
from spark_plugin.command_line.unknown_types import Types, unknown_types
from spark_plugin.command_line.ways import (
    closed_way,
    files_of,
    local_files_join,
    refuse_if_asked,
    warn_of_the_slower_way,
)
from spark_plugin.ways.files.columns import MissingColumn
from spark_plugin.ways.files.local import LocalFilesJoin
from spark_plugin.ways.files.planning import NotDirect
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.files.parquet_rows import ParquetRows
from spark_plugin.worker.files.publishing import Publication
from spark_plugin.worker.join import TableJoin
from spark_plugin.worker.reports.reports import extended
from spark_plugin.worker.timestamps.names import all_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_plugin.ways.correlation import Correlation
    from spark_plugin.ways.files.worker.slice_join import DirectJoin


_Written = tuple[Summary, set[str] | None]
"""What was done, and the files that hold it; None: all that are there."""


def run_join(request: JoinRequest) -> Summary:
    """Join and write the output.

    Raises
    ------
    CoincideError
        For bad usage or bad data; no output is left then, nor after any other failure.
    """
    sources = [
        find_source(side, text, request.file_format)
        for side, text in (("left", request.left), ("right", request.right))
    ]
    run = _run_local if request.engine == "local" else _run_spark
    with Progress(request.hide) as progress:
        done = run(request, sources, progress)
    return replace(done, output=request.hide(done.output), why=request.hide(done.why))


def _run_local(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request.output, request.overwrite, sources) as output:
        started = time.perf_counter()
        options = request.arguments.options
        inputs = [
            ArrowInput(s, "ns" in (options.unit_of(s.side), options.tick), tuple(times))
            for s, times in zip(sources, _time_names(request), strict=True)
        ]
        for given, columns in zip(inputs, request.columns, strict=True):
            check_complete(given, columns)
            check_zones(given, columns)
        types = _unknown_types(request, inputs)
        needed = zip(inputs, request.columns, types, strict=True)
        # First without rows: what is wrong with columns shows before anything is read.
        empty = [given.typed(columns, kinds).empty_table() for given, columns, kinds in needed]
        left, right = with_text_keys(inputs, empty, request.arguments.keys)
        TableJoin(left, right, request.arguments)
        at = _Place()
        job: LocalFilesJoin | TableJoin | None
        job, why = local_files_join(request, inputs, types, say=at.note)
        if job is None:
            tables = []
            inputs = read_ahead(request, inputs, types, progress.show)
            for given, columns, kinds in zip(inputs, request.columns, types, strict=True):
                progress.show(f"reading {given.source.text}")
                tables.append(given.table(columns, kinds))
            job = TableJoin(tables[0], tables[1], request.arguments)
        progress.show("joining")
        with ParquetRows(output.filesystem, output.aside, job.schema) as groups:
            for batch in job.batches():
                raise_if_interrupted()
                groups.write(batch)
                progress.show(f"joining{at}: {groups.rows:,} rows written", at.done, at.total)
        raise_if_interrupted()
        output.publish()
        seconds = time.perf_counter() - started
    done = job.summary
    assert done is not None
    return extended(
        Summary,
        done,
        output=request.output,
        engine="local",
        rows=groups.rows,
        seconds=seconds,
        why=why,
    )


class _Place:
    """Which slice of how many is joined."""

    def __init__(self) -> None:
        self.done = 0
        self.total: int | None = None

    def note(self, number: int, count: int) -> None:
        """The slice that begins."""
        self.done, self.total = number - 1, count

    def __str__(self) -> str:
        return "" if self.total is None else f" slice {self.done + 1:,} of {self.total:,}"


def _unknown_types(request: JoinRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """Types for what the files do not tell; of inputs that only Spark can open nothing is known."""
    left, right = (
        pa.schema([]) if request.engine == "spark" and given.source.is_uri else given.told(columns)
        for given, columns in zip(inputs, request.columns, strict=True)
    )
    return unknown_types(request, (left, right))


def _run_spark(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with spark_output(request.output, request.overwrite, sources) as output:
        inputs = [
            ArrowInput(source, times=tuple(times))
            for source, times in zip(sources, _time_names(request), strict=True)
        ]
        types = _check_before_spark(request, inputs)
        progress.show("starting Spark")
        begun = time.perf_counter()
        with session(request.master, request.conf, request.debug) as spark:
            started = time.perf_counter()
            raise_if_interrupted()
            done = _written_directly(request, inputs, types, spark, progress, output)
            if isinstance(done, str):
                done = _written_by_spark(request, inputs, types, spark, progress, output, done)
            seconds = time.perf_counter() - started
        raise_if_interrupted()
        summary, files = done
        output.publish(files)
    return replace(summary, seconds=seconds, start_seconds=started - begun)


def _written_directly(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
    output: Publication | SparkUri,
) -> _Written | str:
    """Let workers read and write files; why not, where that way is closed."""
    from spark_plugin.ways.files.join import summary_of, written_slices

    if isinstance(output, SparkUri):
        refuse_if_asked(request, closed := "the output does not lie on this machine")
        return closed
    planned = _planned_directly(request, inputs, types, spark)
    if isinstance(planned, str):
        refuse_if_asked(request, planned)
        return planned
    with progress.following(spark, "joining"):
        reports = written_slices(spark, planned, output.filesystem, output.aside)
    done = summary_of(planned, reports, 0.0, planned.plan.describe())
    summary = extended(Summary, done, output=request.output, engine="spark")
    return summary, {report.path for report in reports}


def _planned_directly(
    request: JoinRequest, inputs: list[ArrowInput], types: tuple[Types, Types], spark: SparkSession
) -> DirectJoin | str:
    """The plan, or why the direct way is closed."""
    from spark_plugin.ways.files.join import plan_direct

    closed = closed_way(request, inputs, types)
    if closed is not None:
        return closed
    try:
        left, right = map(files_of, inputs)
        return plan_direct(spark, left, right, request.arguments)
    except MissingColumn:
        raise
    except NotDirect as error:
        warn_of_the_slower_way(request, error)
        return str(error)
    except SchemaError as error:
        # What is wrong with columns is said by the other way, which may also bridge it.
        return str(error)


def _written_by_spark(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
    output: Publication | SparkUri,
    why: str,
) -> _Written:
    plan = _spark_join(request, inputs, types, spark, progress)
    if plan.way == "broadcast":
        not_direct = "" if request.way.startswith("broadcast") else f"; not direct: {why}"
        why = plan.plan.describe() + not_direct
    with progress.following(spark, "joining"):
        write_frame(plan.dataframe, output)
    summary = extended(
        Summary, plan.summary(), output=request.output, engine="spark", rows=output.rows(),
        slices=plan.slices, replication=plan.replication, why=why,
    )  # fmt: skip
    return summary, None


def _check_before_spark(request: JoinRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """What can be told without Spark fails before it has to start. Types for unknown columns."""
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = _unknown_types(request, inputs)
    tables = []
    for given, names, unknown in zip(inputs, _timestamp_names(request), types, strict=True):
        if given.source.is_uri or path_columns(given.source).intersection(names):
            return types  # Spark alone knows of which type they are
        schema = given.typed(names, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    # Times only: as keys, Spark takes many types for one that differ here.
    left, right = _timestamp_names(request)
    times = replace(request.arguments, by=(), left_columns=left, right_columns=right)
    TableJoin(tables[0], tables[1], times)
    return types


def _time_names(request: JoinRequest) -> tuple[list[str], list[str]]:
    left, right = (list(dict.fromkeys(names.clocks)) for names in request.arguments.times)
    return left, right


def _timestamp_names(request: JoinRequest) -> tuple[list[str], list[str]]:
    """All columns that timestamps are made of."""
    left, right = map(all_columns, request.arguments.times)
    return left, right


def _spark_join(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
) -> Correlation:
    from spark_plugin.command_line.spark_inputs import spark_frame
    from spark_plugin.ways.correlation import plan_correlation

    inputs = read_ahead(request, inputs, types, progress.show)
    with progress.following(spark, "planning"):
        left, right = (
            spark_frame(spark, *one) for one in zip(inputs, request.columns, types, strict=True)
        )
        return plan_correlation(left, right, request.arguments, observe=True)
