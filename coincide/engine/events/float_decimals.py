"""Floats as the decimals that they read as, in Arrow's decimals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SCALE = 25
TIME_DECIMALS = pa.decimal256(52, _SCALE)
"""The type of times: 27 digits before the point, and all that a float of 10 ns and more has behind it."""
_FINE = pa.decimal256(76, 50)
_LEAST, _MOST = 1e-33, 1e26
_SHORTEST = 1e-8
"""From here on no float has more than 17 + 8 digits behind the point."""


def as_decimals(floats: pa.Array) -> pa.Array:
    """Floats as `TIME_DECIMALS`, each the shortest decimal that reads as it; null if not finite or far."""
    values = np.abs(floats.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False))
    floats = pc.if_else(pa.array(values < _MOST), floats, None)
    is_short = (values >= _SHORTEST) | (values == 0)
    if is_short.all():
        return floats.cast(pa.string()).cast(TIME_DECIMALS)
    zeros = pc.multiply(floats, pa.scalar(0, floats.type))  # null where there is no float
    texts = pc.if_else(pa.array(values < _LEAST), zeros, floats).cast(pa.string())
    return pc.round(texts.cast(_FINE), _SCALE).cast(TIME_DECIMALS)
