"""How far apart in time causes and effects can be, for ways that bring events together by time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.cause_and_effect.condition import CausalityModel
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT
from coincide.templates.table import TemplateTable
from coincide.timestamps.mixed import around_keys

_FARTHEST = 2**63 - 1
"""Half ticks; no two midpoints are as far apart."""


@dataclass(frozen=True)
class CausalBounds:
    """How far apart causes and effects can be: `spark_plugin.worker.timestamps.models.Bounds`.

    Parameters
    ----------
    lo, hi : int
        Least and most delta of exact instants, ticks.
    shift : int
        Ticks by which effects are moved before any of this holds.
    model : CausalityModel or None
        The condition itself, for who asks what a pair can reach.
    tables : (TemplateTable or None, TemplateTable or None)
        What shapes of causes and of effects are numbers of; None of intervals.
    """

    lo: int
    hi: int
    shift: int = 0
    model: CausalityModel | None = None
    tables: tuple[TemplateTable | None, TemplateTable | None] = (None, None)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of doubled midpoints; of intervals delta may be as far off as they last.

        Returns
        -------
        int64 array, shape (K1, K2, 4)
            Half ticks.
        """
        sides = (own, other) if base_side == LEFT else (other, own)
        causes, effects = (around_keys(*each) for each in zip(self.tables, sides, strict=True))
        before, after = np.add.outer(causes[0], effects[1]), np.add.outer(causes[1], effects[0])
        first, last = 2 * self.lo - before, 2 * self.hi + after
        first, last = first - 2 * self.shift, last - 2 * self.shift
        if base_side != LEFT:
            first, last = -last.T, -first.T
        first, last = (np.clip(ends, -_FARTHEST, _FARTHEST) for ends in (first, last))
        return np.stack([first, first, last, last], axis=-1).astype(np.int64)
