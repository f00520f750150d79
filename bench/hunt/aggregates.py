"""Aggregates of a case: which are asked for, and what is wrong with one that is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa

from bench.hunt.chance import Chance
from bench.hunt.data import DataSet
from bench.hunt.meaning import Event
from cpu_fallback.reference.aggregates import Aggregate, is_same, reduced

_NUMBERS = ("sum", "mean", "std", "min", "max", "first", "last", "count")


def draw_aggregates(chance: Chance, data: DataSet) -> dict[str, Aggregate]:
    """Aggregates by name, in any order: of ids, of deltas, and of the further column if there is one."""
    found: dict[str, Aggregate] = {"n": "count", "own": ("id", chance.choice(_NUMBERS))}
    if not data.has_histograms:
        # No sums, for which times may be too far apart.
        found["apart"] = ("delta", chance.choice(("mean", "std", "min", "max")))
    if data.extra is not None:
        found |= {name: ("extra", name) for name in _functions(data.extra.arrow)}
    return {name: found[name] for name in chance.shuffled(tuple(found))}


def _functions(kind: pa.DataType) -> tuple[str, ...]:
    if pa.types.is_nested(kind):
        return ("count",)
    if pa.types.is_boolean(kind):
        return (*_NUMBERS, "any")
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return _NUMBERS if is_number else _NUMBERS[3:]


def wrong_aggregate(
    found: Any, event: Event, matches: Sequence[Event], asking: Aggregate
) -> str | None:
    """What is wrong with an aggregate of the matches of a left event; None: nothing."""
    if isinstance(asking, str):
        return None if found == len(matches) else f"expected {len(matches)}"
    column, function = asking
    values = [(_time_order(other), _value(event, other, column)) for other in matches]
    known = [(when, value) for when, value in values if value is not None]
    if known and function in ("first", "last"):
        # Which of those of one timestamp it is depends on the way.
        end = (min if function == "first" else max)(when for when, _ in known)
        allowed = [value for when, value in known if when == end]
    else:
        allowed = [reduced(function, [value for _, value in values])]
    if any(is_same(found, value, function) for value in allowed):
        return None
    return f"expected {' or '.join(map(str, allowed))}"


def _time_order(event: Event) -> tuple[int, ...]:
    return event.low + event.high, event.high


def _value(event: Event, other: Event, column: str) -> Any:
    if column == "delta":
        return math.trunc(Fraction(other.low + other.high - event.low - event.high, 2))
    return other.row.number if column == "id" else other.row.extra
