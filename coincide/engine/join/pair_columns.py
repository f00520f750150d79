"""The names that a condition on pairs may use."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from coincide.engine.events.schemas import plain_type
from coincide.engine.join.delta import DELTA, DELTA_NAMES
from coincide.model.sides import SIDES


@dataclass(frozen=True)
class PairColumns:
    """The names of a pair's columns."""

    prefixes: tuple[str, str] = SIDES
    measures: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def words(self) -> str:
        """What there is, in words."""
        return ", ".join([*(f"{p}_..." for p in self.prefixes), *self.words_of_measures])

    @property
    def words_of_measures(self) -> list[str]:
        """The names of their own columns; as long as delta may have any unit, that without one."""
        names = [name for name, _ in self.measures]
        is_open = DELTA in names and len(names) > 1
        return [name for name in names if not (is_open and name in DELTA_NAMES[1:])]

    def knows(self, name: str) -> bool:
        """Whether a name can be that of such a column."""
        return name.startswith(tuple(f"{prefix}_" for prefix in self.prefixes)) or any(
            name == measure for measure, _ in self.measures
        )

    def fields(self, left: pa.Schema, right: pa.Schema) -> dict[str, pa.DataType]:
        """All columns of pairs of two sides, left ones first, without encodings."""
        sides = zip(self.prefixes, (left, right), strict=True)
        own = {
            f"{prefix}_{field.name}": plain_type(field.type)
            for prefix, schema in sides
            for field in schema
        }
        return {**own, **dict(self.measures)}


SIDES_ALONE = PairColumns()
