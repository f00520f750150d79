"""`coincide transitions`, on either engine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from coincide.command_line.event_inputs import (
    check_for_spark,
)
from coincide.command_line.problems import Problem
from coincide.command_line.progress import Progress
from coincide.command_line.requests import WAYS, InProcess, Request, checked
from coincide.command_line.summary import Counted, not_counted
from coincide.engine.events.schemas import plain_schema
from coincide.engine.events.ticks import written_time
from coincide.engine.events.time_columns import TimeColumn, resolve_tick
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.text_options import duration, names, options_of
from coincide.engine.transitions.arguments import SIDE, EventColumns, TransitionArguments
from coincide.engine.transitions.monitor import TransitionMonitor, transitions_of_table
from coincide.engine.transitions.reports import TransitionSummary
from coincide.model.errors import ConditionError, marked
from coincide.model.options import check_choice
from coincide.model.units import NANOSECONDS_PER_UNIT, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coincide.command_line.requests import OnSession

Types = dict[str, pa.DataType]


@dataclass(frozen=True, kw_only=True)
class TransitionRequest(Request):
    """One `coincide transitions`."""

    doing: ClassVar[str] = "looking for transitions"
    events: str
    arguments: TransitionArguments
    until: pa.Scalar | None
    way: str = "auto"

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return {SIDE: self.events}

    @property
    def read_columns(self) -> list[list[str]]:  # noqa: D102
        return [self.arguments.columns]

    def _given(self, source: Source) -> ArrowInput:
        options = self.arguments.options
        fine = self.engine == "local" and "ns" in (options.unit, options.tick)
        return arrow_input(source, fine, self.arguments.clocks)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        given, columns, types = self._given(sources[0]), self.arguments.columns, _types(self)
        _check(given.typed(columns, types), self)
        progress.show(f"reading {given.source.text}")
        table = given.table(columns, types)
        progress.show(self.doing)
        monitor = TransitionMonitor(**vars(self.arguments))
        found, summary = transitions_of_table(table, self.until, monitor)
        return InProcess(found.to_batches(), found.schema, partial(_counted, summary))

    def on_spark(self, sources: list[Source]) -> OnSession:  # noqa: D102
        from coincide.command_line.spark import spark_frame
        from coincide.engine.files.planning import NotDirect
        from spark_plugin.ways.transitions import plan_transitions

        given, columns, types = self._given(sources[0]), self.arguments.columns, _types(self)
        check_for_spark(given, columns)
        if _tells_types(given.source, columns):
            _check(given.typed(columns, types), self)

        def plan(spark: SparkSession) -> Any:
            frame = spark_frame(spark, given, columns, types)
            try:
                return plan_transitions(
                    frame, self.until, self.arguments, observe=True, way=self.way
                )
            except NotDirect as closed:
                raise Problem(
                    f"--way files is not possible: {marked(closed)} Or use --way auto."
                ) from None

        def counted(plan: Any) -> Counted:
            is_counted = plan.is_observable
            return _counted(plan.summary()) if is_counted else not_counted("transitions")

        return self.planned(plan, counted)


def request(**words: Any) -> TransitionRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide transitions`."""
    check_choice("way", words["way"], WAYS)
    plain = ("confidence", "query", "event", "repeated")
    arguments = TransitionArguments(
        duration("--within", words["within"]), time=names("--time", [words["time"]]),
        options=options_of({**words, "way": "auto"}),  # a way of joins is another question
        stream=None if words["stream"] == "-" else words["stream"],
        **{name: words[name] for name in plain},
    )  # fmt: skip
    until = None if words["until"] is None else _instant(words["until"])
    return TransitionRequest(
        events=words["events"],
        arguments=arguments,
        until=until,
        way=words["way"],
        **checked(words, {"--way": words["way"] != "auto"}),
    )


def _instant(text: str) -> pa.Scalar:
    with suppress(ValueError, OverflowError):
        return pa.scalar(int(text))
    with suppress(InvalidOperation, pa.ArrowInvalid):
        return pa.scalar(Decimal(text))
    found = written_time(text) or _written_duration(text)
    if found is None:
        raise ConditionError(
            "--until takes a number, a time such as 2024-05-01T08:00:00Z, or a duration such as"
            f" 90s (found {text!r})."
        )
    return found


def _written_duration(text: str) -> pa.Scalar | None:
    with suppress(ConditionError, OverflowError):
        nanoseconds = parse_duration(text)
        for unit in ("s", "ms", "us", "ns"):
            count = nanoseconds / NANOSECONDS_PER_UNIT[unit]
            if count.denominator == 1:
                return pa.scalar(int(count), pa.duration(unit))
    return None


def _tells_types(source: Source, columns: list[str]) -> bool:
    """Whether files tell of which types all columns are; else Spark alone knows."""
    return not source.is_uri and not path_columns(source).intersection(columns)


def _check(schema: pa.Schema, request: TransitionRequest) -> None:
    """What is wrong with columns shows before anything is read."""
    columns = EventColumns.of(plain_schema(schema), request.arguments)
    if request.until is not None:
        columns.instant("--until", request.until)


def _types(request: TransitionRequest) -> Types:
    """For columns of which no file tells the type: times are integers, if durations allow it."""
    clocks = request.arguments.clocks
    numbers = [TimeColumn(SIDE, name, "integer") for name in clocks]
    try:
        request.arguments.rule(resolve_tick(numbers, request.arguments.options))
    except ConditionError:
        return dict.fromkeys(clocks, pa.timestamp("us"))
    return dict.fromkeys(clocks, pa.int64())


def _counted(summary: TransitionSummary) -> Counted:
    values = {
        **asdict(summary.counts),
        "undecided": summary.undecided,
        "rounded": summary.rounded or None,
        "tick": None if summary.tick is None else summary.tick.unit,
        "way": summary.way or None,
        "why": summary.why or None,
    }
    return Counted(values, summary.lines)
