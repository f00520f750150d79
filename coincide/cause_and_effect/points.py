"""Events in space and time, as kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numba import types

from coincide.templates.table import TemplateTable

Points = Annotated[np.ndarray, types.Array(types.float64, 2, "C")]
"""Where n events lie: a C-contiguous float64 array, shape (3 or 4, n), of x, y, z and h.

In a plane x, y and z are coordinates in the unit of distances, 0 of dimensions that it has not. On a sphere
they are the unit vector; h is the height, in the unit of distances, and is there where heights are.
"""

X, Y, Z, H = range(4)


@dataclass(frozen=True, eq=False)
class PlacedEvents:
    """Events of one side.

    Parameters
    ----------
    times : int64 array, shape (n,), C-contiguous
        Ticks, |time| < 2**61; of intervals the later end.
    points : Points or None
        Finite where the event's group is not negative. None: events have no places.
    lengths : int64 array, shape (n,), or None
        Lengths of interval timestamps, ticks, >= 0; None: exact instants. Of histograms the numbers of
        their templates.
    group : int64 array, shape (n,), or None
        Dense code of the event's keys: only events of equal code are paired. Events with a negative
        code match nothing. None: one group.
    groups : int
        Number of codes, above every code.
    ranks : int64 array, shape (n,), ascending, or None
        Where both sides are parts of one stream: the number of each event in it. Of two events the
        earlier is the cause then, and of simultaneous ones the one of the lower number.
    templates : TemplateTable or None
        Of histogram timestamps; then the other side of a join has templates, too.
    """

    times: np.ndarray
    points: np.ndarray | None = None
    lengths: np.ndarray | None = None
    group: np.ndarray | None = None
    groups: int = 1
    ranks: np.ndarray | None = None
    templates: TemplateTable | None = None

    def __post_init__(self) -> None:
        # Kernels are compiled for one kind of arrays: it takes less time to copy one of another kind.
        for name in ("times", "points", "lengths", "group", "ranks"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.require(given, requirements=("C", "W")))

    def __len__(self) -> int:
        return self.times.size

    @property
    def codes(self) -> np.ndarray:
        """The groups: int64 array, shape (n,)."""
        return np.zeros(len(self), np.int64) if self.group is None else self.group

    @property
    def longest(self) -> int:
        """The longest length of a timestamp, ticks."""
        if self.templates is not None:
            known = self.codes >= 0
            assert self.lengths is not None
            return int(self.templates.lengths[np.unique(self.lengths[known])].max(initial=0))
        return 0 if self.lengths is None else int(self.lengths.max(initial=0))


def no_points() -> np.ndarray:
    """Of events that have no places."""
    return np.empty((0, 0))
