"""Delta, the time from the left event of a pair to the right one: what its column is called."""

from __future__ import annotations

import pyarrow as pa

from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

DELTA = "delta"
DELTA_NAMES = (DELTA, *(f"{DELTA}_{unit}" for unit in NANOSECONDS_PER_UNIT))
"""All that the column of delta may be called."""


def delta_columns(tick: Tick | None) -> tuple[tuple[str, pa.DataType], ...]:
    """What a condition on pairs may call delta, with its type; as long as no tick is known, any name."""
    names = DELTA_NAMES if tick is None else (in_unit(DELTA, tick),)
    return tuple((name, pa.int64()) for name in names)


def in_unit(name: str, tick: Tick) -> str:
    """A column of durations, which says what it counts: ``delta_us``; of bare ticks ``delta``."""
    return name if tick.unit is None else f"{name}_{tick.unit}"
