"""Streaming DataFrames as sides of a join: the one shape that each micro-batch answers for good."""

from __future__ import annotations

from coincide.engine.join.spec import AnySpec
from coincide.model.errors import ConditionError
from coincide.model.options import CorrelateOptions
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.broadcast import is_two_step

_BOTH = (
    "left and right are both streaming, and their partners come in other micro-batches: give events of"
    " both to coincide.stream_correlator as they arrive (docs/streams.md), or one side as a static"
    " DataFrame"
)


def check_streaming(
    sides: tuple[EventFrame, EventFrame], spec: AnySpec, options: CorrelateOptions
) -> None:
    """Refuse a streaming side unless each micro-batch can be joined as it comes.

    The other side must be static and go to every worker, and nothing may have to be measured: of a
    stream no rows are known when the join is planned.
    """
    streams = [side.side for side in sides if side.source.isStreaming]
    if not streams:
        return
    if len(streams) == 2:
        raise ConditionError(_BOTH)
    if spec.matching is not None:
        raise ConditionError(
            f"{streams[0]} is streaming, and a later event can be a better partner than all before it:"
            " leave out matching=, or join static DataFrames"
        )
    stream, static = ("left", "right") if streams == ["left"] else ("right", "left")
    _check_final(stream, spec)
    lacking = _lacking(static, sides, options)
    if lacking:
        raise ConditionError(
            f"{stream} is streaming, so nothing of it can be measured when the join is planned, and the"
            f" static {static} side must go to every worker: add {', '.join(lacking)} to"
            " CorrelateOptions (docs/planning.md)"
        )


def _check_final(stream: str, spec: AnySpec) -> None:
    """Refuse what a later micro-batch could change."""
    if stream == "right" and is_two_step("left", spec):
        raise ConditionError(
            f"right is streaming, and what is found of a left event with how={spec.how!r} and"
            f" emit={spec.emit!r} can change as long as right events come: use how='inner' with"
            " emit='pairs', or give the stream as left and the static side as right, with the window"
            " mirrored"
        )


def _lacking(
    static: str, sides: tuple[EventFrame, EventFrame], options: CorrelateOptions
) -> list[str]:
    """The options that would have to be given, or given otherwise."""
    lacking = [] if options.small_side == static else [f'way="broadcast-{static}"']
    lacking += [f"{side.side}_longest=..." for side in sides if side.times.declared is None]
    return lacking + (['invalid="raise"'] if options.invalid == "drop" else [])
