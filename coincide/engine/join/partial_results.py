"""What tasks tell of an event some of whose partners each has seen, so that the parts can be added up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from coincide.engine.join.spec import AnySpec, JoinSpec
from coincide.model.condition import Window
from coincide.model.probability import distances_from_middle

_SIGN = np.uint64(1 << 63)


def sortable_distances(
    midpoints: pa.Array, latest: pa.Array, earliest: pa.Array, window: Window
) -> pa.Array:
    """Distances of partners from the middle of the window, in an order that Spark has numbers for."""
    own, high, low = (
        column.fill_null(0).to_numpy(zero_copy_only=False)
        for column in (midpoints, latest, earliest)
    )
    distances = distances_from_middle(own, high + low, window.lo, window.hi)
    return pa.array(sortable(distances))


def sortable(distances: np.ndarray) -> np.ndarray:
    """Unsigned numbers moved down to signed ones, as Spark has no others, in their order."""
    return (distances ^ _SIGN).view(np.int64)


def parts_of_best(spec: AnySpec, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Of best partners that a task has found, what the best of several tasks is chosen by, last."""
    midpoint, *others = columns
    found, measured = others[: -len(spec.measures)], others[-len(spec.measures) :]
    *found, latest, earliest = found
    if isinstance(spec, JoinSpec):  # it has no column of its own for this
        measured = [*measured, sortable_distances(midpoint, latest, earliest, spec.window)]
    return [*found, *measured, latest, earliest]
