"""What tasks tell of an event some of whose partners each has seen, so that the parts can be added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide.condition import Window
from coincide.probability import distances_from_middle
from spark_plugin.worker.arrow.sides import Side

_SIGN = np.uint64(1 << 63)


def sortable_distances(midpoints: pa.Array, partners: pa.Array, window: Window) -> pa.Array:
    """Distances of partners from the middle of the window, in an order that Spark has numbers for.

    Parameters
    ----------
    midpoints : pa.Array of int64
        Of the events: `Side.midpoints`.
    partners : pa.Array of int64
        Those of their partners; what is null gives any number.
    window : Window

    Returns
    -------
    pa.Array of int64
    """
    own, theirs = (
        column.fill_null(0).to_numpy(zero_copy_only=False) for column in (midpoints, partners)
    )
    distances = distances_from_middle(own, theirs, window.lo, window.hi)
    # Spark has no unsigned numbers: moved down, they keep their order.
    return pa.array((distances ^ _SIGN).view(np.int64))


def times_of_partners(side: Side) -> list[pa.Array]:
    """What a partner tells besides its columns: its midpoint, its max_time and its min_time."""
    return [pa.array(values) for values in (side.midpoints, side.max_time, side.min_time)]
