"""The oracle of aggregates: one value of the matches of each left event, in fractions, slow and obvious."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cpu_fallback.reference.join import Asked, Pair, pairs

Aggregate = str | tuple[str, str]
"""The word count, or a column and a function."""
OF_PAIRS = ("delta", "probability")
"""Columns that a pair has, and no event."""


def aggregated(
    asked: Asked,
    aggregates: Mapping[str, Aggregate],
    *,
    has_previous: bool = False,
    opens_later: bool = False,
) -> list[dict[str, Any] | None]:
    """The aggregates of each left event by name, in their order; None for an event without a match.

    The last right event before the window may count, if times are exact and none is there as it begins.
    """
    found = matches(asked)
    if has_previous:
        found = [_previous(asked, i, opens_later) + own for i, own in enumerate(found)]
    return [
        {name: aggregate(asked, own, each) for name, each in aggregates.items()} if own else None
        for own in found
    ]


def _previous(asked: Asked, i: int, opens_later: bool) -> list[Pair]:
    """The pair of a left event and the last right one before its window, if that one counts.

    Where the window opens later, its first tick comes after the end that it does not hold.
    """
    left, keys = asked.left[i], ("max_time", *asked.by)
    if None in (left[name] for name in keys):
        return []
    begin, last = left["max_time"] + asked.lo - opens_later, None
    for j, right in enumerate(asked.right):
        if None in (right[name] for name in keys) or any(left[k] != right[k] for k in asked.by):
            continue
        if right["max_time"] == begin and not opens_later:
            return []
        if right["max_time"] <= begin and (
            last is None or right["max_time"] >= asked.right[last]["max_time"]
        ):
            last = j
    return [] if last is None else [Pair(i, last, Fraction(1))]


class Expected(NamedTuple):
    """An expected number, and what amounts it was added up from: rounding errors are a part of these."""

    value: Fraction | float | None
    size: Fraction


def expected_numbers(
    asked: Asked, aggregates: Mapping[str, Aggregate]
) -> list[dict[str, Expected] | None]:
    """The same where each match counts by its probability: count, sum and mean."""
    return [
        {name: _expected(asked, own, each) for name, each in aggregates.items()} if own else None
        for own in matches(asked)
    ]


def _expected(asked: Asked, own: Sequence[Pair], asking: Aggregate) -> Expected:
    column, function = (None, asking) if isinstance(asking, str) else asking
    values = [1 if column is None else _value(asked, pair, column) for pair in own]
    known = [(pair.probability, x) for pair, x in zip(own, values, strict=True) if x is not None]
    weight = sum((p for p, _ in known), Fraction(0))
    if function == "count" or not known:
        return Expected(weight if function == "count" else None, weight)
    special = _infinite([x for _, x in known])
    if special is not None:
        return Expected(special, Fraction(0))
    parts = [p * Fraction(x) for p, x in known]
    divisor = weight if function == "mean" else Fraction(1)
    return Expected(sum(parts, Fraction(0)) / divisor, sum(map(abs, parts), Fraction(0)) / divisor)


def matches(asked: Asked) -> list[list[Pair]]:
    """The matches of each left event, the earliest first."""
    found = pairs(asked)
    own = [[pair for pair in found if pair.left == i] for i in range(len(asked.left))]
    return [sorted(each, key=lambda pair: _time_order(asked, pair)) for each in own]


def aggregate(asked: Asked, own: Sequence[Pair], asking: Aggregate) -> Any:
    """One aggregate of the matches of one left event, the earliest of which is the first."""
    if isinstance(asking, str):
        return len(own)
    column, function = asking
    return reduced(function, [_value(asked, pair, column) for pair in own])


def reduced(function: str, values: Sequence[Any]) -> Any:
    """The value of a function of values, None apart; sums of all but floats are fractions of any size.

    Values are bools, integers, decimals, floats, texts or bytes; times and durations count as integers.
    """
    known = [value for value in values if value is not None]
    if function == "count":
        return len(known)
    return _FUNCTIONS[function](known) if known else None


def delta(asked: Asked, pair: Pair) -> int:
    """The time from the midpoint of left to that of right, half a tick cut off towards zero."""
    left, right = asked.left[pair.left], asked.right[pair.right]
    doubled = right["min_time"] + right["max_time"] - left["min_time"] - left["max_time"]
    return math.trunc(Fraction(doubled, 2))


def is_same(found: Any, expected: Any, function: str = "") -> bool:
    """Whether a value that was found is that of the reference: the same float, the same type."""
    if expected is None or found is None:
        return found is expected
    if isinstance(expected, Fraction):
        return not isinstance(found, float) and Fraction(found) == expected
    if not isinstance(expected, float):
        return type(found) is type(expected) and bool(found == expected)
    if not isinstance(found, float) or math.isnan(expected) or math.isnan(found):
        return isinstance(found, float) and math.isnan(found) and math.isnan(expected)
    # What is too near to zero may keep its sign.
    has_sign = math.copysign(1, found) == math.copysign(1, expected) or function == "mean"
    return found == expected and has_sign


def nearest(exact: Fraction) -> float:
    """The float64 nearest to a fraction, half to even; infinite where that is beyond the largest one."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _value(asked: Asked, pair: Pair, column: str) -> Any:
    if column == "delta":
        return delta(asked, pair)
    if column == "probability":
        return nearest(pair.probability)
    return asked.right[pair.right][column]


def _time_order(asked: Asked, pair: Pair) -> tuple[Any, ...]:
    row = asked.right[pair.right]
    times = row["min_time"] + row["max_time"], row["max_time"], row["min_time"]
    return (*times, pair.right) if asked.by_rows else (*times, row["id"], pair.right)


def _total(values: Sequence[Any]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _infinite(values: Sequence[Any]) -> float | None:
    """What floats sum up to where one of them is not finite."""
    if not isinstance(values[0], float) or all(map(math.isfinite, values)):
        return None
    infinities = {value for value in values if not math.isfinite(value)}
    return infinities.pop() if len(infinities) == 1 else math.nan


def _sum(values: Sequence[Any]) -> Any:
    if not isinstance(values[0], float):
        return _total(values)
    infinite = _infinite(values)
    return nearest(_total(values)) if infinite is None else infinite


def _mean(values: Sequence[Any]) -> float:
    infinite = _infinite(values)
    return nearest(_total(values) / len(values)) if infinite is None else infinite


def _std(values: Sequence[Any]) -> float | None:
    if len(values) < 2:
        return None
    if _infinite(values) is not None:
        return math.nan
    mean = _total(values) / len(values)
    squares = sum(((Fraction(value) - mean) ** 2 for value in values), Fraction(0))
    return root(squares / (len(values) - 1))


def root(exact: Fraction) -> float:
    """The root of a fraction that is rounded to the 53 bits of a float, whatever its exponent."""
    if not exact:
        return 0.0
    # A power of four moves it to where floats have all their bits, and its root by one of two.
    halved = (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2
    moved = math.sqrt(float(exact / Fraction(4) ** halved))
    return nearest(Fraction(moved) * Fraction(2) ** halved)


def _order(value: Any) -> tuple[bool, Any]:
    """NaN is the greatest; texts are as their UTF-8 bytes."""
    if isinstance(value, str):
        return False, value.encode()
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def _unsigned(value: Any) -> Any:
    """Zero for the zero below it."""
    return 0.0 if isinstance(value, float) and value == 0 else value


_FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum,
    "mean": _mean,
    "std": _std,
    "min": lambda values: _unsigned(sorted(values, key=_order)[0]),
    "max": lambda values: _unsigned(sorted(values, key=_order)[-1]),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "any": lambda values: True in values,
}
