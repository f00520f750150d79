"""The questions that a join of arrays answers, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from coincide.model.errors import ConditionError, argument
from coincide.model.options import CorrelateOptions, Emit, check_choice, check_truth

PairsInOrder = Literal["any", "left"]
RowType = Literal["auto", "int32", "int64"]
ArrayAggregates = Mapping[str, str | tuple[Any, str]]
_MOST_INT32 = 2**31


class ArrayMatches(NamedTuple):
    """What `correlate_arrays` found, in the memory in which the events are.

    Attributes
    ----------
    left, right : array, shape (pairs,), or None
        Row numbers of pairs. With ``emit="lists"`` there is no `left`. With ``emit="best"`` there is no
        `left` either, and `right` has shape (n_left,), -1 for no match.
    offsets : int64 array, shape (n_left + 1,), or None
        With ``emit="lists"``, where the matches of each left row begin in `right`.
    counts : int64 array, shape (n_left,), or None
        With ``emit="counts"`` and ``emit="aggregates"``, the matches of each left row.
    probability : float64 array or None
        That of each of `right`; NaN for no match.
    delta : int64 or timedelta64 array, or None
        T_right - T_left of each of `right` between midpoints, half a tick left off. Where times are
        datetime64 it is timedelta64 in the host's memory, else it counts ticks. For no match it is NaT,
        the least int64.
    aggregates : dict of str to array, or None
        With ``emit="aggregates"``, shape (n_left,) each. Without a value they are NaN, NaT, or 0 where
        a type has neither: ``(values, "count")`` tells how many values there are.
    """

    left: Any = None
    right: Any = None
    offsets: Any = None
    counts: Any = None
    probability: Any = None
    delta: Any = None
    aggregates: dict[str, Any] | None = None


@dataclass(frozen=True)
class Asked:
    """A question to a join of arrays, without its condition."""

    emit: Emit
    probability: bool
    delta: bool
    order: PairsInOrder
    rows: RowType

    def __post_init__(self) -> None:
        check_choice("emit", self.emit, get_args(Emit))
        check_choice("order", self.order, get_args(PairsInOrder))
        check_choice("rows", self.rows, get_args(RowType))
        for name in ("probability", "delta"):
            check_truth(name, getattr(self, name))
            if getattr(self, name) and self.emit in ("counts", "aggregates"):
                raise ConditionError(
                    f"{argument('emit', self.emit)} gives no pairs, so none has a {name}. Remove"
                    f" {argument(name, True)}."
                )

    def row_type(self, *sizes: int, default: type[np.signedinteger]) -> type[np.signedinteger]:
        """The type of row numbers of sides of these sizes."""
        has_room = max(sizes) <= _MOST_INT32
        if self.rows == "int32" and not has_room:
            raise ConditionError(
                f"{argument('rows', 'int32')} has no room for {max(sizes):,} rows. Use"
                f" {argument('rows', 'int64')}."
            )
        named: dict[str, type[np.signedinteger]] = {"int32": np.int32, "int64": np.int64}
        return named.get(self.rows, default if has_room else np.int64)


def said(name: object) -> str:
    """What messages call an aggregate."""
    return f"aggregates[{name!r}]"


def has_values(aggregate: object) -> bool:
    """Whether an aggregate comes with an array of values."""
    return isinstance(aggregate, tuple) and bool(aggregate) and not isinstance(aggregate[0], str)


def with_tick(options: CorrelateOptions, tables: list[pa.Table]) -> CorrelateOptions:
    """Options that count ns where a datetime64 array has them; else tables count us."""
    kinds = [kind for table in tables for kind in table.schema.types]
    have_ns = any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in kinds)
    is_open = options.tick is options.unit is None
    return replace(options, unit="ns") if have_ns and is_open else options
