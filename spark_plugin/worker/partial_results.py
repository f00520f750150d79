"""What tasks tell of an event some of whose partners each has seen, so that the parts can be added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide.condition import Window
from coincide.probability import distances_from_middle

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
    # Spark has no unsigned numbers: moved down, they keep their order.
    return pa.array((distances ^ _SIGN).view(np.int64))
