"""`coincide join`, on either engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from coincide.command_line.engines import settled
from coincide.command_line.event_inputs import (
    checked_before_spark,
    checked_types,
    inputs_of,
    read_tables,
    with_known_columns,
)
from coincide.command_line.outputs import (
    SparkOutput,
    SparkUri,
    local_output,
    spark_output,
    write_frame,
)
from coincide.command_line.problems import Problem, tell_closed
from coincide.command_line.progress import Progress
from coincide.command_line.requests import EventRequest, checked, lines_left_out
from coincide.command_line.runs import spark_at_work, written
from coincide.command_line.summary import Summary
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.finding import place_of
from coincide.engine.files.footers import MissingColumn
from coincide.engine.files.pair_types import Types
from coincide.engine.files.planning import LocalFilesJoin, NotDirect
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.words import shifts, worded_join
from coincide.engine.reports.reports import JoinSummary
from coincide.model.errors import DataError, SchemaError, marked
from coincide.model.options import check_way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_plugin.ways.correlation import Correlation


@dataclass(frozen=True, kw_only=True)
class JoinRequest(EventRequest):
    """One `coincide join`."""

    left: str
    right: str | None
    arguments: JoinArguments

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        called = self.arguments.sides
        return {called[0]: self.left} | ({} if self.right is None else {called[1]: self.right})

    @property
    def way(self) -> str:
        """As `CorrelateOptions.way`."""
        return self.arguments.options.way


def request(**words: Any) -> JoinRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide join`."""
    check_way("way", words["way"])
    spark_only = {"--slices": words["slices"]}
    if words["way"].startswith("broadcast"):
        spark_only[f"--way {words['way']}"] = True
    return JoinRequest(
        left=words["left"],
        right=words["right"],
        arguments=replace(worded_join(words), shifts=shifts(words["shifts"])),
        **checked(words, spark_only),
    )


_Written = tuple[JoinSummary, set[str] | None]
"""What was done, and the files that hold it; None: all that are there."""


def run(request: JoinRequest) -> Summary:
    """Join and write the output."""
    sources = request.sources()
    request = settled(request, sources)
    run = _run_local if request.engine == "local" else _run_spark
    with Progress(request.hide) as progress:
        done = run(request, sources, progress)
    join = replace(done.join, why=request.hide(done.join.why))
    output, why = request.hide(request.output), request.engine_why
    return replace(done, join=join, output=output, engine_why=why, skipped=lines_left_out(sources))


def _run_local(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request, sources) as output:
        started = time.perf_counter()
        inputs = inputs_of(request, sources)
        request = with_known_columns(request, inputs)
        types = checked_types(request, inputs, _job)
        at = _Place()
        job: LocalFilesJoin | TableJoin | str
        job = planned_directly(request, inputs, types, partial(LocalFilesJoin, say=at.note))
        why = job if isinstance(job, str) else job.plan.describe()
        if isinstance(job, str):
            tables = read_tables(request, inputs, types, progress.show)
            job = _job(request.arguments, tables)
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


def _job(arguments: PairArguments, tables: list[pa.Table]) -> TableJoin:
    left, *right = tables
    return TableJoin(left, right[0] if right else None, arguments)


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
        inputs = inputs_of(request, sources)
        request = with_known_columns(request, inputs)
        types = checked_before_spark(request, inputs, _job)
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
    if plan.way.startswith("broadcast"):
        not_direct = "" if request.way.startswith("broadcast") else f"; not direct: {why}"
        why = plan.plan.describe() + not_direct
    with progress.following(spark, "joining"):
        write_frame(plan.dataframe, output)
    return replace(plan.summary(), rows=output.rows(), why=why), None


def _spark_join(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
) -> Correlation:
    from coincide.command_line.spark import spark_frame
    from spark_plugin.ways.correlation import plan_correlation

    sides = 1 if request.right is None else 2
    needed = islice(zip(inputs, request.columns, types, strict=True), sides)
    with progress.following(spark, "planning"):
        left, *right = (spark_frame(spark, *one) for one in needed)
        return plan_correlation(left, right[0] if right else None, request.arguments, observe=True)


Planned = TypeVar("Planned")


def _closed(
    request: JoinRequest, inputs: list[ArrowInput], types: tuple[Types, Types]
) -> str | None:
    """Why the direct way is closed; None if it may be open."""
    if request.way not in ("auto", "files"):
        return "as asked"
    for given, columns, unknown in zip(inputs, request.columns, types, strict=True):
        side = given.source.side
        if not given.source.format.has_row_groups:
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
    """What `plan` makes of both inputs, or why the direct way is closed."""
    closed = _closed(request, inputs, types)
    if closed is None:
        try:
            right = None if request.right is None else inputs[1].source.text
            return plan(inputs[0].source.text, right, request.arguments)
        except MissingColumn:
            raise
        except NotDirect as error:
            if request.way == "auto":
                tell_closed(request.hide(error))
            closed = marked(error)
        except SchemaError as error:
            # What is wrong with columns is said by the other way, which may also bridge it.
            closed = marked(error)
    refuse_if_asked(request, closed)
    return closed


def refuse_if_asked(request: JoinRequest, closed: str) -> None:
    """Refuse what was asked for and is not possible."""
    if request.way == "files":
        raise Problem(f"--way files is not possible: {closed}")
