"""What a condition on pairs calls their columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from coincide.sides import SIDES


@dataclass(frozen=True)
class PairColumns:
    """The names of a pair's columns.

    Parameters
    ----------
    prefixes : (str, str)
        Of the columns of its left and of its right event.
    measures : tuple of (str, pa.DataType)
        Columns of the pair itself.
    """

    prefixes: tuple[str, str] = SIDES
    measures: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def words(self) -> str:
        """What there is, in words."""
        return ", ".join([*(f"{p}_..." for p in self.prefixes), *(n for n, _ in self.measures)])

    def knows(self, name: str) -> bool:
        """Whether a name can be that of such a column."""
        return name.startswith(tuple(f"{prefix}_" for prefix in self.prefixes)) or any(
            name == measure for measure, _ in self.measures
        )

    def fields(self, left: pa.Schema, right: pa.Schema) -> dict[str, pa.DataType]:
        """All columns of pairs of two sides, left ones first."""
        sides = zip(self.prefixes, (left, right), strict=True)
        own = {f"{prefix}_{field.name}": field.type for prefix, schema in sides for field in schema}
        return {**own, **dict(self.measures)}


SIDES_ALONE = PairColumns()
