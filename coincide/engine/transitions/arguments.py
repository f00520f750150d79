"""The arguments of region transitions, checked once, and the columns of their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from coincide.engine.events.intervals import IntervalColumns, instant_of
from coincide.engine.events.keys import check_column
from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import (
    arrow_time_column,
    computed_time,
    id_type,
    result_time,
    type_of,
)
from coincide.engine.events.time_columns import resolve_tick, scale_of
from coincide.engine.join.delta import in_unit
from coincide.model.condition import Confidence, TimingCondition, Within, checked_confidence
from coincide.model.errors import ConditionError, SchemaError, argument, brief, said_of
from coincide.model.options import CorrelateOptions, check_choice, check_options
from coincide.model.transitions import REPEATED, DwellRule, Repeated
from coincide.model.units import NANOSECONDS_PER_UNIT, Duration, Tick, size_of

SIDE = "events"
"""What the table is called in messages."""

MADE_COLUMNS = (
    "transition", "first_min_time", "first_max_time", "min_time", "max_time", "next_min_time",
    "next_max_time",
)  # fmt: skip
DURATIONS = ("min_duration", "max_duration")
"""Columns of the result after those of the query and the stream; the durations say what they count."""

_OPTIONS = ("unit", "tick", "invalid")


@dataclass(frozen=True)
class TransitionArguments:
    """The question of region transitions: the arguments of `coincide.transition_tables`."""

    within: Duration
    confidence: Confidence | None = None
    query: str = "query_id"
    stream: str | None = "stream_id"
    event: str = "event"
    time: str | Sequence[str] = ("min_time", "max_time")
    repeated: Repeated = "raise"
    options: CorrelateOptions = CorrelateOptions()

    def __post_init__(self) -> None:
        _check_within(self.within)
        _ = self._condition
        for name in ("query", "stream", "event"):
            check_column(name, getattr(self, name), may_lack=name == "stream")
        _ = self.clocks
        check_choice("repeated", self.repeated, REPEATED)
        _check_options(self.options)
        of_units = (f"{name}_{unit}" for name in DURATIONS for unit in NANOSECONDS_PER_UNIT)
        made = (*MADE_COLUMNS, *DURATIONS)
        twice = [name for name, n in Counter((*self.ids, *made, *of_units)).items() if n > 1]
        if twice:
            raise ConditionError(
                f"the result would have two columns named {twice[0]!r}, as it has"
                f" {', '.join(made)} next to those of query and stream. Rename the column"
                " that query or stream names."
            )

    @property
    def clocks(self) -> tuple[str, str]:
        """The columns of the earliest and of the latest time; they may be one."""
        names = [self.time] if isinstance(self.time, str) else self.time
        found = tuple(names) if isinstance(names, (list, tuple)) else ()
        if len(found) not in (1, 2) or not all(isinstance(name, str) for name in found):
            raise ConditionError(
                f"{argument('time')} must be the name of a column of exact instants, or a (min,"
                f" max) pair of names (found {brief(self.time)})."
            )
        return found[0], found[-1]

    @property
    def ids(self) -> list[str]:
        """The columns of the query and, unless all events belong to one stream, of the stream."""
        return [self.query] if self.stream is None else [self.query, self.stream]

    @property
    def columns(self) -> list[str]:
        """All columns that are needed of the events, each once."""
        return list(dict.fromkeys((*self.ids, self.event, *self.clocks)))

    def result_columns(self, tick: Tick) -> list[str]:
        """All columns of the result."""
        return [*self.ids, *MADE_COLUMNS, *(in_unit(name, tick) for name in DURATIONS)]

    @property
    def _condition(self) -> TimingCondition:
        """A dwell time is a difference of times like any other; of exact ones, P is 0 or 1."""
        confidence = 1.0 if self.confidence is None else checked_confidence(self.confidence)
        return TimingCondition(Within(0, self.within), confidence)

    def times(self, schema: pa.Schema) -> IntervalColumns:
        """How the two time columns become ticks."""
        clocks = [arrow_time_column(SIDE, n, type_of(schema, SIDE, n)) for n in self.clocks]
        lower, upper = clocks
        if lower.family != upper.family:
            raise SchemaError(
                f"{SIDE}.{lower.name} and {SIDE}.{upper.name} must have one kind (found"
                f" {lower.family} and {upper.family}). Cast one."
            )
        tick = resolve_tick(clocks, self.options)
        scales = [scale_of(column, tick, self.options) for column in clocks]
        return IntervalColumns((scales[0], scales[1]))

    def rule(self, tick: Tick) -> DwellRule:
        """The decision on dwell times, in ticks."""
        return DwellRule.of(self._condition.window(tick))


def _check_within(within: Duration) -> None:
    with said_of("within"):
        size = size_of(within)
    if size < 0:
        raise ConditionError(
            f"{argument('within')} is the longest dwell time of a transition, so it cannot be"
            f" negative (found {brief(within)})."
        )


def _check_options(options: CorrelateOptions) -> None:
    check_options(options, CorrelateOptions)
    default = CorrelateOptions()
    for field in fields(CorrelateOptions):
        if field.name not in _OPTIONS and getattr(options, field.name) != getattr(
            default, field.name
        ):
            raise ConditionError(
                f"transitions take {', '.join(_OPTIONS)} of CorrelateOptions (found"
                f" {field.name}). Remove it."
            )


@dataclass(frozen=True)
class EventColumns:
    """The columns of one schema; everything but the rows is known and checked."""

    arguments: TransitionArguments
    times: IntervalColumns
    rule: DwellRule
    schema: pa.Schema

    @classmethod
    def of(cls, schema: pa.Schema, arguments: TransitionArguments) -> EventColumns:
        """The columns that arguments name."""
        ids = [id_type(schema, SIDE, name) for name in arguments.ids]
        words = type_of(schema, SIDE, arguments.event)
        if not is_string(words):
            raise SchemaError(
                f"{SIDE}.{arguments.event} must be a text, 'I' where a stream enters and 'O'"
                f" where it leaves (found {words})."
            )
        times = arguments.times(schema)
        tick = times.scales[0].tick
        clocks = [type_of(schema, SIDE, name) for name in arguments.clocks]
        own = [result_time(kind, tick) for kind in clocks]
        computed = [computed_time(kind, tick) for kind in clocks]
        made = [*ids, pa.string(), *own, *computed, *own, *[pa.int64()] * len(DURATIONS)]
        result = pa.schema(list(zip(arguments.result_columns(tick), made, strict=True)))
        return cls(arguments, times, arguments.rule(tick), result)

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.times.scales[0].tick

    @property
    def id_kinds(self) -> tuple[pa.DataType, pa.DataType]:
        """Plain types of the query and of the stream; one stream is a number."""
        stream = pa.int64() if self.arguments.stream is None else self.schema.types[1]
        return self.schema.types[0], stream

    def instant(self, name: str, value: Any) -> int:
        """A time that a caller gives, in ticks."""
        return instant_of(name, value, self.times.scales[1], self.arguments.options)
