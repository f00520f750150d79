"""`coincide borders`, on either engine."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coincide.command_line.engines import settled
from coincide.command_line.event_inputs import (
    check_complete,
    check_for_spark,
    check_zones,
)
from coincide.command_line.outputs import local_output, spark_output, write_frame
from coincide.command_line.problems import Problem, tell_closed
from coincide.command_line.progress import Progress
from coincide.command_line.requests import Request, checked, lines_left_out
from coincide.command_line.runs import finished, spark_at_work, written
from coincide.command_line.summary import Finished
from coincide.engine.borders.arguments import QUERIES, READINGS, BorderArguments
from coincide.engine.borders.monitor import BorderMonitor
from coincide.engine.borders.queries import query_table, read_queries
from coincide.engine.borders.readings import ReadingColumns
from coincide.engine.borders.reports import ONE_STREAM_AGAIN, BorderSummary, losses_of
from coincide.engine.events.schemas import plain_schema
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.words import names, numbers
from coincide.engine.reports.warnings import are_most
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import marked
from coincide.model.options import check_way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_plugin.frames.borders import BorderPlan


_WAYS = ("auto", "files", "exchange")
_OPTIONS = (
    "first", "pass_through", "interpolate", "processing", "invalid", "unit", "tick", "backend",
    "batch_events", "threads", "closed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BorderRequest(Request):
    """One `coincide borders`."""

    readings: str
    queries: str
    arguments: BorderArguments
    way: str = "auto"

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return {READINGS: self.readings, QUERIES: self.queries}

    @property
    def read_columns(self) -> list[list[str] | None]:  # noqa: D102
        return [self.arguments.columns, None]


def request(**words: Any) -> BorderRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide borders`."""
    check_way("way", words["way"], _WAYS)
    given: dict[str, Any] = {name: words[name] for name in _OPTIONS}
    stream = None if words["stream"] == "-" else words["stream"]
    margins = numbers("--hysteresis", words["hysteresis"])
    options = BorderOptions(hysteresis=margins[0] if len(margins) == 1 else tuple(margins), **given)
    values = names("--values", words["values"] or ["value"])
    return BorderRequest(
        readings=words["readings"],
        queries=words["queries"],
        arguments=BorderArguments(
            stream, words["time"], values, words["query"], options, words["closed_column"]
        ),
        way=words["way"],
        **checked(words, {"--way": words["way"] != "auto"}),
    )


def run(request: BorderRequest) -> Finished:
    """Find crossings and write the output."""
    readings, queries = sources = request.sources()
    request = settled(request, sources)
    run = _run_local if request.engine == "local" else _run_spark
    with Progress(request.hide) as progress:
        inputs = BorderInputs.of(request.arguments, readings, queries, request.engine)
        done = run(request, inputs, progress)
    return replace(done, skipped=lines_left_out(sources))


def _run_local(request: BorderRequest, inputs: BorderInputs, progress: Progress) -> Finished:
    with local_output(request, inputs.sources) as output:
        started = time.perf_counter()
        schema = inputs.checked_schema()
        progress.show(f"reading {inputs.queries.source.text}")
        queries = inputs.query_table()
        # First without readings: what is wrong with columns shows before they are read.
        monitor = _monitor(queries, request.arguments, schema)
        progress.show(f"reading {inputs.readings.source.text}")
        found, tables = inputs.tables(schema)
        if found != schema:
            monitor = _monitor(queries, request.arguments, found)

        def say(rows: int) -> None:
            progress.show(f"looking for crossings: {rows:,} found")

        batches = chain.from_iterable(map(monitor.batches, tables))
        rows = written(batches, monitor.schema, output, say)
        output.publish()
        seconds = time.perf_counter() - started
    return finished(request, "crossings", _counted(monitor.summary()), rows, seconds)


def _monitor(queries: pa.Table, arguments: BorderArguments, schema: pa.Schema) -> BorderMonitor:
    """A monitor that knows the columns of readings."""
    monitor = BorderMonitor(queries, **vars(arguments))
    monitor.push(schema.empty_table())
    return monitor


def _run_spark(request: BorderRequest, inputs: BorderInputs, progress: Progress) -> Finished:
    with spark_output(request, inputs.sources) as output:
        queries = _checked_before_spark(request, inputs)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            with progress.following(spark, "planning"):
                plan = _planned(request, inputs, queries, spark)
            with progress.following(spark, "looking for crossings"):
                write_frame(plan.dataframe, output)
            counted = _counted(plan.summary(), plan.why) if plan.is_observable else None
            seconds = time.perf_counter() - started
        rows = output.rows()
        output.publish()
    return finished(request, "crossings", counted, rows, seconds, start_seconds)


