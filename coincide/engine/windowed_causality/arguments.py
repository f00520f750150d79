"""The arguments of causality through a window, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coincide.engine.causality.arguments import Place, check_condition, check_places, coordinates
from coincide.engine.events.keys import Names, check_column, check_names, names_of
from coincide.engine.events.places import Coordinate, names_of_coordinates
from coincide.model.causality.condition import CausalityCondition, CausalityModel
from coincide.model.errors import ConditionError, argument, brief, options_called
from coincide.model.options import CorrelateOptions, check_options
from coincide.model.units import Tick
from coincide.model.windowed_causality import BY_DISTANCE, POLICIES, WindowOptions, WindowTerms

EVENT = "event"
"""What the table is called in messages."""

_CELLS = 4
"""A reach has this many cells, whose places are learnt one by one."""


@dataclass(frozen=True)
class WindowArguments:
    """The question of causality through a window: the arguments of `coincide.WindowedCausality`."""

    condition: CausalityCondition
    time: str = "time"
    place: Place = ()
    arrival: str | None = None
    role: str | None = None
    home: Sequence[float] | float = ()
    columns: Names = ("id",)
    options: WindowOptions = WindowOptions()

    def __post_init__(self) -> None:
        check_condition(self.condition)
        check_names("columns", self.columns)
        check_options(self.options, WindowOptions)
        for name in ("time", "arrival", "role"):
            is_time = name == "time"
            what = " of exact instants" * is_time
            check_column(name, getattr(self, name), may_lack=not is_time, what=what)
        check_places(self.condition, "place", len(self.coordinates))
        self._check_home()
        if self.options.max_stay is not None and self.arrival is None:
            raise ConditionError(
                f"{argument('max_stay')} is a time, so the window must know when tuples arrive."
                f" Name the column with {argument('arrival')}. To count arrivals instead, remove"
                f" {argument('max_stay')}."
            )

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """Where tuples are."""
        return coordinates("place", self.place, self.condition.space)

    @property
    def payload(self) -> list[str]:
        """The output columns."""
        return names_of(self.columns)

    @property
    def clocks(self) -> list[str]:
        """The columns of valid times and of arrivals."""
        return [self.time, *([self.arrival] if self.arrival else [])]

    @property
    def other_columns(self) -> list[str]:
        """Columns that are read with times and places."""
        return [each for each in (self.arrival, self.role) if each is not None]

    @property
    def read_columns(self) -> list[str]:
        """All columns that are read, each once; they may be output columns, too."""
        places = names_of_coordinates(self.coordinates)
        return list(dict.fromkeys([self.time, *self.other_columns, *places]))

    @property
    def reading(self) -> CorrelateOptions:
        """Options of reading times."""
        given = self.options
        return CorrelateOptions(unit=given.unit, tick=given.tick, invalid=given.invalid)

    def model(self, tick: Tick) -> CausalityModel:
        """The condition in ticks."""
        with options_called("WindowOptions"):
            return self.condition.model(tick, heights=len(self.coordinates) == 3)

    def terms(self, model: CausalityModel, tick: Tick) -> WindowTerms:
        """What kernels take."""
        options, (lo, hi) = self.options, model.window
        own = self.role is None
        lo = max(lo, 0) if own and model.is_forward else lo
        with options_called("WindowOptions"):
            stay = options.window if options.max_stay is None else tick.count(options.max_stay)
        policy = POLICIES.index(options.policy)
        return WindowTerms(
            model.rule, lo, hi, model.deltas[1], own, policy, options.window, stay,
            options.max_stay is None, self._side(model), self._home(), options.following,
        )  # fmt: skip

    def _side(self, model: CausalityModel) -> float:
        """The side of cells: a power of two, so that places are cut alike wherever it is done."""
        reach = model.reach
        if model.rule.curvature:
            reach /= float(np.sqrt(model.rule.curvature))
        if not 0 < reach < 2.0**500:
            return 1.0 if reach == 0 else float("inf")
        return float(2.0 ** np.floor(np.log2(reach / _CELLS)))

    def _home(self) -> tuple[float, float, float, float]:
        given = _numbers(self.home)
        if not given:
            return 0.0, 0.0, 0.0, 0.0
        points = self.condition.space.points([np.array([each]) for each in given])
        x, y, z, h = np.append(points[:, 0], 0.0)[:4].tolist()
        return x, y, z, h

    def _check_home(self) -> None:
        given = _numbers(self.home)
        if given and len(given) != len(self.coordinates):
            raise ConditionError(
                f"{argument('home')} has {len(given)} coordinates, and place has"
                f" {len(self.coordinates)}. Give the same number of both."
            )
        space = self.condition.space
        limits = space.limits(len(given)) if given else []
        if any(abs(one) > limit for one, limit in zip(given, limits, strict=True)):
            raise ConditionError(
                f"{argument('home')} must be a place of {space} (found {brief(self.home)})."
            )
        if not given and self.options.policy in BY_DISTANCE:
            raise ConditionError(
                f"policy {self.options.policy!r} needs the distance of tuples from the window."
                " Give its place, for example home=(0.5, 0.5), and name the coordinates in place."
            )


def _numbers(given: object) -> tuple[float, ...]:
    each = (given,) if not isinstance(given, (tuple, list)) else tuple(given)
    try:
        found = tuple(float(one) for one in each)
    except (TypeError, ValueError):
        found = (float("nan"),)
    if not all(np.isfinite(found)):
        raise ConditionError(
            f"{argument('home')} must be numbers, one a coordinate (found {brief(given)})."
        )
    return found
