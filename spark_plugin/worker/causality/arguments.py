"""The arguments of a causality join, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityCondition
from coincide.errors import ConditionError, SchemaError, found_instead
from coincide.options import Backend, CorrelateOptions, Emit, How
from coincide.partners import LARGEST_GROUP, EffectPartners, Matching, PreferEffect
from coincide.plurals import several
from coincide.units import Duration, Tick
from spark_plugin.worker.arrow.time_columns import TimeColumn, resolve_tick, scale_of
from spark_plugin.worker.backends.choice import check_backend
from spark_plugin.worker.causality.emission import CausalitySpec
from spark_plugin.worker.causality.measures import DELTA_NAMES, delta_name
from spark_plugin.worker.causality.places import Coordinate, PlacedColumns, coordinates
from spark_plugin.worker.column_names import Names
from spark_plugin.worker.emission.spec import check_emission
from spark_plugin.worker.histograms import Histograms
from spark_plugin.worker.keys import Keys
from spark_plugin.worker.pair_arguments import PairArguments
from spark_plugin.worker.shifts import Shifts
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.names import (
    GivenTimes,
    TimestampNames,
    arrow_clocks,
    timestamp_names,
)
from spark_plugin.worker.where.pair_columns import PairColumns
from spark_plugin.worker.where.pair_filter import GivenWhere, Where

Place = str | float | Sequence[Coordinate]
CAUSE_AND_EFFECT = ("cause", "effect")
MATCHLESS = "time, place or key"
"""What rows lack that match nothing."""


@dataclass(frozen=True)
class CausalityArguments(PairArguments):
    """What is asked of a causality join: the arguments of `coincide.causality_tables`.

    Raises
    ------
    SchemaError
        If the condition is none.
    ConditionError
        If an argument makes no sense, or the condition needs places and none are given.
    """

    condition: CausalityCondition
    cause_time: GivenTimes = "time"
    effect_time: GivenTimes = "time"
    cause_place: Place = ()
    effect_place: Place | None = None
    by: Keys = ()
    cause_columns: Names = ("id",)
    effect_columns: Names = ("id",)
    how: How = "inner"
    emit: Emit = "pairs"
    backend: Backend = "auto"
    options: CorrelateOptions = CorrelateOptions()
    is_one_stream: bool = False
    shifts: Shifts = None
    case_fold: bool = False
    where: GivenWhere | Where = None
    prefer: PreferEffect = "probability"
    k: int = 1
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP
    probability: bool = False

    prefixes: ClassVar[tuple[str, str]] = CAUSE_AND_EFFECT
    matchless: ClassVar[str] = MATCHLESS

    def __post_init__(self) -> None:
        check_condition(self.condition)
        self.check_pairs()
        if self.how in ("right", "full"):
            raise ConditionError(
                f"how={self.how!r} is of correlate; causality takes how='left' for causes without an"
                " effect. Effects without a cause are those whose ids are in no pair"
            )
        check_emission(self.how, self.emit, self.probability)
        self.partners.check_emission(self.how, self.emit)
        check_backend(self.backend)
        for name in ("cause", "effect"):
            check_time(name, getattr(self, f"{name}_time"), self.options)
        given = self.cause_time, self.effect_time
        if self.backend == "gpu" and any(isinstance(time, Histograms) for time in given):
            raise ConditionError(
                "causality joins of histogram timestamps run on CPUs; leave out backend='gpu'"
            )
        if self.is_one_stream:
            self._take_from_causes()
        own, others = (len(place) for place in self.places)
        if own != others:
            raise ConditionError(
                f"cause_place has {several(own, 'coordinate')} and effect_place {others}; a"
                " distance needs as many of both. A number in the place of a name holds for every event,"
                " such as 0.0 for a depth"
            )
        check_places(self.condition, "cause_place and effect_place", own)
        if self.prefer == "distance" and not own:
            raise ConditionError(
                "prefer='distance' needs places: name the coordinates in cause_place and effect_place, such"
                " as ('x', 'y'), or leave it out"
            )

    def _take_from_causes(self) -> None:
        """Of one stream times and places are said once."""
        for name, default in (("time", "time"), ("place", None)):
            given, own = getattr(self, f"effect_{name}"), getattr(self, f"cause_{name}")
            if given != default and _listed(given) != _listed(own):
                raise ConditionError(
                    f"of one stream causes and effects are the same: leave effect_{name} out, or give the"
                    " events a second time as effects"
                )
            object.__setattr__(self, f"effect_{name}", own)

    @property
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of causes and of effects."""
        return timestamp_names("cause", self.cause_time), timestamp_names(
            "effect", self.effect_time
        )

    @property
    def places(self) -> tuple[tuple[Coordinate, ...], tuple[Coordinate, ...]]:
        """Coordinates of causes and of effects."""
        space = self.condition.space
        others = self.cause_place if self.effect_place is None else self.effect_place
        return (
            coordinates("cause_place", self.cause_place, space),
            coordinates("effect_place", others, space),
        )

    @property
    def partners(self) -> EffectPartners:
        """Which effects of a cause are handed out."""
        return EffectPartners(self.prefer, self.k, self.matching, self.largest_group)

    @property
    def pair_columns(self) -> PairColumns:
        """What `where` may be on."""
        return causal_columns(len(self.places[0]))

    def pair_columns_of(self, left: pa.Schema, right: pa.Schema) -> PairColumns:
        """As of `PairArguments`: the tick is known then."""
        given = zip(self.sides, self.times, (left, right), strict=True)
        clocks = [clock for each in given for clock in arrow_clocks(*each)]
        return causal_columns(len(self.places[0]), resolve_tick(clocks, self.options))

    def resolved_times(self, clocks: Sequence[TimeColumn]) -> tuple[PlacedColumns, PlacedColumns]:
        """As of `PairArguments`, with places."""
        longest = self.options.left_longest, self.options.right_longest
        own, others = resolved_columns(
            clocks, self.times, self.places, self.condition, self.options,
            longest[:1] * 2 if self.is_one_stream else longest,
        )  # fmt: skip
        return own, others

    def check_tick(self, tick: Tick) -> None:
        """As of `PairArguments`."""
        self.condition.limits(tick)

    def spec(
        self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int
    ) -> CausalitySpec:
        """What is computed, in ticks; the numbers are for what the options leave open.

        Raises
        ------
        ConditionError
            As `CausalityCondition.model`, and `check_symmetric`.
        """
        coordinates, tick = len(self.places[0]), times[0].scales[0].tick
        own, others = (side.model for side in times)
        has_histograms = own.table is not None or others.table is not None
        model = self.condition.model(tick, heights=coordinates == 3)
        self.check_symmetric(model.is_symmetric)
        return CausalitySpec(
            model, self.condition.space, coordinates,
            self.how, "pairs" if self.matching else self.emit, self.options.threads or threads,
            self.options.batch_pairs or batch_pairs, self.is_one_stream, self.pairs_once,
            "cpu" if has_histograms else self.backend, models=(own, others),
            case_fold=self.case_fold, partners=self.partners, probability=self.probability,
            delta_name=delta_name(tick),
        )  # fmt: skip