def _planned(
    request: BorderRequest, inputs: BorderInputs, queries: pa.Table | None, spark: SparkSession
) -> BorderPlan:
    """By the direct way where it is open, else by an exchange."""
    from coincide.command_line.spark import spark_frame
    from coincide.engine.files.planning import NotDirect
    from spark_plugin.frames.borders import ReadingFrame, plan_crossings
    from spark_plugin.ways.files.borders import plan_file_crossings

    given: Any = spark_frame(spark, inputs.queries, []) if queries is None else queries
    readings, source = inputs.readings, inputs.readings.source
    # The same checks for both ways, and the same errors.
    frame = spark_frame(spark, readings, request.arguments.columns, inputs.types)
    try:
        if request.way == "exchange":
            raise NotDirect("as asked")
        own = path_columns(source) or readings.lacks_name(request.arguments.columns)
        if own:
            raise NotDirect(f"{READINGS} is no Parquet that holds all columns")
        seen = ReadingFrame.of(frame, request.arguments).seen
        return plan_file_crossings(spark, source.text, given, request.arguments, seen, observe=True)
    except NotDirect as closed:
        if request.way == "files":
            raise Problem(f"--way files is not possible: {marked(closed)}") from None
        if request.way == "auto":
            tell_closed(request.hide(marked(closed)))
    return plan_crossings(frame, given, request.arguments, observe=True)


def _checked_before_spark(request: BorderRequest, inputs: BorderInputs) -> pa.Table | None:
    """What can be told without Spark fails before it has to start. The queries, if PyArrow opens them."""
    check_for_spark(inputs.readings, request.arguments.columns)
    queries = None if inputs.queries.source.is_uri else inputs.query_table()
    source = inputs.readings.source
    if queries is not None and not source.is_uri and not path_columns(source):
        # Their columns only: executors may have what a backend needs, and the driver may not.
        ReadingColumns.of(inputs.schema(), request.arguments)
        read_queries(query_table(queries, request.arguments), request.arguments)
    return queries


def _counted(
    summary: BorderSummary, why: str = ""
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    tick = None if summary.tick is None else summary.tick.unit
    values = {
        **asdict(summary),
        "tick": tick,
        "rounded": summary.rounded or None,
        "why_none": list(summary.why_none) or None,
        "waiting": None,  # of a monitor alone
    }
    if not why:
        return values, _lines(summary)
    told = {"way": "files", "why": why}
    return {**values, **told}, [*_lines(summary), ("way", f"files: {why}")]


def _lines(summary: BorderSummary) -> list[tuple[str, str]]:
    readings = [f"{summary.readings:,} rows"]
    if summary.gaps:
        readings.append(f"{summary.gaps:,} gaps")
    if summary.repeated:
        cure = f". {ONE_STREAM_AGAIN}"
        again = cure * are_most(summary.repeated, summary.readings)
        readings.append(f"{summary.repeated:,} of a time again, left out{again}")
    if summary.late:
        readings.append(f"{summary.late:,} too late, left out")
    readings += [words for _, words in losses_of(summary)]
    empty = f", {summary.empty:,} of them empty" if summary.empty else ""
    return [
        ("readings", "; ".join(readings)),
        ("queries", f"{summary.queries:,}{empty}"),
        ("entered", f"{summary.entered:,}"),
        ("left", f"{summary.left:,}"),
        ("retrieved", f"{summary.retrieved:,}"),
        *zip(["no crossing:", *[""] * len(summary.why_none)], summary.why_none, strict=False),
    ]


@dataclass(frozen=True)
class BorderInputs:
    """Readings and queries, and what is needed of them."""

    arguments: BorderArguments
    readings: ArrowInput
    queries: ArrowInput

    @classmethod
    def of(
        cls, arguments: BorderArguments, readings: Source, queries: Source, engine: str
    ) -> BorderInputs:
        """The inputs of an engine."""
        options, values = arguments.options, tuple(arguments.values)
        borders = [f"{end}_{name}" for name in values for end in ("lower", "upper")]
        fine = engine == "local" and "ns" in (options.unit, options.tick)
        return cls(
            arguments,
            arrow_input(readings, fine, (arguments.time,), values),
            arrow_input(queries, floats=("lower", "upper", *borders)),
        )

    @property
    def sources(self) -> list[Source]:
        """Of both."""
        return [self.readings.source, self.queries.source]

    @property
    def types(self) -> dict[str, pa.DataType]:
        """For columns of readings of which no file tells the type."""
        floats = dict.fromkeys(self.arguments.values, pa.float64())
        return {self.arguments.time: pa.int64(), **floats}

    def query_table(self) -> pa.Table:
        """The queries."""
        given = self.queries.schema.names
        pairs = self.arguments.border_names(given)
        types = {name: pa.float64() for pair in pairs for name in pair}
        columns = self.arguments.query_columns(given)
        check_complete(self.queries, columns)
        return self.queries.table(columns, types)

    def schema(self) -> pa.Schema:
        """Of the readings, as their files tell it."""
        return plain_schema(self.readings.typed(self.arguments.columns, self.types))

    def checked_schema(self) -> pa.Schema:
        """The same, where the files are to be read by PyArrow, and must go together."""
        check_complete(self.readings, self.arguments.columns)
        check_zones(self.readings, self.arguments.columns)
        return self.schema()

    def tables(self, schema: pa.Schema) -> tuple[pa.Schema, Iterable[pa.Table]]:
        """The readings, part by part where each is later than those before it, else whole."""
        parts = self.readings.in_time_order(self.arguments.time, schema)
        if parts is not None:
            return schema, parts
        table = self.readings.table(self.arguments.columns, self.types)
        return plain_schema(table.schema), [table]
