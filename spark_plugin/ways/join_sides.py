"""The sides of a join of DataFrames: two, or one stream that is joined with itself."""

from __future__ import annotations

from typing import get_args

from pyspark.sql import DataFrame

from coincide.errors import ConditionError
from coincide.options import SideName
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.timestamps import spark_clocks, with_timestamps
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.arrow.schemas import check_foldable, check_keys


def check_one_stream(events: DataFrame, way: str, other: str, partners: str) -> None:
    """Refuse what only two sides can do.

    Parameters
    ----------
    events : DataFrame
    way : str
        As of `CorrelateOptions`.
    other, partners : str
        What the other side is called, and its events.

    Raises
    ------
    ConditionError
    """
    if way.startswith("broadcast"):
        raise ConditionError(
            f"one stream is joined with itself by an exchange; leave out way={way!r}, or give the events a"
            f" second time as {other}, which then meet themselves, too"
        )
    if events.isStreaming:
        raise ConditionError(
            f"events are a streaming DataFrame, and of one stream a micro-batch lacks the {partners} that"
            " come later: give them as one side, with static ones on the other side"
        )


def event_frames(
    sources: tuple[DataFrame, DataFrame], arguments: JoinArguments
) -> tuple[EventFrame, EventFrame]:
    """Both sides as events; of one stream they have the same rows.

    Raises
    ------
    SchemaError, ConditionError
        As `coincide.correlate`.
    """
    keys, payload = (arguments.keys, arguments.right_keys), arguments.payload
    called = arguments.sides
    kinds = [frames.key_kinds(*each) for each in zip(sources, called, keys, strict=True)]
    check_keys(keys[0], kinds[0], kinds[1])
    if arguments.case_fold:
        check_foldable([kind for kind, _ in kinds[0]])
    clocks = [
        clock
        for side, source, names in zip(called, sources, arguments.times, strict=True)
        for clock in spark_clocks(side, names, source)
    ]
    times = arguments.resolved_times(clocks)
    of_both = list(dict.fromkeys([*payload[0], *payload[1]]))
    left, right = (
        EventFrame(
            side,
            with_timestamps(times[i], sources[i]),
            times[i],
            keys[i],
            payload[i],
            case_fold=arguments.case_fold,
            identity=of_both if arguments.is_one_stream else [],
        )
        for i, side in enumerate(get_args(SideName))
    )
    return left, right
