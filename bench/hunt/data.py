"""A data set: the rows of both sides as their columns hold them, and the condition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import pyarrow as pa

from bench.hunt.columns import NANOSECONDS, TimeType, ValueType
from bench.hunt.templates import Templates

SIDES = ("left", "right")


class Row(NamedTuple):
    """One event as its columns hold it."""

    low: Any
    high: Any
    number: int
    """The column ``id``."""
    keys: tuple[Any, ...]
    extra: Any
    template: Any = None


@dataclass(frozen=True)
class Names:
    """What the columns are called."""

    low: str = "min_time"
    high: str = "max_time"
    keys: tuple[str, ...] = ()
    template: str = "device"


@dataclass(frozen=True)
class Side:
    """The events of one side."""

    types: tuple[TimeType, TimeType]  # the min and the max column's
    rows: tuple[Row, ...]
    instants: bool = False  # one column of times; `Row.high` is `Row.low` then
    templates: Templates | None = (
        None  # times are those of histograms, as `Row.template` names them
    )


@dataclass(frozen=True)
class DataSet:
    """What is joined, under which condition."""

    left: Side
    right: Side
    key_types: tuple[ValueType, ...]
    extra: ValueType | None  # that of a further output column
    names: Names
    # What numbers in time columns count, or that timestamps be counted in nanoseconds.
    unit: str | None
    lo: int  # ends of the window, ticks
    hi: int
    confidence: float

    @property
    def sides(self) -> tuple[Side, Side]:
        """Left and right."""
        return self.left, self.right

    @property
    def has_histograms(self) -> bool:
        """Whether a side's timestamps are histograms."""
        return any(side.templates is not None for side in self.sides)

    @property
    def of_instants(self) -> DataSet:
        """The same with one column of exact times a side, which has the ends of intervals."""
        left, right = (
            replace(
                side, types=side.types[1:] * 2, instants=True,
                rows=tuple(row._replace(low=row.high) for row in side.rows),
            )
            for side in self.sides
        )  # fmt: skip
        return replace(self, left=left, right=right)

    @property
    def families(self) -> set[str]:
        """The families of all time columns."""
        return {kind.family for side in self.sides for kind in side.types}

    @property
    def tick(self) -> int | None:
        """Nanoseconds of a tick, None where it is not given."""
        if self.families <= {"timestamp", "timestamp_ntz"}:
            return NANOSECONDS[self.unit or "us"]
        units = {kind.step or self.unit for side in self.sides for kind in side.types} - {None}
        if not units:
            return None
        if "float" in self.families:
            return NANOSECONDS["ns"]
        return min(NANOSECONDS[unit] for unit in units if unit)

    @property
    def needs_units(self) -> bool:
        """Whether times are no numbers, or count another unit than the tick: bare durations are refused."""
        if any(f.startswith("timestamp") or f == "duration" for f in self.families):
            return True
        kinds = [kind for side in self.sides for kind in side.types]
        units = [k.step or self.unit for k in kinds if not k.family.startswith("timestamp")]
        return self.tick is not None and any(NANOSECONDS[u] != self.tick for u in units if u)

    def factor(self, kind: TimeType) -> Fraction:
        """Ticks in a step of a column."""
        step = kind.step or self.unit
        if step is None or self.tick is None:
            return Fraction(1)
        return Fraction(NANOSECONDS[step], self.tick)

    def time_names(self, side: int) -> tuple[str, ...]:
        """The names of the min and the max column, or of the one of times."""
        names = self.names.low, self.names.high
        return names[:1] if self.sides[side].instants else names

    def table(self, side: int) -> pa.Table:
        """The rows of the left (0) or right (1) side."""
        given = self.sides[side]
        names = self.time_names(side)
        columns: dict[str, pa.Array] = {
            name: _array([row[i] for row in given.rows], given.types[i].arrow)
            for i, name in enumerate(names)
        }
        columns["id"] = pa.array([row.number for row in given.rows], pa.int64())
        for i, (name, kind) in enumerate(zip(self.names.keys, self.key_types, strict=True)):
            columns[name] = _array([row.keys[i] for row in given.rows], kind.arrow)
        if given.templates is not None:
            columns[self.names.template] = _array(
                [row.template for row in given.rows], given.templates.column
            )
        if self.extra is not None:
            columns["extra"] = _array([row.extra for row in given.rows], self.extra.arrow)
        return pa.table(columns)

    def with_rows(self, left: tuple[Row, ...], right: tuple[Row, ...]) -> DataSet:
        """The same with other rows."""
        return replace(
            self, left=replace(self.left, rows=left), right=replace(self.right, rows=right)
        )


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and values and not _has_dates(values):
        return pa.array(values, pa.int64()).view(kind)
    if pa.types.is_duration(kind):
        return pa.array(values, pa.int64()).view(kind)
    if pa.types.is_date(kind) and values and not _has_dates(values):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).cast(kind)
    return pa.array(values, kind)


def _has_dates(values: list[Any]) -> bool:
    return any(hasattr(value, "year") for value in values)
