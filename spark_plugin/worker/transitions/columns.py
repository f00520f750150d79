"""What the columns of a table of events mean, resolved against its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coincide.errors import SchemaError
from coincide.region_transitions.decision import DwellRule
from coincide.units import Tick
from spark_plugin.worker.arrow.schemas import (
    arrow_time_column,
    can_be_key,
    computed_time,
    result_time,
    type_of,
)
from spark_plugin.worker.timestamps.instants import instant_of
from spark_plugin.worker.timestamps.intervals import IntervalColumns
from spark_plugin.worker.transitions.arguments import SIDE, TransitionArguments


@dataclass(frozen=True)
class EventColumns:
    """The columns of one schema; everything but the rows is known and checked.

    Parameters
    ----------
    arguments : TransitionArguments
    times : IntervalColumns
    rule : DwellRule
        In ticks.
    schema : pa.Schema
        Of the result.
    """

    arguments: TransitionArguments
    times: IntervalColumns
    rule: DwellRule
    schema: pa.Schema

    @classmethod
    def of(cls, schema: pa.Schema, arguments: TransitionArguments) -> EventColumns:
        """The columns that arguments name.

        Raises
        ------
        SchemaError
            If a column is missing or of a type that cannot serve.
        ConditionError
            If durations and units do not go together.
        """
        kinds = [type_of(schema, SIDE, name) for name in arguments.columns]
        kind_of = dict(zip(arguments.columns, kinds, strict=True))
        ids = [kind_of[name] for name in arguments.ids]
        for name, kind in zip(arguments.ids, ids, strict=True):
            _check_id(name, kind)
        _check_words(arguments.event, kind_of[arguments.event])
        clocks = [kind_of[name] for name in arguments.clocks]
        times = arguments.times(
            [
                arrow_time_column(SIDE, name, kind)
                for name, kind in zip(arguments.clocks, clocks, strict=True)
            ]
        )
        tick = times.scales[0].tick
        own = [result_time(kind, tick) for kind in clocks]
        made = [*ids, pa.string(), *own, *(computed_time(kind, tick) for kind in clocks)]
        result = pa.schema(list(zip(arguments.result_columns, made, strict=True)))
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

    def instant(self, argument: str, value: Any) -> int:
        """A time that a caller gives, in ticks.

        Parameters
        ----------
        argument : str
            What the caller calls it.
        value : int, float, datetime, numpy.datetime64 or pa.Scalar
            As the time columns hold it.

        Raises
        ------
        ConditionError
            If it is no time like those of the columns.
        """
        return instant_of(argument, value, self.times.scales[1], self.arguments.options)


def _check_id(name: str, kind: pa.DataType) -> None:
    if not can_be_key(kind):
        raise SchemaError(
            f"{SIDE}.{name} is {kind}, which cannot be compared exactly; cast it to a string or an integer"
        )


def _check_words(name: str, kind: pa.DataType) -> None:
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise SchemaError(
            f"{SIDE}.{name} is {kind}; it must be a text: 'I' where a stream enters, 'O' where it leaves"
        )
