"""A further condition on the columns of tuples, which those that hold have to meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.engine.join.pair_filter import PairFilter
from coincide.engine.sequences.walk import Found, Judge
from coincide.model.sequences.making import Decision, Demands, Made

Meets = Callable[[np.ndarray], np.ndarray]
"""From the rows of tuples to which of them meet a condition: bool array."""


class Condition:
    """A condition on the columns of all streams, over the events of these."""

    def __init__(self, where: PairFilter, sides: Sequence[Side]) -> None:
        self._where, self._columns, self._kinds = where, where.read(sides), where.kinds_as_read

    def of(self, members: Sequence[int]) -> Meets:
        """The test of tuples of some streams; the columns of all others are null."""
        return partial(self._met, members)

    def _met(self, members: Sequence[int], rows: np.ndarray) -> np.ndarray:
        size = rows.shape[1]
        of_stream = dict(zip(members, map(pa.array, rows), strict=True))
        columns = [
            column.take(of_stream[k]) if k in of_stream else pa.nulls(size, kind)
            for k, own in enumerate(self._kinds)
            for column, kind in zip(self._columns[k], own, strict=True)
        ]
        return self._where.met(columns, size)


@dataclass(frozen=True, eq=False)
class ConditionJudge(Judge):
    """Tuples that hold as a whole, and meet a condition."""

    judge: Judge
    meets: Meets

    @property
    def keeps_chances(self) -> bool:  # type: ignore[override]
        """As in `Judge`."""
        return self.judge.keeps_chances

    @property
    def decision(self) -> Decision | Demands | None:
        """As in `Judge`."""
        return self.judge.decision

    def found(self, made: Made) -> Found:
        """As in `Judge`. A condition that has no value is an error only of what holds."""
        found = self.judge.found(made)
        return found.where(self.meets(found.rows))
