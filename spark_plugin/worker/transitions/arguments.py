"""The arguments of region transitions, checked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError, brief
from coincide.options import CorrelateOptions, check_choice
from coincide.predicates import Within
from coincide.region_transitions.decision import DwellRule
from coincide.region_transitions.watches import REPEATED, Repeated
from coincide.units import Duration, Tick, size_of
from spark_plugin.worker.arrow.time_columns import TimeColumn, resolve_tick, scale_of
from spark_plugin.worker.timestamps.intervals import IntervalColumns

SIDE = "events"
"""What the table is called in messages."""

MADE_COLUMNS = (
    "transition", "first_min_time", "first_max_time", "min_time", "max_time",
)  # fmt: skip
"""Columns of the result after those of the query and the stream."""

_OPTIONS = ("unit", "tick", "invalid")


@dataclass(frozen=True)
class TransitionArguments:
    """What is asked of region transitions: the arguments of `coincide.transition_tables`.

    Raises
    ------
    ConditionError
        If an argument makes no sense.
    """

    within: Duration
    confidence: float | None = None
    query: str = "query_id"
    stream: str | None = "stream_id"
    event: str = "event"
    time: str | Sequence[str] = ("min_time", "max_time")
    repeated: Repeated = "raise"
    options: CorrelateOptions = CorrelateOptions()

    def __post_init__(self) -> None:
        _check_within(self.within)
        _ = self._condition
        for argument in ("query", "stream", "event"):
            name, may_lack = getattr(self, argument), argument == "stream"
            if not isinstance(name, str) and not (may_lack and name is None):
                raise ConditionError(
                    f"{argument} must be the name of a column{' or None' * may_lack}; found"
                    f" {brief(name)}"
                )
        _ = self.clocks
        check_choice("repeated", self.repeated, REPEATED)
        _check_options(self.options)
        twice = [name for name, n in Counter(self.result_columns).items() if n > 1]
        if twice:
            raise ConditionError(
                f"the result would have two columns {twice[0]!r}: it has {', '.join(MADE_COLUMNS)} beside"
                " those of query and stream; rename the column that query or stream names"
            )

    @property
    def clocks(self) -> tuple[str, str]:
        """The columns of the earliest and of the latest time; they may be one."""
        names = [self.time] if isinstance(self.time, str) else self.time
        found = tuple(names) if isinstance(names, (list, tuple)) else ()
        if len(found) not in (1, 2) or not all(isinstance(name, str) for name in found):
            raise ConditionError(
                "time must be the name of a column of exact instants, or a (min, max) pair of names;"
                f" found {brief(self.time)}"
            )
        return found[0], found[-1]

    @property
    def ids(self) -> list[str]:
        """The columns of the query and, unless all events are of one stream, of the stream."""
        return [self.query] if self.stream is None else [self.query, self.stream]

    @property
    def columns(self) -> list[str]:
        """All columns that are needed of the events, each once."""
        return list(dict.fromkeys((*self.ids, self.event, *self.clocks)))

    @property
    def result_columns(self) -> list[str]:
        """All columns of the result."""
        return [*self.ids, *MADE_COLUMNS]

    @property
    def _condition(self) -> TimingCondition:
        """A dwell time is a difference of times like any other; of exact ones, P is 0 or 1."""
        return TimingCondition(
            Within(0, self.within), 1.0 if self.confidence is None else self.confidence
        )

    def times(self, clocks: Sequence[TimeColumn]) -> IntervalColumns:
        """How the two time columns become ticks.

        Raises
        ------
        SchemaError, ConditionError
            If they do not go together, or not with what the options say.
        """
        lower, upper = clocks
        if lower.family != upper.family:
            raise SchemaError(
                f"{SIDE}.{lower.name} is {lower.family} and {SIDE}.{upper.name} is {upper.family}; cast"
                " one, so that both are of one kind"
            )
        tick = resolve_tick(clocks, self.options)
        scales = [scale_of(column, tick, self.options) for column in clocks]
        return IntervalColumns((scales[0], scales[1]))

    def rule(self, tick: Tick) -> DwellRule:
        """The decision on dwell times, in ticks.

        Raises
        ------
        ConditionError
            If `within` is no whole number of ticks, or reaches 2**61 ticks.
        """
        return DwellRule.of(self._condition.window(tick))


def _check_within(within: Duration) -> None:
    if size_of(within) < 0:
        raise ConditionError(
            "within is the longest dwell time of a transition and cannot be negative; found"
            f" {brief(within)}"
        )


def _check_options(options: CorrelateOptions) -> None:
    if not isinstance(options, CorrelateOptions):
        raise ConditionError(f"options must be CorrelateOptions(...); found {brief(options)}")
    default = CorrelateOptions()
    for field in fields(CorrelateOptions):
        if field.name not in _OPTIONS and getattr(options, field.name) != getattr(
            default, field.name
        ):
            raise ConditionError(
                f"transitions take {', '.join(_OPTIONS)} of CorrelateOptions; {field.name} means nothing"
                " here: leave it out"
            )
