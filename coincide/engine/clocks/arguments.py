"""The arguments of clock errors, checked once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from coincide.engine.events.keys import Keys, Names, check_column, key_pairs
from coincide.engine.events.timestamp_names import TimestampNames, interval_names
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.clocks.errors import Limits
from coincide.model.errors import ConditionError, argument, brief, said_of
from coincide.model.options import How, check_no_most, check_truth
from coincide.model.units import Duration, Tick, size_of

MAX_DRIFT = 200e-6
CHANCE = 1e-3
_LARGEST_DRIFT = 0.01
_OTHER_DRIFT = 1.0
"""A larger number is meant in parts per million."""


@dataclass(frozen=True)
class ClockSpec:
    """What is computed, in ticks."""

    limits: Limits
    tick: Tick
    threads: int


@dataclass(frozen=True)
class ClockArguments(PairArguments):
    """The arguments of `coincide.clock_error_tables`."""

    max_offset: Duration = field(kw_only=True)
    max_drift: float = field(default=MAX_DRIFT, kw_only=True)
    match: Keys = field(default=(), kw_only=True)
    left_time: str = field(default="time", kw_only=True)
    right_time: str = field(default="time", kw_only=True)
    chance: float = field(default=CHANCE, kw_only=True)
    jumps: bool = field(default=True, kw_only=True)
    how: How = field(default="full", kw_only=True)
    left_columns: Names = field(default=(), kw_only=True)
    right_columns: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        with said_of("max_offset"):
            size = size_of(self.max_offset)
        if size <= 0:
            raise ConditionError(
                f"{argument('max_offset')} is the largest offset to look for, so it must be"
                f" positive (found {brief(self.max_offset)})."
            )
        for name in ("left_time", "right_time"):
            check_column(name, getattr(self, name), what=" of exact times")
        self._check_drift()
        if not _is_number(self.chance) or not 0 < self.chance < 1:
            raise ConditionError(
                f"{argument('chance')} must be above 0 and below 1 (found {brief(self.chance)})."
                f" Use 0.001 for one false answer in a thousand."
            )
        with said_of("match"):
            key_pairs(self.match)
        check_truth("jumps", self.jumps)
        self.check_pairs()
        check_no_most(self.options, "clock errors are no pairs")

    def _check_drift(self) -> None:
        drift = self.max_drift
        if not _is_number(drift) or not 0 <= drift <= _LARGEST_DRIFT:
            hint = ""
            if _is_number(drift) and _OTHER_DRIFT <= drift <= _LARGEST_DRIFT * 1e6:
                hint = f" For {drift:g} ppm write {drift * 1e-6:g}."
            raise ConditionError(
                f"{argument('max_drift')} is a fraction from 0 to {_LARGEST_DRIFT} (found"
                f" {brief(drift)}).{hint}"
            )

    @property
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of the left and of the right side."""
        own, others = (interval_names(name, name) for name in (self.left_time, self.right_time))
        return own, others

    @property
    def clock_keys(self) -> list[tuple[str, str]]:
        """The columns whose values have a clock each, left and right."""
        return key_pairs(self.by)

    @property
    def key_names(self) -> list[tuple[str, str]]:
        """The columns that are equal in a pair: those of clocks first."""
        return [*self.clock_keys, *key_pairs(self.match)]

    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which the largest offset cannot be counted."""
        with said_of("max_offset"):
            tick.count(self.max_offset)

    def spec(self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int) -> Any:
        """What is computed, in ticks."""
        tick = times[0].scales[0].tick
        with said_of("max_offset"):
            offset = tick.count(self.max_offset)
        limits = Limits(offset, float(self.max_drift), float(self.chance), self.jumps)
        return ClockSpec(limits, tick, self.options.threads or threads)


def _is_number(given: object) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given)
