"""`coincide join`, on either engine."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.engines import settled
from spark_plugin.command_line.event_inputs import both, joined_tables
from spark_plugin.command_line.input_checks import (
    check_complete,
    check_for_spark,
    check_zones,
    path_columns,
)
from spark_plugin.command_line.known_columns import with_known_columns
from spark_plugin.command_line.outputs import (
    SparkOutput,
    SparkUri,
    local_output,
    spark_output,
    write_frame,
)
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.runs import spark_at_work, written
from spark_plugin.command_line.summary import Summary
from spark_plugin.command_line.ways import planned_directly, refuse_if_asked
from spark_plugin.ways.files.local import LocalFilesJoin
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.csv_keys import read_ahead
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.inputs.unknown_types import Types, types_of_unknown
from spark_plugin.worker.join import TableJoin
from spark_plugin.worker.reports.reports import JoinSummary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_plugin.ways.correlation import Correlation


_Written = tuple[JoinSummary, set[str] | None]
"""What was done, and the files that hold it; None: all that are there."""


def run_join(request: JoinRequest) -> Summary:
    """Join and write the output.

    Raises
    ------
    CoincideError
        For bad usage or bad data; no output is left then, nor after any other failure.
    """
    sources = request.sources()
    request = settled(request, sources)
    run = _run_local if request.engine == "local" else _run_spark
    with Progress(request.hide) as progress:
        done = run(request, sources, progress)
    join = replace(done.join, why=request.hide(done.join.why))
    output, why = request.hide(request.output), request.engine_why
    return replace(done, join=join, output=output, engine_why=why)


def _run_local(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request, sources) as output:
        started = time.perf_counter()
        options = request.arguments.options
        inputs = both(
            ArrowInput(s, "ns" in (options.unit_of(s.side), options.tick), tuple(times))
            for s, times in zip(sources, request.arguments.time_columns, strict=False)
        )
        request = with_known_columns(request, inputs)
        for given, columns in zip(inputs, request.columns, strict=True):
            check_complete(given, columns)
            check_zones(given, columns)
        types = types_of_unknown(request, inputs)
        needed = zip(inputs, request.columns, types, strict=True)
        # First without rows: what is wrong with columns shows before anything is read.
        empty = [given.typed(columns, kinds).empty_table() for given, columns, kinds in needed]
        _job(_of_known_types(request, inputs, empty), inputs, empty)
        at = _Place()
        job: LocalFilesJoin | TableJoin | str
        job = planned_directly(request, inputs, types, partial(LocalFilesJoin, say=at.note))
        why = job if isinstance(job, str) else job.plan.describe()
        if isinstance(job, str):
            tables = []
            inputs = read_ahead(request, inputs, types, progress.show)
            needed = zip(inputs, request.columns, types, strict=True)
            for given, columns, kinds in islice(needed, len(sources)):
                progress.show(f"reading {given.source.text}")
                tables.append(given.table(columns, kinds))
            job = _job(request, inputs, tables)
        progress.show("joining")

        def say(rows: int) -> None:
            progress.show(f"joining{at}: {rows:,} rows written", at.done, at.total)

        rows = written(job.batches(), job.schema, output, say)
        output.publish()
        seconds = time.perf_counter() - started
    done = job.summary
    assert done is not None
    done = replace(done, rows=rows, seconds=seconds, why=why)
    return Summary(done, request.output, "local")


def _job(request: JoinRequest, inputs: list[ArrowInput], tables: list[pa.Table]) -> TableJoin:
    left, *right = joined_tables(request, inputs, tables)
    return TableJoin(left, right[0] if right else None, request.arguments)


def _of_known_types(
    request: JoinRequest, inputs: list[ArrowInput], empty: list[pa.Table]
) -> JoinRequest:
    """Without a condition on pairs whose columns may prove to be texts, once all of CSV is read."""
    tested = request.arguments.tested
    guessed = (
        set(given.guessed(table.schema)).intersection(names)
        for given, table, names in zip(inputs, empty, tested, strict=True)
    )
    if not any(guessed):
        return request
    return replace(request, arguments=replace(request.arguments, where=None))


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


def _run_spark(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with spark_output(request, sources) as output:
        inputs = both(
            ArrowInput(source, times=tuple(times))
            for source, times in zip(sources, request.arguments.time_columns, strict=False)
        )
        request = with_known_columns(request, inputs)
        types = _check_before_spark(request, inputs)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            done = _written_directly(request, inputs, types, spark, progress, output)
            if isinstance(done, str):
                done = _written_by_spark(request, inputs, types, spark, progress, output, done)
            seconds = time.perf_counter() - started
        summary, files = done
        output.publish(files)
    return Summary(replace(summary, seconds=seconds), request.output, "spark", start_seconds)


def _written_directly(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
    output: SparkOutput,
) -> _Written | str:
    """Let workers read and write files; why not, where that way is closed."""
    from spark_plugin.ways.files.join import plan_direct, summary_of, written_slices

    if isinstance(output, SparkUri):
        refuse_if_asked(request, closed := "the output does not lie on this machine")
        return closed
    planned = planned_directly(request, inputs, types, partial(plan_direct, spark))
    if isinstance(planned, str):
        return planned
    with progress.following(spark, "joining"):
        reports = written_slices(spark, planned, output.filesystem, output.aside)
    done = summary_of(planned, reports, 0.0, planned.plan.describe())
    return done, {report.path for report in reports}


def _written_by_spark(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
    output: SparkOutput,
    why: str,
) -> _Written:
    plan = _spark_join(request, inputs, types, spark, progress)
    if plan.way in ("broadcast", "collect"):
        not_direct = "" if request.way.startswith(plan.way) else f"; not direct: {why}"
        why = plan.plan.describe() + not_direct
    with progress.following(spark, "joining"):
        write_frame(plan.dataframe, output)
    return replace(plan.summary(), rows=output.rows(), why=why), None


def _check_before_spark(request: JoinRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """What can be told without Spark fails before it has to start. Types for unknown columns."""
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = types_of_unknown(request, inputs)
    tables = []
    for given, names, unknown in zip(
        inputs, request.arguments.timestamp_columns, types, strict=True
    ):
        if given.source.is_uri or path_columns(given.source).intersection(names):
            return types  # Spark alone knows of which type they are
        schema = given.typed(names, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    # Times only: as keys, Spark takes many types for one that differ here.
    left, right = request.arguments.timestamp_columns
    times = replace(
        request.arguments,
        by=(),
        left_columns=left,
        right_columns=right,
        where=None,
        case_fold=False,
    )
    TableJoin(tables[0], None if request.right is None else tables[1], times)
    return types


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
    sides = 1 if request.right is None else 2
    needed = islice(zip(inputs, request.columns, types, strict=True), sides)
    with progress.following(spark, "planning"):
        left, *right = (spark_frame(spark, *one) for one in needed)
        return plan_correlation(left, right[0] if right else None, request.arguments, observe=True)
