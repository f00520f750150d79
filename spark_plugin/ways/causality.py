"""A planned causality join of DataFrames: events meet as those of a correlation do, and have places."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.causality import emptiness as _registers_what_pairs_reach  # noqa: F401
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.emptiness import warn_of_names
from coincide.engine.events.places import Coordinate, names_of_coordinates
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import SchemaError
from spark_plugin.frames.columns import field_of
from spark_plugin.ways import join_sides
from spark_plugin.ways.correlation import Correlation, planned_pairs
from spark_plugin.ways.join_sides import Sides, check_one_stream, settled


def plan_causality(
    causes: DataFrame,
    effects: DataFrame | None,
    arguments: CausalityArguments,
    *,
    observe: bool = False,
) -> Correlation:
    """Plan a causality join of two DataFrames, or of one with itself."""
    arguments, sides = prepared(causes, effects, arguments)
    return planned_pairs(sides, arguments, observe)


def prepared(
    causes: DataFrame, effects: DataFrame | None, arguments: CausalityArguments
) -> tuple[CausalityArguments, Sides]:
    """The arguments for two DataFrames, or for one stream, and both sides as events."""
    warn_of_names(arguments.condition, arguments.places)
    sources = causes, causes if effects is None else effects
    if arguments.is_one_stream:
        check_one_stream(
            causes, arguments.options.way, "effects", "effects", "Use causality_streams. Or: "
        )
    arguments = settled(arguments, *sources)
    return arguments, event_frames(sources, arguments)


def event_frames(sources: tuple[DataFrame, DataFrame], arguments: PairArguments) -> Sides:
    """Both sides as events; of one stream they are the same."""
    for source, side, place in zip(sources, arguments.sides, arguments.places, strict=True):
        check_spark_coordinates(source, side, place)
    return join_sides.event_frames(sources, arguments)


_NUMBERS = (T.IntegralType, T.FloatType, T.DoubleType, T.DecimalType)


def check_spark_coordinates(frame: DataFrame, side: str, place: tuple[Coordinate, ...]) -> None:
    """Refuse columns that are missing, or hold no numbers."""
    for name in names_of_coordinates(place):
        kind = field_of(frame, side, name).dataType
        if not isinstance(kind, _NUMBERS):
            raise SchemaError(
                f"{side}.{name} must be a number, as it is a coordinate (found {kind.simpleString()}). Cast"
                " it, or name another column."
            )
