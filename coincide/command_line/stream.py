"""`coincide stream`: two streams without an end are joined on Spark, until the user stops it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from coincide.command_line.feeds import (
    Feed,
    FolderFeed,
    FolderSink,
    Sink,
    feed_of,
    sink_of,
    spark_path,
)
from coincide.command_line.interruption import stopping
from coincide.command_line.problems import Problem, warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.requests import settings_of
from coincide.command_line.summary import Summary
from coincide.command_line.triggers import Triggers
from coincide.engine.events.schemas import check_name, plain_type
from coincide.engine.files.credentials import Redactor
from coincide.engine.files.finding import local_path
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import TableJoin
from coincide.engine.join.text_options import duration, names, worded_join
from coincide.model.errors import said_of
from coincide.model.extras import SPARK, require
from coincide.model.options import check_choice
from coincide.model.remembered import remembered
from coincide.model.sides import SIDES
from coincide.model.units import Duration, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.3
_HEAD = 2
"""Lines of an entry of a checkpoint before those of its streams."""
_NOT_OF_STREAMS = ("is_one_stream", "matching", "largest_group")
"""Fields of `JoinArguments` that `correlate_streams` has no argument for."""
_STREAMED = (
    "left_delay", "right_delay", "left_ahead", "right_ahead", "idle_after", "slice_length",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StreamRequest:
    """One `coincide stream`."""

    feeds: tuple[Feed, ...]
    sink: Sink
    arguments: JoinArguments
    streamed: Mapping[str, Any]
    """What `correlate_streams` takes beyond: delays and so on."""
    key: list[str]
    output: str
    checkpoint: str
    trigger: Mapping[str, Any]
    master: str | None
    conf: dict[str, str]
    debug: bool
    typed: tuple[str, ...]

    @property
    def delays(self) -> list[Duration]:
        """The delay of each input."""
        return [self.streamed[f"{side}_delay"] for side, _ in zip(SIDES, self.feeds, strict=False)]

    @remembered
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        return Redactor.of(self.typed)


def request(**words: Any) -> StreamRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide stream`."""
    check_choice("--begin", words["begin"], ("earliest", "latest"))
    check_choice("--late", words["late"], ("count", "rows"))
    if words["right"] is None and words["right_schema"] is not None:
        raise Problem("--right-schema belongs to RIGHT, and there is one stream. Remove it.")
    clients = settings_of("--kafka", words["kafka"])
    feeds = tuple(
        feed_of(side, words[side], words[f"{side}_schema"], clients, words["begin"], words["most"])
        for side in SIDES
        if words[side] is not None
    )
    sink = sink_of(words["output"], clients, words["checkpoint"])
    _check_apart(feeds, sink)
    if words["master"] is not None and not words["master"].strip():
        raise Problem("--master is empty. Give a value, or remove the option.")
    streamed = {name: _duration(name, words[name]) for name in _STREAMED}
    for name in ("delay", "ahead"):
        if words["right"] is not None and words[f"right_{name}"] is None:
            streamed[f"right_{name}"] = streamed[f"left_{name}"]
    arguments = worded_join(words)
    _check_columns(feeds, arguments)
    key = names("key", words["key"]) if words["key"] else arguments.keys
    conf = settings_of("--conf", words["conf"])
    return StreamRequest(
        feeds=feeds,
        sink=sink,
        arguments=arguments,
        streamed={**streamed, "late": words["late"]},
        key=key if not isinstance(sink, FolderSink) else [],
        output=words["output"],
        checkpoint=words["checkpoint"],
        trigger=_trigger(words["once"], words["trigger"]),
        master=words["master"],
        conf=conf,
        debug=words["debug"],
        typed=(
            *filter(None, (words[name] for name in (*SIDES, "output", "master"))),
            *(f"{key}={value}" for key, value in (clients | conf).items()),
        ),
    )


def _check_apart(feeds: tuple[Feed, ...], sink: Sink) -> None:
    """Refuse an output whose rows would be read as events."""
    for side, feed in zip(SIDES, feeds, strict=False):
        if not isinstance(feed, FolderFeed) or not isinstance(sink, FolderSink):
            continue
        inner, outer = local_path(sink.text), local_path(feed.text)
        if inner and outer and os.path.commonpath([inner, outer]) == outer:
            raise Problem(
                f"the output {sink.text} lies inside the {side} input. Write to another place."
            )


