"""Drawing intervals and windows in ticks, by any source of chance: the hunt's, and the property tests'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")

LIMIT = 2**61 - 1
"""Largest |time| and |bound| in ticks that the product takes."""

CONFIDENCES = (
    *(0.5, 1.0, 0.75, 0.8, 0.1, 0.9, 0.25, 0.2, 0.4, 0.6, 0.3, 0.7, 0.125, 0.99),
    *(1 / 3, 2 / 3, 1e-3, 1e-6, 1e-12, 1 - 2**-53),
)
LENGTH_KINDS = ("grid", "few", "continuous", "zero", "one", "skewed")
# Kinds that find matches come twice.
WINDOW_KINDS = (
    *("symmetric", "wide", "asymmetric", "symmetric", "wide", "asymmetric"),
    *("narrow", "one_sign", "zero", "far"),
)


class AnyChance(Protocol):
    """A source of chance; it prefers the simple answer where it shrinks what fails."""

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both inclusive."""

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""

    def happens(self, percent: float) -> bool:
        """True in about `percent` of 100 calls; False is simpler."""


@dataclass(frozen=True)
class Scale:
    """Where the events of both sides lie, in ticks.

    Attributes
    ----------
    origin : int
        The earliest start, in ticks.
    step : int
        The grid's step in ticks; lengths and windows are a few steps.
    steps : int
        Number of steps over which the starts spread; 0 puts all of them at one time.
    """

    origin: int = 0
    step: int = 10
    steps: int = 20

    @property
    def span(self) -> int:
        """Ticks from the first possible start to the last."""
        return self.step * self.steps


def clamp(value: int) -> int:
    """The nearest time or bound that the product takes."""
    return max(-LIMIT, min(LIMIT, value))


def draw_intervals(
    chance: AnyChance, scale: Scale, size: int, *, are_long: bool = False
) -> list[tuple[int, int]]:
    """Intervals on a grid or not, of many or few lengths, in bursts, with an outlier."""
    kind = "long" if are_long else chance.choice(LENGTH_KINDS)
    gridded = chance.choice((True, False))
    few = [chance.integer(1, 5) * scale.step, chance.integer(1, 4 * scale.step), 0]
    bursty = chance.happens(30)
    drawn: list[tuple[int, int]] = []
    for _ in range(size):
        length = _length(chance, scale, kind, few)
        start = scale.origin
        if gridded:
            start += chance.integer(0, scale.steps) * scale.step
        else:
            start += chance.integer(0, scale.span)
        if bursty and drawn and chance.happens(60):
            start = drawn[0][0]
        drawn.append((start, start + length))
    if drawn and chance.happens(25):  # one outlier decides the longest length, hence the reach
        at = chance.integer(0, len(drawn) - 1)
        start = drawn[at][0]
        drawn[at] = start, start + 10 * scale.span + 37 * scale.step
    return drawn


def _length(chance: AnyChance, scale: Scale, kind: str, few: Sequence[int]) -> int:
    if kind == "zero":
        return 0
    if kind == "long":
        return chance.integer(3, 6) * scale.step
    if kind == "one":
        return few[0]
    if kind == "few":
        return chance.choice(few)
    if kind == "grid":
        return chance.integer(0, 6) * scale.step
    if kind == "skewed":  # one tick against many: the least S / L
        return chance.choice((1, 4 * scale.step + 1, 0))
    return chance.integer(0, 5 * scale.step)


def draw_huge_intervals(chance: AnyChance, size: int) -> list[tuple[int, int]]:
    """Intervals of any length, up to the limits."""
    drawn = []
    for _ in range(size):
        ends = [huge_integer(chance), huge_integer(chance)]
        if chance.happens(30):
            ends[1] = ends[0]
        drawn.append((min(ends), max(ends)))
    return drawn


def huge_integer(chance: AnyChance) -> int:
    """An integer of any size up to the limit, often at the limit or at a power of two."""
    kind = chance.choice(("corner", "power", "any"))
    if kind == "corner":
        corner = chance.choice((0, LIMIT, -LIMIT))
        return clamp(corner + chance.integer(-3, 3))
    if kind == "power":
        sign = chance.choice((1, -1))
        return clamp(sign * 2 ** chance.integer(0, 61) + chance.integer(-1, 1))
    return chance.integer(-LIMIT, LIMIT)


def draw_window(chance: AnyChance, step: int) -> tuple[int, int]:
    """A window in ticks, on the scale of lengths of a few steps."""
    kind = chance.choice(WINDOW_KINDS)
    k = chance.integer(0, 5)
    if kind in ("symmetric", "zero"):
        return (k if kind == "zero" else -k) * step, k * step
    if kind == "narrow":
        low = chance.integer(-2 * step, 2 * step)
        return low, low + chance.integer(0, step)
    if kind == "asymmetric":
        return -chance.integer(0, 3 * step), chance.integer(0, 8 * step)
    if kind == "one_sign":
        low = chance.choice((1, -1)) * chance.integer(1, 4 * step)
        return (low, low + k * step) if low > 0 else (low - k * step, low)
    if kind == "wide":
        return -(10 + k) * step, 11 * step
    far = min(10**6 * step, LIMIT - 5)
    return chance.choice(((far, far + 5), (-far, -far)))


def draw_confidence(chance: AnyChance) -> float:
    """A threshold in (0, 1], with 1, tiny ones and those that make exact ties."""
    if chance.happens(25):
        return chance.integer(1, 2**20) / 2**20
    return chance.choice(CONFIDENCES)
