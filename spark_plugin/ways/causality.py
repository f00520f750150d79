"""A planned causality join of DataFrames: events meet as those of a correlation do."""

from __future__ import annotations

from pyspark.sql import DataFrame

from coincide.engine.causality import emptiness as _registers_what_pairs_reach  # noqa: F401
from coincide.engine.causality.arguments import (
    CausalityArguments,
    PlacedColumns,
    names_of_coordinates,
)
from coincide.engine.causality.emptiness import warn_of_names
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.places import check_spark_coordinates
from spark_plugin.ways import join_sides
from spark_plugin.ways.correlation import Correlation, planned_pairs
from spark_plugin.ways.join_sides import check_one_stream, settled
from spark_plugin.ways.matching import telling_apart


def plan_causality(
    causes: DataFrame,
    effects: DataFrame | None,
    arguments: CausalityArguments,
    *,
    observe: bool = False,
) -> Correlation:
    """Plan a causality join of two DataFrames, or of one with itself."""
    warn_of_names(arguments.condition, arguments.places)
    sources = causes, causes if effects is None else effects
    if arguments.is_one_stream:
        check_one_stream(causes, arguments.options.way, "effects", "effects")
    arguments = settled(arguments, *sources)
    return planned_pairs(event_frames(sources, arguments), arguments, observe)


def event_frames(
    sources: tuple[DataFrame, DataFrame], arguments: CausalityArguments
) -> tuple[EventFrame, EventFrame]:
    """Both sides as events; of one stream they are the same."""
    for source, side, place in zip(sources, arguments.sides, arguments.places, strict=True):
        check_spark_coordinates(source, side, place)
    return join_sides.event_frames(sources, arguments)


@telling_apart.register
def _(columns: PlacedColumns) -> list[str]:
    return [*telling_apart(columns.times), *names_of_coordinates(columns.place)]
