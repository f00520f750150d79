"""A planned causality join of DataFrames: events meet as those of a correlation do."""

from __future__ import annotations

from typing import get_args

from pyspark.sql import DataFrame

from coincide.options import SideName
from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.causality.places import check_spark_coordinates
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.evidence import FrameEvidence
from spark_plugin.dataframes.output_columns import ResultColumns
from spark_plugin.dataframes.timestamps import spark_clocks, with_timestamps
from spark_plugin.ways.correlation import BATCH_PAIRS, Correlation, planned_join
from spark_plugin.ways.join_sides import check_one_stream
from spark_plugin.ways.shifts import accidental_pairs, plan_shifts
from spark_plugin.worker.arrow.schemas import check_keys
from spark_plugin.worker.causality import emptiness as _registers_what_pairs_reach  # noqa: F401
from spark_plugin.worker.causality.arguments import MATCHLESS, CausalityArguments


def plan_causality(
    causes: DataFrame,
    effects: DataFrame | None,
    arguments: CausalityArguments,
    *,
    observe: bool = False,
) -> Correlation:
    """Plan a causality join of two DataFrames, or of one with itself.

    Parameters
    ----------
    causes : DataFrame
    effects : DataFrame or None
        None where the arguments say that there is one stream.
    arguments : CausalityArguments
    observe : bool
        Whether workers count what they look at and find.

    Raises
    ------
    SchemaError, ConditionError, DataError
        As `coincide.causality`.
    """
    options = arguments.options
    sides = event_frames((causes, causes if effects is None else effects), arguments)
    if arguments.is_one_stream:
        check_one_stream(causes, options.way, "effects", "effects")
    spec = arguments.spec([side.times for side in sides], 1, BATCH_PAIRS)
    shifts = plan_shifts(arguments.shifts, sides, spec)
    planned = planned_join(sides, spec, ResultColumns(sides, spec), options, spec.backend, observe)
    evidence = FrameEvidence(planned.sides, spec, planned.statistics)
    with planned.closed_on_failure():
        counted = accidental_pairs(shifts, sides, spec, options, spec.backend, planned.statistics)
    return planned.correlation(evidence, matchless=MATCHLESS, accidental=counted)


def event_frames(
    sources: tuple[DataFrame, DataFrame], arguments: CausalityArguments
) -> tuple[EventFrame, EventFrame]:
    """Both sides as events; of one stream they are the same.

    Raises
    ------
    SchemaError, ConditionError
        As `coincide.causality`.
    """
    keys, payload, called = arguments.keys, arguments.payload, arguments.sides
    kinds = [frames.key_kinds(*each, keys) for each in zip(sources, called, strict=True)]
    check_keys(keys, kinds[0], kinds[1])
    for source, side, place in zip(sources, called, arguments.places, strict=True):
        check_spark_coordinates(source, side, place)
    clocks = [
        clock
        for source, side, names in zip(sources, called, arguments.timestamps, strict=True)
        for clock in spark_clocks(side, names, source)
    ]
    columns = arguments.resolved(clocks)
    handed_out = list(dict.fromkeys([*payload[0], *payload[1]]))
    for source, side, names in zip(sources, called, payload, strict=True):
        for name in names:
            frames.field_of(source, side, name)
    left, right = (
        EventFrame(
            side,
            with_timestamps(times, source),
            times,
            keys,
            own,
            identity=handed_out if arguments.is_one_stream else [],
            has_like_keys=kinds[0] == kinds[1],
        )
        for side, source, times, own in zip(
            get_args(SideName), sources, columns, payload, strict=True
        )
    )
    return left, right
