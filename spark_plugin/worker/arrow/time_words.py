"""Ticks in words: times as their columns have them, lengths in a unit that suits them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from coincide.units import NANOSECONDS_PER_UNIT, Tick
from spark_plugin.worker.arrow.time_columns import TimeScale


def time_words(ticks: int, scale: TimeScale) -> str:
    """A time of a column, such as ``2024-05-01 08:00:00Z`` or ``1,700,000,000 s``."""
    family, tick = scale.column.family, scale.tick
    if family.startswith("timestamp"):
        text = np.datetime_as_string(np.int64(ticks).view(f"datetime64[{tick.unit}]")).replace(
            "T", " "
        )
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text + "Z" * (family == "timestamp")
    value = Fraction(ticks) / scale.factor
    number = f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.15g}"
    if tick.nanoseconds is None:
        return number
    step = tick.nanoseconds * scale.factor
    return f"{number} {next(unit for unit, size in NANOSECONDS_PER_UNIT.items() if size == step)}"


def length_words(ticks: Fraction | float, tick: Tick, digits: int = 6) -> str:
    """A length, such as ``20 ms`` or, of bare ticks, ``20 ticks``."""
    if tick.nanoseconds is None:
        return f"{round(ticks):,} ticks"
    if ticks == 0:
        return f"0 {tick.unit}"
    size = Fraction(ticks) * tick.nanoseconds
    fitting = [unit for unit, step in NANOSECONDS_PER_UNIT.items() if step <= abs(size)]
    unit = fitting[-1] if fitting else "ns"
    return f"{float(size / NANOSECONDS_PER_UNIT[unit]):.{digits}g} {unit}"
