"""Laws of times: the buckets of all streams in one table, as numbers for kernels and as fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from coincide.model.templates.template import Buckets, TemplateTable


class ExactBuckets(NamedTuple):
    """As `coincide.model.templates.template.Buckets`, in lists of Python's numbers."""

    starts: list[int]
    edges: list[int]
    masses: list[Fraction]


@dataclass(frozen=True, eq=False)
class Laws:
    """The distributions of times of several streams: each has buckets whose last edge is at 0."""

    table: TemplateTable

    @classmethod
    def joined(cls, tables: Sequence[TemplateTable]) -> tuple[Laws, list[int]]:
        """The laws of all tables, and by how much the numbers of each have grown."""
        before, whole = [0], tables[0]
        for each in tables[1:]:
            before.append(len(whole))
            whole = _unnamed(whole).joined(_unnamed(each))
        return cls(whole), before

    @property
    def buckets(self) -> Buckets:
        """As kernels take them."""
        return self.table.buckets

    def exact(self, laws: Sequence[int]) -> ExactBuckets:
        """Some of them, in this order, exactly."""
        found = ExactBuckets([0], [], [])
        for law in laws:
            run = slice(int(self.table.starts[law]), int(self.table.starts[law + 1]))
            given = [Fraction(mass) for mass in self.table.given[run].tolist()]
            total = sum(given)
            found.edges.extend(self.table.edges[run].tolist())
            found.masses.extend(mass / total for mass in given)
            found.starts.append(len(found.edges))
        return found

    def most_edges(self, laws: np.ndarray) -> int:
        """The most edges of a law among these: an int64 array."""
        sizes: Any = np.diff(self.table.starts)
        return int(sizes[laws].max(initial=2))


def _unnamed(table: TemplateTable) -> TemplateTable:
    """The same without names, since streams may name theirs alike."""
    return TemplateTable((), table.starts, table.edges, table.given, table.offsets)
