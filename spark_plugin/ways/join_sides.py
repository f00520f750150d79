"""What every way gets of a join of DataFrames: its sides, two or one stream, and where its tasks run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar, get_args

import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.engine.events.schemas import check_keys, check_present_keys
from coincide.engine.events.timestamps import longest_matches
from coincide.engine.join.emission import check_preferred
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.pair_filter import PairFilter, Where
from coincide.engine.join.spec import AnySpec
from coincide.model.errors import ConditionError, argument
from coincide.model.options import OUTPUT_ROWS, CorrelateOptions, SideName
from spark_plugin.frames import columns as frames
from spark_plugin.frames.columns import arrow_or_null, field_of
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.output_columns import ResultColumns
from spark_plugin.frames.stage import Stage
from spark_plugin.frames.timestamps import spark_clocks, with_timestamps
from spark_plugin.tasks.broadcast import is_two_step

Sides = tuple[EventFrame, EventFrame]
Arguments = TypeVar("Arguments", bound=PairArguments)
Spec = TypeVar("Spec", bound=AnySpec)


@dataclass(frozen=True, eq=False)
class Job:
    """A join of two sides, and the stage in which its tasks run."""

    sides: Sides
    spec: AnySpec
    result: ResultColumns
    options: CorrelateOptions
    stage: Stage
    arguments: PairArguments | None = None  # for tasks that read files themselves


def with_longest_matches(sides: Sides, spec: AnySpec) -> Sides:
    """Sides that count the events longer than any match of a join can be."""
    left, right = sides
    longest = longest_matches(spec.widest, (left.times, right.times))
    return replace(left, longest_match=longest[0]), replace(right, longest_match=longest[1])


def check_one_stream(
    events: DataFrame, way: str, other: str, matches: str, instead: str = ""
) -> None:
    """Refuse what only two sides can do."""
    if way in ("broadcast", "broadcast-left", "broadcast-right"):
        raise ConditionError(
            f"one stream is joined with itself by an exchange. Remove {argument('way', way)}. Or"
            f" give the events a second time as {other}, but then an event also meets itself."
        )
    if events.isStreaming:
        raise ConditionError(
            f"{argument('events')} are a streaming DataFrame, and a micro-batch of one stream"
            f" lacks the {matches} that come later. {instead}Give them as one side, and static"
            " events as the other."
        )


def check_static(sources: tuple[DataFrame, DataFrame], how: str) -> None:
    """Refuse streaming sides: a micro-batch does not know who stays without a match."""
    if any(source.isStreaming for source in sources):
        raise ConditionError(
            f"{argument('how', how)} needs all rows of both sides at once, but one is streaming."
            f" Give the stream as left with {argument('how', 'left')}, or join static DataFrames."
        )


_OF_STREAMS = {"left": "correlate_streams", "cause": "causality_streams"}
"""What joins two streams, by the prefix of the first one."""


def check_streaming(sides: Sides, spec: AnySpec, options: CorrelateOptions) -> None:
    """Refuse a streaming side unless each micro-batch can be joined as it comes, with nothing measured."""
    streams = [side.side for side in sides if side.source.isStreaming]
    if not streams:
        return
    if len(streams) == 2:
        left, right = (side.called for side in sides)
        raise ConditionError(
            f"{left} and {right} are both streaming, and matches can come in different"
            f" micro-batches. Use {_OF_STREAMS[spec.prefixes[0]]}, which keeps events until their"
            " matches have come, or give one side as a static DataFrame."
        )
    if (word := spec.choice.one_to_one) is not None:
        raise ConditionError(
            f"{streams[0]} is streaming, so a later event can be a better match. Remove"
            f" {word.option}, or join static DataFrames."
        )
    stream, static = ("left", "right") if streams == ["left"] else ("right", "left")
    _check_final(stream, spec)
    lacking = _lacking(static, sides, options)
    if lacking:
        raise ConditionError(
            f"{stream} is streaming, so planning cannot measure it, and the static {static} side"
            f" must go to every worker. Add {', '.join(lacking)} to CorrelateOptions"
            " (docs/planning.md)."
        )


def _check_final(stream: str, spec: AnySpec) -> None:
    """Refuse what a later micro-batch could change."""
    if stream == "right" and is_two_step("left", spec):
        raise ConditionError(
            f"{argument('right')} is streaming, so with {argument('how', spec.how)} and"
            f" {spec.row.said} the row of a left event can change while right events"
            f" come. Use {argument('how', 'inner')} with {OUTPUT_ROWS['pairs'].said}. Or give the"
            " stream as left, the static side as right, and mirror the window."
        )


def _lacking(static: str, sides: Sides, options: CorrelateOptions) -> list[str]:
    """The options that would have to be given, or given otherwise."""
    lacking = [] if options.small_side == static else [f'way="broadcast-{static}"']
    lacking += [f"{side.side}_longest=..." for side in sides if side.times.declared is None]
    return lacking + (['invalid="raise"'] if options.invalid == "drop" else [])


def event_frames(sources: tuple[DataFrame, DataFrame], arguments: PairArguments) -> Sides:
    """Both sides as events; of one stream they have the same rows."""
    keys, payload = (arguments.keys, arguments.right_keys), arguments.payload
    called = arguments.sides
    if keys[0]:
        check_present_keys(called, keys, [source.columns for source in sources])
    kinds = [frames.key_kinds(*each) for each in zip(sources, called, keys, strict=True)]
    check_keys(keys[0], kinds[0], kinds[1])
    clocks = [
        clock
        for side, source, names in zip(called, sources, arguments.times, strict=True)
        for clock in spark_clocks(side, names, source)
    ]
    times = arguments.resolved_times(clocks)
    of_both = list(dict.fromkeys([*payload[0], *payload[1], *itertools.chain(*arguments.tested)]))
    left, right = (
        EventFrame(
            side,
            with_timestamps(times[i], sources[i]),
            times[i],
            keys[i],
            payload[i],
            tested=arguments.tested[i],
            has_like_keys=kinds[0] == kinds[1],
            identity=of_both if arguments.is_one_stream else [],
            given=sources[i],
        )
        for i, side in enumerate(get_args(SideName))
    )
    return left, right


def settled(arguments: Arguments, left: DataFrame, right: DataFrame) -> Arguments:
    """The arguments for DataFrames of these columns: `PairArguments.settled`."""
    if not arguments.is_open:
        return arguments
    return arguments.settled(*map(known_schema, (left, right)))


def check_payload(sides: Iterable[EventFrame]) -> None:
    """Refuse output columns that are not there."""
    for side in sides:
        for name in side.payload:
            field_of(side.plain, side.called, name)


def with_filter(spec: Spec, sides: Sides, where: object) -> Spec:
    """What is computed, with the condition on pairs, if there is one."""
    own, others = (
        [arrow_or_null(field_of(side.source, side.called, name).dataType) for name in side.tested]
        for side in sides
    )
    if count := len(spec.choice.columns):
        named = sides[1].called, sides[1].tested[-count:], others[-count:]
        check_preferred(*named, in_tasks=True)
        del others[-count:]
    if not isinstance(where, Where):
        return spec
    return spec.but(where=PairFilter(where, (own, others)))


def known_schema(frame: DataFrame) -> pa.Schema:
    """The columns of a DataFrame; null those of which Arrow has no type."""
    return pa.schema([(each.name, arrow_or_null(each.dataType)) for each in frame.schema.fields])
