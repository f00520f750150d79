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


def draw_aggregates(chance: Chance, data: DataSet, has_weights: bool) -> dict[str, Aggregate]:
    """Aggregates by name, in any order: of ids, of deltas, and of the further column if there is one."""
    if has_weights:
        return {"n": "count", "own": ("id", "sum"), "mean": ("id", "mean")}
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
    found: Any, event: Event, matches: Sequence[Event], asking: Aggregate, sign: int
) -> str | None:
    """What is wrong with an aggregate of the matches of an event; deltas have a sign; None: nothing."""
    if isinstance(asking, str):
        return None if found == len(matches) else f"expected {len(matches)}"
    column, function = asking
    values = [(_time_order(other), _value(event, other, column, sign)) for other in matches]
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


def wrong_expected(
    found: Any, matches: Sequence[tuple[Fraction, Event]], asking: Aggregate, tolerance: Fraction
) -> str | None:
    """The same of an expected number, whose probabilities may be off by so much each."""
    total = sum((p * other.row.number for p, other in matches), Fraction(0))
    weight = sum((p for p, _ in matches), Fraction(0))
    off = tolerance * (1 + sum(max(1, abs(other.row.number)) for _, other in matches))
    wanted = weight if isinstance(asking, str) else total
    if not matches and not isinstance(asking, str):
        return None if found is None else "expected None"
    if found is None:
        return f"expected {float(wanted)!r}"
    if asking[1] == "mean":
        most = max(abs(other.row.number) for _, other in matches)
        wanted, off = total / weight, tolerance * len(matches) * (1 + most) / min(1, weight)
    return None if abs(Fraction(found) - wanted) <= off else f"expected {float(wanted)!r}"


def _time_order(event: Event) -> tuple[int, ...]:
    return event.low + event.high, event.high


def _value(event: Event, other: Event, column: str, sign: int) -> Any:
    if column == "delta":
        return sign * math.trunc(Fraction(other.low + other.high - event.low - event.high, 2))
    return other.row.number if column == "id" else other.row.extra