def causal_columns(coordinates: int, tick: Tick | None = None) -> PairColumns:
    """The columns of a pair: those of both events, delta, and the distance where there are places.

    As long as no tick is known delta may have any of its names.
    """
    placed = (("distance", pa.float64()),) if coordinates else ()
    deltas = DELTA_NAMES if tick is None else (delta_name(tick),)
    return PairColumns(CAUSE_AND_EFFECT, (*((name, pa.int64()) for name in deltas), *placed))


def resolved_columns(
    clocks: Sequence[TimeColumn],
    timestamps: Sequence[TimestampNames],
    places: Sequence[tuple[Coordinate, ...]],
    condition: CausalityCondition,
    options: CorrelateOptions,
    longest: Sequence[Duration | None],
) -> list[PlacedColumns]:
    """Timestamps and places of sides, of which each has two clocks, in one tick."""
    tick = resolve_tick(clocks, options)
    scales = [scale_of(column, tick, options) for column in clocks]
    counted = [None if length is None else tick.count(length) for length in longest]
    return [
        PlacedColumns(
            names.resolved((scales[2 * side], scales[2 * side + 1]), counted[side]),
            places[side],
            condition.space,
        )
        for side, names in enumerate(timestamps)
    ]


def check_condition(condition: object) -> None:
    """Refuse what is no causality condition."""
    if not isinstance(condition, CausalityCondition):
        raise SchemaError(
            "condition must be a CausalityCondition(predicates, space), such as"
            f" CausalityCondition([Temporal(0, '5s')]); found {found_instead(condition)}"
        )


def check_time(side: str, time: GivenTimes, options: CorrelateOptions) -> None:
    """Refuse timestamps of which too much is said."""
    longest = "right_longest" if side == "effect" else "left_longest"
    if getattr(options, longest) is not None:
        timestamp_names(side, time).check_longest(longest)


def check_places(condition: CausalityCondition, argument: str, given: int) -> None:
    """Refuse a condition on distances without places."""
    if condition.needs_places and not given:
        raise ConditionError(
            f"the condition depends on distances: name the coordinates in {argument}, such as ('x', 'y')"
        )


def _listed(given: object) -> list[object]:
    return list(given) if isinstance(given, (list, tuple)) else [given]
