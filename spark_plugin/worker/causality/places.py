"""Coordinates of events: the columns, or constants, that say where events are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
import pyarrow as pa

from coincide.cause_and_effect.spaces import Space
from coincide.errors import ConditionError, SchemaError, brief
from spark_plugin.worker.arrow.schemas import column_of, type_of
from spark_plugin.worker.arrow.ticks import contiguous
from spark_plugin.worker.arrow.time_columns import TimeScale
from spark_plugin.worker.timestamps.columns import Faults, ReadTimes, TimestampColumns
from spark_plugin.worker.timestamps.models import SideModel

Coordinate = str | float
"""A column's name, or the number that is every event's."""


def coordinates(argument: str, given: object, space: Space) -> tuple[Coordinate, ...]:
    """The coordinates of a side, checked: none, or as many as the space has.

    Raises
    ------
    ConditionError
    """
    if isinstance(given, (str, Real)):
        given = (given,)
    if not isinstance(given, Sequence) or not all(map(_is_coordinate, given)):
        raise ConditionError(
            f"{argument} must be a sequence of column names, or of finite numbers that hold for all; found"
            f" {brief(given)}"
        )
    least, most = space.dimensions
    if given and not least <= len(given) <= most:
        raise ConditionError(f"{argument} has {len(given)} coordinates, but {space.words}")
    return tuple(each if isinstance(each, str) else float(each) for each in given)


def _is_coordinate(given: object) -> bool:
    if isinstance(given, Real) and not isinstance(given, bool):
        return math.isfinite(given)
    return isinstance(given, str)


def check_coordinate_types(side: str, place: Sequence[Coordinate], schema: pa.Schema) -> None:
    """Refuse columns that hold no numbers.

    Raises
    ------
    SchemaError
    """
    for name in names_of_coordinates(place):
        kind = type_of(schema, side, name)
        if not (
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        ):
            raise SchemaError(
                f"{side}.{name} is {kind}; a coordinate must be a number. Cast it, or name another column"
            )


def names_of_coordinates(place: Sequence[Coordinate]) -> list[str]:
    """The columns among coordinates, each once."""
    return list(dict.fromkeys(each for each in place if isinstance(each, str)))


def read_coordinates(side: str, place: Sequence[Coordinate], table: pa.Table) -> list[np.ndarray]:
    """Coordinates of the rows of a table: float64 arrays, NaN where one is missing."""
    found = []
    for each in place:
        if isinstance(each, str):
            column = contiguous(column_of(table, side, each)).cast(pa.float64(), safe=False)
            found.append(column.to_numpy(zero_copy_only=False))
        else:
            found.append(np.full(table.num_rows, each))
    return found


@dataclass(frozen=True)
class PlacedColumns:
    """Timestamps and places of a side: `spark_plugin.worker.timestamps.columns.TimestampColumns`.

    A row without a place is as one without a time, and one of an impossible place is invalid.

    Parameters
    ----------
    times : TimestampColumns
    place : tuple of coordinates
    space : Space
    """

    times: TimestampColumns
    place: tuple[Coordinate, ...]
    space: Space

    @property
    def scales(self) -> tuple[TimeScale, TimeScale]:  # noqa: D102
        return self.times.scales

    @property
    def names(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys((*self.times.names, *names_of_coordinates(self.place))))

    @property
    def model(self) -> SideModel:  # noqa: D102
        return self.times.model

    @property
    def declared(self) -> tuple[int, int] | None:  # noqa: D102
        return self.times.declared

    @property
    def longest(self) -> int | None:  # noqa: D102
        return self.times.longest

    @property
    def beyond(self) -> tuple[int, int] | None:  # noqa: D102
        return self.times.beyond

    def blamed(self, reason: str) -> tuple[str, ...]:  # noqa: D102
        if reason == "place":
            return tuple(map(str, self.place))
        return self.times.blamed(reason)

    def read(self, table: pa.Table) -> ReadPlaced:  # noqa: D102
        found = read_coordinates(self.scales[0].column.side, self.place, table)
        return ReadPlaced(self.times.read(table), found, self.space)


class ReadPlaced:
    """Timestamps and places of rows: `spark_plugin.worker.timestamps.columns.ReadTimes`."""

    def __init__(self, times: ReadTimes, columns: list[np.ndarray], space: Space) -> None:
        self._times, self._columns, self._space = times, columns, space

    @property
    def are_valid(self) -> bool:  # noqa: D102
        return (
            self._times.are_valid
            and not any(np.isnan(column).any() for column in self._columns)
            and not any(mask.any() for mask in self._impossible)
        )

    @cached_property
    def null(self) -> np.ndarray:  # noqa: D102
        missing = [np.isnan(column) for column in self._columns]
        return np.logical_or.reduce([self._times.null, *missing])

    @property
    def excused(self) -> np.ndarray:
        """A missing coordinate excuses no impossible time."""
        return self._times.excused

    @cached_property
    def _impossible(self) -> list[np.ndarray]:
        limits = self._space.limits(len(self._columns))
        # NaN is missing, no more.
        return [np.abs(c) > limit for c, limit in zip(self._columns, limits, strict=False)]

    def faults(self) -> Faults:  # noqa: D102
        yield from self._times.faults()
        for mask in self._impossible:
            yield "place", mask

    @property
    def max_time(self) -> np.ndarray:  # noqa: D102
        return self._times.max_time

    @property
    def shapes(self) -> np.ndarray:  # noqa: D102
        return self._times.shapes

    def rounded(self, valid: np.ndarray | None) -> float:  # noqa: D102
        return self._times.rounded(valid)