def _check_columns(feeds: tuple[Feed, ...], arguments: JoinArguments) -> None:
    """What is wrong with columns of files shows here, before Spark starts. It alone knows topics."""
    schemas = [feed.schema for feed in feeds if isinstance(feed, FolderFeed) and feed.schema]
    if len(schemas) < len(feeds):
        return
    both = schemas[0], schemas[-1]
    arguments = arguments.settled(*both)
    for side, schema, needed in zip(SIDES, both, arguments.columns, strict=True):
        for name in needed:
            check_name(side, name, schema.names)
    arguments = arguments.of_times()
    left, *right = (
        pa.schema([(name, plain_type(schema.field(name).type)) for name in needed]).empty_table()
        for schema, needed in zip(schemas, arguments.columns, strict=False)
    )
    TableJoin(left, right[0] if right else None, arguments)


def _duration(name: str, text: str | None) -> Duration | None:
    return None if text is None else duration(name, text)


def _delta(delay: Duration) -> timedelta | None:
    """A delay on Spark's clock; None of one in ticks."""
    return timedelta(milliseconds=_milliseconds(delay)) if isinstance(delay, str) else None


def _trigger(once: bool, every: str | None) -> dict[str, Any]:
    """For Spark's `trigger`."""
    if once:
        if every is not None:
            raise Problem("--once runs until all is read, so --trigger has no effect. Remove one.")
        return {"availableNow": True}
    with said_of("trigger"):
        return {"processingTime": f"{_milliseconds(every or '0s')} milliseconds"}


def _milliseconds(text: str) -> int:
    return int(parse_duration(text) // 1_000_000)


def run(request: StreamRequest) -> Summary:
    """Join until there is no more, or the user has enough; what ended it is no error then."""
    require(SPARK)
    from coincide.command_line.spark import session  # imports pyspark
    from spark_plugin.ways.streaming.arguments import STATE_STORE

    with warnings_as_lines(), Progress(request.hide) as progress:
        progress.show("starting Spark")
        begun = time.perf_counter()
        with session(request.master, STATE_STORE | request.conf, request.debug) as spark:
            started = time.perf_counter()
            triggers = Triggers([_delta(each) for each in request.delays])
            query = _started(spark, request)
            with stopping() as stop:
                while query.isActive and not stop.wait(_POLL_SECONDS):
                    triggers.take(query.recentProgress)
                    progress.show(triggers.line())
                query.stop()
            error = query.exception()
            if error is not None and not stop.is_set():
                raise error
            triggers.take(query.recentProgress)
            seconds = time.perf_counter() - started
    return Summary(
        triggers.counted(),
        triggers.rows,
        seconds,
        started - begun,
        request.hide(request.output),
        "spark",
    )


def _check_checkpoint(spark: SparkSession, request: StreamRequest) -> None:
    """Refuse to read more or fewer streams than the checkpoint has, before Spark fails."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    try:
        lines = spark.read.text(f"{spark_path(request.checkpoint)}/offsets")
    except AnalysisException:
        return  # nothing was read yet
    found = lines.groupBy(F.input_file_name()).count().agg(F.max("count")).first()
    had = found[0] - _HEAD if found and found[0] else None
    has_idle = request.streamed["idle_after"] is not None
    reads = len(request.feeds) * (1 + has_idle)
    if had is not None and had != reads:
        begun = f"{'without' if has_idle else 'with'} --idle-after or with another number of inputs"
        raise Problem(
            f"the checkpoint {request.checkpoint} was begun {begun} (found {had} streams in it, and"
            f" {reads} now). Give the earlier options, or begin with a new checkpoint."
        )


def _started(spark: SparkSession, request: StreamRequest) -> StreamingQuery:
    """The query, which reads, joins and writes until it is stopped."""
    from coincide import correlate_streams

    _check_checkpoint(spark, request)
    arguments = request.arguments
    frames = [
        feed.frame(spark, side, arguments.options.invalid == "drop")
        for side, feed in zip(SIDES, request.feeds, strict=False)
    ]
    given: dict[str, Any] = {
        field.name: getattr(arguments, field.name)
        for field in fields(arguments)
        if field.name not in _NOT_OF_STREAMS
    }
    left, *right = frames
    joined = correlate_streams(left, right[0] if right else None, **given, **request.streamed)
    writer = request.sink.writer(joined, request.key)
    return (
        writer.outputMode("append")
        .option("checkpointLocation", spark_path(request.checkpoint))
        .trigger(**request.trigger)
        .start()
    )
