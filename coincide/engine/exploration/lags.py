"""Whether delays look like those of a clock that is off: away from 0, or slanted over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.engine.events.ticks import length_words
from coincide.engine.exploration.counting import ExplorationCounts
from coincide.model.condition import Window
from coincide.model.units import Tick

_FEWEST_PAIRS = 20
_FEWEST_PARTS = 6
_NARROW = 0.25
"""The share of the window that half of the delays are in; those of chance are in half of it."""
_STRAIGHT = 0.8
"""The share of the squares of delays that a slant must explain."""


class _Half(NamedTuple):
    """The shortest stretch that has half of the pairs: their mean and its length, ticks."""

    middle: float
    length: float


def clock_words(found: ExplorationCounts) -> str:
    """One sentence, with what to run, where a clock may be off; nothing where none seems to be."""
    if found.spec.is_one_stream or not found.candidates:
        return ""
    window, tick = found.spec.window, found.evidence[0].scale.tick
    part, delay, pairs = (found.delays[name].to_numpy() for name in ("part", "delay", "pairs"))
    change = _slant(part, delay, pairs, window, found.delay_step)
    if change:
        seen = (
            f"The delays change by {length_words(abs(change), tick, 2)} from the first to the last"
        )
    elif middle := _away(delay, pairs, window, found.delay_step):
        seen = f"The delays lie about {length_words(middle, tick, 2)}, not about 0"
    else:
        return ""
    reach = 2 * max(window.width, abs(window.lo), abs(window.hi))
    return (
        f"{seen}, as if a clock were off: coincide clocks LEFT RIGHT -o errors.parquet"
        f" --max-offset {_typed(reach, tick)} finds its error."
    )


def _away(delay: np.ndarray, pairs: np.ndarray, window: Window, step: int) -> float:
    """Where delays lie, if that is not about 0 although the window is; else 0."""
    half = _half(delay, pairs, window, step)
    if window.lo != -window.hi or half is None or abs(half.middle) <= half.length / 2 + step:
        return 0.0
    return half.middle


def _slant(
    part: np.ndarray, delay: np.ndarray, pairs: np.ndarray, window: Window, step: int
) -> float:
    """By how much delays change evenly over all parts; 0 if they do not."""
    each = {k: _half(delay[part == k], pairs[part == k], window, step) for k in np.unique(part)}
    seen = {k: half for k, half in each.items() if half is not None}
    if len(seen) < _FEWEST_PARTS:
        return 0.0
    x, y = np.array(list(seen), float), np.array([half.middle for half in seen.values()])
    slope, level = np.polyfit(x, y, 1)
    change, left = float(slope * (x[-1] - x[0])), y - (level + slope * x)
    least = max(float(np.median([half.length for half in seen.values()])), 2.0 * step)
    is_straight = (left**2).sum() <= (1 - _STRAIGHT) * ((y - y.mean()) ** 2).sum()
    return change if is_straight and abs(change) > least else 0.0


def _half(delay: np.ndarray, pairs: np.ndarray, window: Window, step: int) -> _Half | None:
    """Where half of the pairs are together; None of too few, or of ones that are everywhere."""
    if pairs.sum() < _FEWEST_PAIRS:
        return None
    delay, where = np.unique(delay, return_inverse=True)
    before = np.append(0, np.cumsum(np.bincount(where, weights=pairs)))
    ends = np.searchsorted(before, before[:-1] + before[-1] / 2)
    begins = np.flatnonzero(ends < before.size)
    lengths = delay[ends[begins] - 1] - delay[begins]
    best = int(np.argmin(lengths))
    length = float(lengths[best])
    if length + step > _NARROW * window.width:
        return None
    own = slice(begins[best], ends[begins[best]])
    return _Half(float(np.average(delay[own], weights=np.diff(before)[own])), length)


def _typed(length: int, tick: Tick) -> str:
    """A length as an option takes it."""
    return str(length) if tick.nanoseconds is None else length_words(length, tick).replace(" ", "")
