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
    """Distances of partners from the middle of the window, in an order that Spark has numbers for.

    Parameters
    ----------
    midpoints : pa.Array of int64
        Doubled midpoints of the events, half ticks.
    latest, earliest : pa.Array of int64
        max_time and min_time of their partners, ticks; what is null gives any number.
    window : Window

    Returns
    -------
    pa.Array of int64
    """
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
    """Of best partners that a task has found, what the best of several tasks is chosen by, last.

    Parameters
    ----------
    spec : AnySpec
        From `AnySpec.with_merits`.
    columns : sequence of pa.Array
        Doubled midpoints of the events, columns of their partners, max_time and min_time of these, and what
        `spec` measures of pairs.

    Returns
    -------
    list of pa.Array
        Columns of partners, measures, how far from the middle of the window, max_time and min_time.
    """
    midpoint, *others = columns
    found, measured = others[: -len(spec.measures)], others[-len(spec.measures) :]
    *found, latest, earliest = found
    if isinstance(spec, JoinSpec):  # it has no column of its own for this
        measured = [*measured, sortable_distances(midpoint, latest, earliest, spec.window)]
    return [*found, *measured, latest, earliest]
