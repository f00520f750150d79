"""`coincide borders`, on either engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from coincide.command_line.event_inputs import (
    check_for_spark,
)
from coincide.command_line.problems import Problem, tell_closed
from coincide.command_line.progress import Progress
from coincide.command_line.requests import WAYS, InProcess, Request, checked
from coincide.command_line.summary import Counted, not_counted
from coincide.engine.borders.arguments import QUERIES, READINGS, BorderArguments
from coincide.engine.borders.monitor import BorderMonitor
from coincide.engine.borders.readings import ReadingColumns, query_table, read_queries
from coincide.engine.borders.reports import BorderSummary, shown_time
from coincide.engine.events.schemas import plain_schema
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.text_options import names, numbers
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import marked
from coincide.model.options import check_choice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coincide.command_line.requests import OnSession
    from spark_plugin.frames.borders import BorderPlan


_OPTIONS = (
    "first", "pass_through", "interpolate", "processing", "invalid", "unit", "tick", "backend",
    "batch_events", "threads", "closed",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BorderRequest(Request):
    """One `coincide borders`."""

    doing: ClassVar[str] = "looking for crossings"
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

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        inputs = BorderInputs.of(self, sources)
        schema = inputs.schema()
        progress.show(f"reading {inputs.queries.source.text}")
        queries = inputs.query_table()
        # First without readings: what is wrong with columns shows before they are read.
        monitor = _monitor(queries, self.arguments, schema)
        progress.show(f"reading {inputs.readings.source.text}")
        found, tables = inputs.tables(schema)
        if found != schema:
            monitor = _monitor(queries, self.arguments, found)
        batches = chain.from_iterable(map(monitor.batches, tables))
        return InProcess(batches, monitor.schema, lambda: _counted(monitor.summary()))

    def on_spark(self, sources: list[Source]) -> OnSession:  # noqa: D102
        inputs = BorderInputs.of(self, sources)
        queries = inputs.checked_before_spark()

        def counted(plan: BorderPlan) -> Counted:
            if not plan.is_observable:
                return not_counted("crossings")
            return _counted(plan.summary())

        return self.planned(partial(_planned, self, inputs, queries), counted)


def request(**words: Any) -> BorderRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide borders`."""
    check_choice("way", words["way"], WAYS)
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


def _monitor(queries: pa.Table, arguments: BorderArguments, schema: pa.Schema) -> BorderMonitor:
    """A monitor that knows the columns of readings."""
    monitor = BorderMonitor(queries, **vars(arguments))
    monitor.push(schema.empty_table())
    return monitor


def _planned(
    request: BorderRequest, inputs: BorderInputs, queries: pa.Table | None, spark: SparkSession
) -> BorderPlan:
    """By the direct way where it is open, else by an exchange."""
    from coincide.command_line.spark import spark_frame
    from coincide.engine.files.planning import NotDirect
    from spark_plugin.frames.borders import ReadingFrame
    from spark_plugin.ways.borders import plan_crossings
    from spark_plugin.ways.exchange.packed_keys import ROWS_BY_SPARK
    from spark_plugin.ways.files.borders import plan_file_crossings

    given: Any = spark_frame(spark, inputs.queries, []) if queries is None else queries
    readings, source = inputs.readings, inputs.readings.source
    # The same checks for both ways, and the same errors.
    frame = spark_frame(spark, readings, request.arguments.columns, inputs.types)
    try:
        if request.way == "exchange":
            raise NotDirect("you chose another way.")
        own = path_columns(source) or readings.lacks_name(request.arguments.columns)
        if own:
            raise NotDirect(f"{READINGS} must be Parquet files that hold all columns.")
        seen = ReadingFrame.of(frame, request.arguments).seen
        return plan_file_crossings(spark, source.text, given, request.arguments, seen)
    except NotDirect as closed:
        why = marked(closed)
    packs = request.way != "exchange"
    plan = plan_crossings(frame, given, request.arguments, observe=True, packs=packs)
    if packs and plan.why == ROWS_BY_SPARK:
        if request.way == "files":
            raise Problem(f"--way files is not possible: {why} Or use --way auto.")
        tell_closed(request.hide(why))
    return plan


def _counted(summary: BorderSummary) -> Counted:
    tick = None if summary.tick is None else summary.tick.unit
    last = summary.last_reading
    values = {
        **asdict(summary),
        "latest": None,
        "time_kind": None,
        "last_reading": None if last is None else shown_time(last),
        "tick": tick,
        "rounded": summary.rounded or None,
        "why_none": list(summary.why_none) or None,
        "waiting": None,  # only a monitor has it
        "way": summary.way or None,
        "why": summary.why or None,
    }
    return Counted(values, summary.lines)


@dataclass(frozen=True)
class BorderInputs:
    """Readings and queries, and what is needed of them."""

    arguments: BorderArguments
    readings: ArrowInput
    queries: ArrowInput

    @classmethod
    def of(cls, request: BorderRequest, sources: list[Source]) -> BorderInputs:
        """The inputs of a request."""
        readings, queries = sources
        arguments, options = request.arguments, request.arguments.options
        values = tuple(arguments.values)
        borders = [f"{end}_{name}" for name in values for end in ("lower", "upper")]
        fine = request.engine == "local" and "ns" in (options.unit, options.tick)
        return cls(
            arguments,
            arrow_input(readings, fine, (arguments.time,), values),
            arrow_input(queries, floats=("lower", "upper", *borders)),
        )

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
        return self.queries.table(columns, types)

    def schema(self) -> pa.Schema:
        """The schema of the readings, as their files give it."""
        return plain_schema(self.readings.typed(self.arguments.columns, self.types))

    def checked_before_spark(self) -> pa.Table | None:
        """The queries, if PyArrow opens them; what is wrong with columns shows before Spark starts."""
        check_for_spark(self.readings, self.arguments.columns)
        queries = None if self.queries.source.is_uri else self.query_table()
        source = self.readings.source
        if queries is not None and not source.is_uri and not path_columns(source):
            # Their columns only: executors may have what a backend needs, and the driver may not.
            ReadingColumns.of(self.schema(), self.arguments)
            read_queries(query_table(queries, self.arguments), self.arguments)
        return queries

    def tables(self, schema: pa.Schema) -> tuple[pa.Schema, Iterable[pa.Table]]:
        """The readings, part by part where each is later than those before it, else whole."""
        parts = self.readings.in_time_order(self.arguments.time, schema)
        if parts is not None:
            return schema, parts
        table = self.readings.table(self.arguments.columns, self.types)
        return plain_schema(table.schema), [table]
