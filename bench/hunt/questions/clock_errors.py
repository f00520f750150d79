"""Errors of clocks: what is found is right within its stated error, or it is not found, or warned of."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

from bench.clocks import SECOND, UNRELATED, Truth, made, shared_bursts, unrelated
from coincide import ClockLimitsWarning, clock_error_tables

CHANCE = 1e-6
"""The probability of an answer by chance: one in many hunts."""
_UNLIKELY = 1e-9
"""The probability of an error that is far above the stated one."""
_TICK = 1.0
"""By which times are rounded."""


class Drawn(NamedTuple):
    """Times of two clocks, what is true of them, and what is looked for; ticks, but for what is true."""

    left: np.ndarray
    right: np.ndarray
    truth: Truth | None
    """None of streams that have nothing in common."""
    max_offset: float
    is_clear: bool = False
    """Whether no chance could make this many pairs on a line."""


def _of_truth(random: np.random.Generator, span: float, noise: float) -> Truth:
    return Truth(random.uniform(-40, 40), random.uniform(-1.9e-4, 1.9e-4), noise, span)


def _few(random: np.random.Generator) -> Drawn:
    """Some of the events in common, few or many."""
    size = int(random.integers(15, 300))
    truth = _of_truth(random, 10 ** random.uniform(3, 5), 10 ** random.uniform(-4, 0))
    common = max(2, round(size * random.choice([0.05, 0.2, 0.5, 1.0])))
    case = made(random, common, size, size, truth)
    return Drawn(case.left, case.right, truth, 60.0)


def _clear(random: np.random.Generator) -> Drawn:
    """Most events in common, with little noise."""
    size = int(random.integers(60, 300))
    truth = _of_truth(random, 10 ** random.uniform(3, 4), 10 ** random.uniform(-5, -2))
    case = made(random, round(0.8 * size), size, size, truth)
    return Drawn(case.left, case.right, truth, 60.0, is_clear=True)


def _both_ends(random: np.random.Generator) -> Drawn:
    """A few taps in the morning and in the evening: drift and offset tell of each other there."""
    taps = np.cumsum(random.uniform(0.5, 4, random.integers(6, 20)))
    times = np.concatenate([taps, 86_400 + random.uniform(1.01, 1.2) * taps])
    truth = Truth(random.uniform(-2, 2), random.uniform(-5e-5, 5e-5), 1e-4, float(times[-1]))
    right = times + truth.at(times) + random.normal(0, truth.noise, times.size)
    return Drawn(_ticks(times), _ticks(right), truth, float(random.choice([3, 5, 8, 10, 30])))


def _bursts(random: np.random.Generator) -> Drawn:
    """Bursts that both sides see, with or without a common event, by a clock that is off."""
    length, share = 10 ** random.uniform(0, 2), random.choice([0.0, 0.0, 0.1, 0.3])
    case = shared_bursts(random, share, length)
    truth = _of_truth(random, case.truth.span, case.truth.noise)
    right = case.right / SECOND
    # Bursts are one cause each, so the error of the clocks is true of them as well.
    right = right + truth.offset + truth.drift * right
    return Drawn(case.left, _ticks(right), truth, 60.0)


def _strangers(random: np.random.Generator) -> Drawn:
    """Streams that have no more than their kind in common."""
    kind = str(random.choice(list(UNRELATED)))
    left, right = next(unrelated(int(random.integers(1 << 30)), kind, 1))
    few = [side[: int(random.integers(30, 1000))] for side in (left, right)]
    return Drawn(*few, None, 20.0)


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "few": _few, "clear": _clear, "both ends": _both_ends, "bursts": _bursts, "strangers": _strangers,
}  # fmt: skip


def wrong(
    random: np.random.Generator,
    find: Callable[..., pa.Table] = clock_error_tables,
    kind: str | None = None,
) -> str | None:
    """What is found, and is not true, of a drawn pair of streams."""
    kind = kind or str(random.choice(list(KINDS)))
    drawn = KINDS[kind](random)
    tables = (pa.table({"time": random.permutation(side)}) for side in (drawn.left, drawn.right))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = find(
            *tables, max_offset=round(drawn.max_offset * SECOND), max_drift=2.2e-4, chance=CHANCE
        ).to_pylist()
    told = f"{kind}, {drawn.truth}, {drawn.left.size} and {drawn.right.size} events: {found}"
    segments = [row for row in found if row["status"] == "found"]
    if drawn.is_clear and not segments:
        return f"not found: {told}"
    if any(issubclass(each.category, ClockLimitsWarning) for each in said):
        return None
    for row in segments:
        if drawn.truth is None or not _is_right(row, drawn.truth):
            return f"wrong: {row}, {told}"
    return None


def _is_right(row: dict[str, Any], truth: Truth) -> bool:
    """Whether a segment is true within its error, which few pairs tell badly."""
    most = float(student.isf(_UNLIKELY / 2, max(row["pairs"] - 2, 1)))
    start = row["start"] / SECOND
    offset = float(truth.at(np.array([start]))[0]) * SECOND
    step = _TICK / max(row["end"] - row["start"], 1)
    return (
        abs(row["offset"] - offset) <= most * row["offset_error"] + _TICK
        and abs(row["drift"] / 1e6 - truth.drift) <= most * row["drift_error"] / 1e6 + step
    )


def _ticks(seconds: np.ndarray) -> np.ndarray:
    return np.rint(seconds * SECOND).astype(np.int64)
