"""Where the events of a side are: coordinates, of columns or the same for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import column_of, type_of
from coincide.engine.events.ticks import contiguous
from coincide.model.errors import SchemaError

Coordinate = str | float
"""A column's name, or the number that is every event's."""


def names_of_coordinates(place: Sequence[Coordinate]) -> list[str]:
    """The columns among coordinates, each once."""
    return list(dict.fromkeys(each for each in place if isinstance(each, str)))


def check_coordinate_types(side: str, place: Sequence[Coordinate], schema: pa.Schema) -> None:
    """Refuse columns that hold no numbers."""
    for name in names_of_coordinates(place):
        kind = type_of(schema, side, name)
        if not (
            pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
        ):
            raise SchemaError(
                f"{side}.{name} must be a number, as it is a coordinate (found {kind}). Cast it,"
                " or name another column."
            )


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a side's events, and how far each can be from 0; none of events on times alone."""

    given: tuple[Coordinate, ...] = ()
    limits: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        """The columns among them, each once."""
        return names_of_coordinates(self.given)

    def read(self, side: str, table: pa.Table) -> list[np.ndarray]:
        """Coordinates of the rows of a table: float64 arrays, NaN where one is missing."""
        found = []
        for each in self.given:
            if isinstance(each, str):
                column = contiguous(column_of(table, side, each)).cast(pa.float64(), safe=False)
                found.append(column.to_numpy(zero_copy_only=False))
            else:
                found.append(np.full(table.num_rows, each))
        return found
