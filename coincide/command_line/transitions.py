"""`coincide transitions`, on either engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from coincide.command_line.engines import settled
from coincide.command_line.event_inputs import (
    check_complete,
    check_for_spark,
    check_zones,
)
from coincide.command_line.outputs import local_output, spark_output, write_frame
from coincide.command_line.progress import Progress
from coincide.command_line.requests import Request, checked, lines_left_out
from coincide.command_line.runs import finished, spark_at_work, written
from coincide.command_line.summary import Finished
from coincide.engine.events.schemas import plain_schema
from coincide.engine.events.time_columns import TimeColumn, resolve_tick
from coincide.engine.files.arrow_inputs import ArrowInput, arrow_input
from coincide.engine.files.source import Source, path_columns
from coincide.engine.join.words import duration, names
from coincide.engine.transitions.arguments import SIDE, EventColumns, TransitionArguments
from coincide.engine.transitions.monitor import TransitionMonitor, transitions_of_table
from coincide.engine.transitions.reports import TWICE, TransitionSummary, losses_of
from coincide.model.errors import ConditionError
from coincide.model.options import CorrelateOptions

Types = dict[str, pa.DataType]


@dataclass(frozen=True, kw_only=True)
class TransitionRequest(Request):
    """One `coincide transitions`."""

    events: str
    arguments: TransitionArguments
    until: int | float | datetime | None

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return {SIDE: self.events}

    @property
    def read_columns(self) -> list[list[str]]:  # noqa: D102
        return [self.arguments.columns]


def request(**words: Any) -> TransitionRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide transitions`."""
    plain = ("confidence", "query", "event", "repeated")
    options = CorrelateOptions(**{name: words[name] for name in ("unit", "tick", "invalid")})
    arguments = TransitionArguments(
        duration(words["within"]), time=names("--time", [words["time"]]), options=options,
        stream=None if words["stream"] == "-" else words["stream"],
        **{name: words[name] for name in plain},
    )  # fmt: skip
    until = None if words["until"] is None else _instant(words["until"])
    return TransitionRequest(
        events=words["events"], arguments=arguments, until=until, **checked(words, {})
    )


def _instant(text: str) -> int | float | datetime:
    readers: tuple[Callable[[str], int | float | datetime], ...] = (
        int, float, datetime.fromisoformat,
    )  # fmt: skip
    for read in readers:
        with suppress(ValueError):
            return read(text)
    raise ConditionError(
        f"--until takes a number, or a time such as 2024-05-01T08:00:00Z; found {text!r}"
    )


def run(request: TransitionRequest) -> Finished:
    """Find transitions and write the output."""
    (source,) = sources = request.sources()
    request = settled(request, sources)
    options = request.arguments.options
    fine = request.engine == "local" and "ns" in (options.unit, options.tick)
    given = arrow_input(source, fine, request.arguments.clocks)
    run = _run_local if request.engine == "local" else _run_spark
    with Progress(request.hide) as progress:
        done = run(request, given, progress)
    return replace(done, skipped=lines_left_out(sources))


def _run_local(request: TransitionRequest, given: ArrowInput, progress: Progress) -> Finished:
    columns, types = request.arguments.columns, _types(request)
    with local_output(request, [given.source]) as output:
        started = time.perf_counter()
        check_complete(given, columns)
        check_zones(given, columns)
        _check(given.typed(columns, types), request)
        progress.show(f"reading {given.source.text}")
        table = given.table(columns, types)
        progress.show("looking for transitions")
        monitor = TransitionMonitor(**vars(request.arguments))
        found, summary = transitions_of_table(table, request.until, monitor)

        def say(rows: int) -> None:
            progress.show(f"writing: {rows:,} rows")

        rows = written(found.to_batches(), found.schema, output, say)
        output.publish()
        seconds = time.perf_counter() - started
    return finished(request, "transitions", _counted(summary), rows, seconds)


def _run_spark(request: TransitionRequest, given: ArrowInput, progress: Progress) -> Finished:
    from coincide.command_line.spark import spark_frame
    from spark_plugin.frames.transitions import plan_transitions

    columns, types = request.arguments.columns, _types(request)
    with spark_output(request, [given.source]) as output:
        check_for_spark(given, columns)
        if _tells_types(given.source, columns):
            _check(given.typed(columns, types), request)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            with progress.following(spark, "planning"):
                frame = spark_frame(spark, given, columns, types)
                plan = plan_transitions(frame, request.until, request.arguments, observe=True)
            with progress.following(spark, "looking for transitions"):
                write_frame(plan.dataframe, output)
            counted = _counted(plan.summary()) if plan.is_observable else None
            seconds = time.perf_counter() - started
        rows = output.rows()
        output.publish()
    return finished(request, "transitions", counted, rows, seconds, start_seconds)


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


def _counted(summary: TransitionSummary) -> tuple[dict[str, object], list[tuple[str, str]]]:
    values = {
        **asdict(summary.counts),
        "undecided": summary.undecided,
        "rounded": summary.rounded or None,
        "tick": None if summary.tick is None else summary.tick.unit,
    }
    return values, _lines(summary)


def _lines(summary: TransitionSummary) -> list[tuple[str, str]]:
    counts = summary.counts
    events = [f"{counts.events:,} rows"]
    if counts.repeated:
        events.append(f"{counts.repeated:,} repeat the one before")
    events += [words for _, words in losses_of(summary)]
    return [
        ("events", "; ".join(events)),
        *((word, f"{count:,}") for word, count in counts.found.items()),
        ("neither", f"{counts.neither:,}"),
        *([("both", f"{counts.both:,} {TWICE}")] if counts.both else []),
        ("undecided", f"{summary.undecided:,}"),
    ]
