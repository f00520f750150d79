"""Columns of the states of left events, which tasks give that see only some of their matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from coincide.engine.join.aggregate_types import extreme_of, kinds_of, readable_type
from coincide.model.aggregates import Aggregate

VALUES, PRODUCTS, WEIGHTS = "values", "products", "weights"
"""What is added up: values of a column, probabilities of pairs, or the products of both."""


class Part(NamedTuple):
    """One of these columns, which holds one thing of the matches of an event."""

    word: str
    column: str | None = None
    factor: str = VALUES


COUNT = Part("count")
SPECIALS = "nan", "above", "below"
"""How many floats are not finite: infinite ones by their sign."""


def factors_of(aggregate: Aggregate) -> tuple[str, ...]:
    """What is added up or compared for an aggregate; nothing where matches are counted."""
    if not aggregate.is_weighted:
        return (VALUES,) if aggregate.column is not None else ()
    both = PRODUCTS, WEIGHTS
    return {"count": both[1:], "sum": both[:1]}.get(aggregate.function, both)


def words_of(aggregate: Aggregate, kind: pa.DataType) -> dict[str, pa.DataType]:
    """The words of the parts of an aggregate, with their types, where values have this type."""
    function, found = aggregate.function, {"there": pa.int64()}
    is_float = aggregate.is_weighted or pa.types.is_floating(kind)
    if function in ("min", "max", "any"):
        found[extreme_of(function)] = kind
    elif aggregate.is_weighted or function in ("sum", "mean", "std"):
        found |= {"numbers": pa.binary()} | ({"squares": pa.binary()} if function == "std" else {})
        found |= dict.fromkeys(SPECIALS, pa.int64()) if is_float else {}
    return found


def parts_of(
    aggregates: Sequence[Aggregate], columns: Mapping[str, pa.DataType]
) -> dict[Part, pa.DataType]:
    """All parts of some aggregates, each once, with their types."""
    found = {COUNT: pa.int64()}
    for each, kind in zip(aggregates, kinds_of(aggregates, columns), strict=True):
        words = words_of(each, readable_type(kind))
        found |= {
            Part(word, each.column, factor): held
            for factor in factors_of(each)
            for word, held in words.items()
        }
    return found


def state_fields(
    aggregates: Sequence[Aggregate], columns: Mapping[str, pa.DataType]
) -> list[pa.Field]:
    """The columns of states: parts, then times and columns of events that may be the first or last."""
    kinds = list(parts_of(aggregates, columns).values())
    if any(map(is_end, aggregates)):
        kinds += [pa.int64(), pa.int64(), *map(readable_type, columns.values())]
    return [pa.field(f"state{i}", kind) for i, kind in enumerate(kinds)]


def is_end(aggregate: Aggregate) -> bool:
    """Whether it is the value of the first or last event."""
    return aggregate.function in ("first", "last")
