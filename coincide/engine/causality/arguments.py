"""The arguments of causality joins, checked once, and the places of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import ClassVar

import pyarrow as pa

from coincide.engine.causality.pairing import CausalitySpec
from coincide.engine.events.keys import Names
from coincide.engine.events.places import Coordinate, Coordinates
from coincide.engine.events.time_columns import TimeColumn, resolve_tick
from coincide.engine.events.timestamp_names import (
    GivenTimes,
    TimestampNames,
    arrow_clocks,
    timestamp_names,
)
from coincide.engine.events.timestamps import (
    TimestampColumns,
)
from coincide.engine.join.delta import DELTA, delta_columns, in_unit
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.pair_columns import PairColumns
from coincide.model.causality.condition import CausalityCondition
from coincide.model.causality.spaces import Space
from coincide.model.errors import (
    ConditionError,
    SchemaError,
    argument,
    brief,
    found_instead,
    several,
)
from coincide.model.options import EffectChoice, MatchChoice
from coincide.model.remembered import remembered
from coincide.model.units import Tick


def coordinates(name: str, given: object, space: Space) -> tuple[Coordinate, ...]:
    """The coordinates of a side, checked: none, or as many as the space has."""
    if isinstance(given, (str, Real)):
        given = (given,)
    if not isinstance(given, Sequence) or not all(map(_is_coordinate, given)):
        raise ConditionError(
            f"{argument(name)} must be a sequence of column names, or of finite numbers that hold"
            f" for all events (found {brief(given)})."
        )
    least, most = space.dimensions
    if given and not least <= len(given) <= most:
        raise ConditionError(
            f"{argument(name)} has {len(given)} coordinates, but {space.words}. Name as many"
            " columns."
        )
    return tuple(each if isinstance(each, str) else float(each) for each in given)


def coordinates_in(space: Space, place: tuple[Coordinate, ...]) -> Coordinates:
    """Coordinates of a space, and how far each can be from 0."""
    return Coordinates(place, tuple(space.limits(len(place))) if place else ())


def _is_coordinate(given: object) -> bool:
    if isinstance(given, Real) and not isinstance(given, bool):
        return math.isfinite(given)
    return isinstance(given, str)


Place = str | float | Sequence[Coordinate]
CAUSE_AND_EFFECT = ("cause", "effect")
MATCHLESS = "time, place or key"
"""What rows lack that match nothing."""


@dataclass(frozen=True)
class CausalityArguments(PairArguments):
    """The question of a causality join: the arguments of `coincide.causality_tables`."""

    condition: CausalityCondition
    cause_time: GivenTimes = field(default="time", kw_only=True)
    effect_time: GivenTimes | None = field(default=None, kw_only=True)
    cause_place: Place = field(default=(), kw_only=True)
    effect_place: Place | None = field(default=None, kw_only=True)
    cause_columns: Names = field(default=("id",), kw_only=True)
    effect_columns: Names = field(default=("id",), kw_only=True)

    prefixes: ClassVar[tuple[str, str]] = CAUSE_AND_EFFECT
    matchless: ClassVar[str] = MATCHLESS
    kind_of_choice: ClassVar[type[MatchChoice]] = EffectChoice
    place_arguments: ClassVar[tuple[str, str]] = ("cause_place", "effect_place")
    time_arguments: ClassVar[tuple[str, str]] = ("cause_time", "effect_time")
    """What messages call the places of both sides."""

    def __post_init__(self) -> None:
        check_condition(self.condition)
        if self.how in ("right", "full"):
            raise ConditionError(
                f"causality does not take {argument('how', self.how)}. Use"
                f" {argument('how', 'left')} for causes without an effect. Effects without a cause"
                " are those whose ids are in no pair."
            )
        self.check_pairs()
        if self.is_one_stream:
            self._take_from_causes()
        for longest, times in zip(("left_longest", "right_longest"), self.times, strict=True):
            if getattr(self.options, longest) is not None:
                times.check_longest(longest)
        own, others = (len(place) for place in self.places)
        if own != others:
            raise ConditionError(
                f"{argument('cause_place')} has {several(own, 'coordinate')} and"
                f" {argument('effect_place')} {others}, but a distance needs the same number of"
                " both. Name as many. A number instead of a name holds for every event, such as"
                " 0.0 for a depth."
            )
        check_places(
            self.condition, " and ".join(map(argument, dict.fromkeys(self.place_arguments))), own
        )
        if self.choice.word.needs_places and not own:
            raise ConditionError(
                f"{self.choice.word.said} needs places. Name the coordinates in"
                f" {argument('cause_place')} and {argument('effect_place')}, such as ('x', 'y'),"
                f" or remove {self.choice.word.option}."
            )

    @property
    def pair_values(self) -> tuple[str, ...]:
        """As in `PairArguments`: also the distance in space."""
        return (*super().pair_values, *["distance"] * bool(self.places[0]))

    def _check_weights(self) -> None:
        """As in `PairArguments`; a condition has a confidence of its own."""
        super()._check_weights()
        self._check_likely(self.condition.confidence)

    def _take_from_causes(self) -> None:
        """Take times and places from causes, as one stream names them once."""
        for name in ("time", "place"):
            given, own = getattr(self, f"effect_{name}"), getattr(self, f"cause_{name}")
            if given is not None and _listed(given) != _listed(own):
                raise ConditionError(
                    "causes and effects are the same in one stream. Remove"
                    f" {argument(f'effect_{name}')}, or give the events a second time as effects."
                )
            object.__setattr__(self, f"effect_{name}", own)

    @remembered
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of causes and of effects."""
        given = self.cause_time, self.effect_time or self.cause_time
        own, others = map(timestamp_names, self.time_arguments, given)
        return own, others

    @remembered
    def places(self) -> tuple[tuple[Coordinate, ...], tuple[Coordinate, ...]]:
        """Coordinates of causes and of effects."""
        space = self.condition.space
        others = self.cause_place if self.effect_place is None else self.effect_place
        own, others = (
            coordinates(name, place, space)
            for name, place in zip(self.place_arguments, (self.cause_place, others), strict=True)
        )
        return own, others

    @property
    def where_columns(self) -> PairColumns:
        """What `where` may be on."""
        return causal_columns(len(self.places[0]))

    def where_columns_of(self, left: pa.Schema, right: pa.Schema) -> PairColumns:
        """As in `PairArguments`: the tick is known then."""
        given = zip(self.sides, self.times, (left, right), strict=True)
        clocks = [clock for each in given for clock in arrow_clocks(*each)]
        return causal_columns(len(self.places[0]), resolve_tick(clocks, self.options))

    def resolved_times(
        self, clocks: Sequence[TimeColumn]
    ) -> tuple[TimestampColumns, TimestampColumns]:
        """As in `PairArguments`, with places."""
        own, others = (
            replace(each, coordinates=coordinates_in(self.condition.space, place))
            for each, place in zip(super().resolved_times(clocks), self.places, strict=True)
        )
        return own, others

    def check_tick(self, tick: Tick) -> None:
        """As in `PairArguments`."""
        self.condition.limits(tick)

    def spec(
        self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int
    ) -> CausalitySpec:
        """What is computed, in ticks; the numbers are for what the options leave open."""
        coordinates, tick = len(self.places[0]), times[0].scales[0].tick
        model = self.condition.model(tick, heights=coordinates == 3)
        self.check_symmetric(model.is_symmetric)
        return CausalitySpec(
            model, self.condition.space, how=self.how, coordinates=coordinates,
            delta_name=in_unit(DELTA, tick), **self._of_spec(times, threads, batch_pairs),
        )  # fmt: skip


def causal_columns(coordinates: int, tick: Tick | None = None) -> PairColumns:
    """The columns of a pair: those of both events, delta, and the distance where there are places."""
    placed = (("distance", pa.float64()),) if coordinates else ()
    return PairColumns(CAUSE_AND_EFFECT, (*delta_columns(tick), *placed))


def check_condition(condition: object) -> None:
    """Refuse what is no causality condition."""
    if not isinstance(condition, CausalityCondition):
        raise SchemaError(
            f"{argument('condition')} must be a CausalityCondition(predicates, space), such as"
            f" CausalityCondition([Temporal(0, '5s')]) (found {found_instead(condition)})."
        )


def check_places(condition: CausalityCondition, names: str, given: int) -> None:
    """Refuse a condition on distances without places."""
    if condition.needs_places and not given:
        raise ConditionError(
            "the condition depends on distances, but coordinates are missing. Name them in"
            f" {names}, such as ('x', 'y')."
        )


def _listed(given: object) -> list[object]:
    return list(given) if isinstance(given, (list, tuple)) else [given]
