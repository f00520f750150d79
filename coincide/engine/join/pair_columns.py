"""The names that a condition on pairs, or on more events at once, may use."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from coincide.engine.events.schemas import plain_type
from coincide.engine.join.delta import DELTA, DELTA_NAMES
from coincide.model.sides import SIDES


@dataclass(frozen=True)
class PairColumns:
    """The names of the columns of a pair, or of as many events as there are prefixes."""

    prefixes: tuple[str, ...] = SIDES
    measures: tuple[tuple[str, pa.DataType], ...] = ()
    called: str = "pair"  # what messages call the events together

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
        """Whether a name can be that of such a column, in whatever case."""
        name = name.lower()
        return name.startswith(tuple(f"{prefix}_".lower() for prefix in self.prefixes)) or any(
            name == measure for measure, _ in self.measures
        )

    def doubled(self, *schemas: pa.Schema) -> dict[str, list[str]]:
        """Names that columns of several sides have, and the prefixes of these: a_b_c of a and of a_b."""
        names = [
            {f"{prefix}_{name}" for name in schema.names}
            for prefix, schema in zip(self.prefixes, schemas, strict=True)
        ]
        counts = Counter(name for own in names for name in own)
        return {
            name: [p for p, own in zip(self.prefixes, names, strict=True) if name in own]
            for name, count in counts.items()
            if count > 1
        }

    def fields(self, *schemas: pa.Schema) -> dict[str, pa.DataType]:
        """All columns of pairs of two sides, or of more, left ones first, without encodings."""
        sides = zip(self.prefixes, schemas, strict=True)
        own = {
            f"{prefix}_{field.name}": plain_type(field.type)
            for prefix, schema in sides
            for field in schema
        }
        return {**own, **dict(self.measures)}


SIDES_ALONE = PairColumns()
