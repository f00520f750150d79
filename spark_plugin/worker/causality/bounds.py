"""How far apart in time causes and effects can be, for ways that bring events together by time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coincide.bands import INNER_HI, INNER_LO
from coincide.cause_and_effect.condition import CausalityModel
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT

_FARTHEST = 2**63 - 1
"""Half ticks; no two midpoints are as far apart."""


@dataclass(frozen=True)
class CausalBounds:
    """How far apart causes and effects can be: `spark_plugin.worker.timestamps.models.Bounds`.

    Parameters
    ----------
    lo, hi : int
        Least and most delta of exact instants, ticks.
    is_one_stream : bool
        Whether no effect is before its cause.
    shift : int
        Ticks by which effects are moved before any of this holds.
    model : CausalityModel or None
        The condition itself, for who asks what a pair can reach.
    """

    lo: int
    hi: int
    is_one_stream: bool = False
    shift: int = 0
    model: CausalityModel | None = None

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of doubled midpoints; of intervals delta may be as far off as they last.

        Returns
        -------
        int64 array, shape (1, 1, 4)
            Half ticks.
        """
        margin = int(own.highest.max(initial=0)) + int(other.highest.max(initial=0))
        first, last = 2 * self.lo - margin, 2 * self.hi + margin
        if self.is_one_stream:
            # The later end of the effect is not before that of the cause.
            first = max(first, -margin)
        first, last = first - 2 * self.shift, last - 2 * self.shift
        if base_side != LEFT:
            first, last = -last, -first
        ends = [max(-_FARTHEST, min(_FARTHEST, end)) for end in (first, last)]
        band = np.empty((1, 1, 4), np.int64)
        band[..., : INNER_LO + 1], band[..., INNER_HI:] = ends[0], ends[1]
        return band
