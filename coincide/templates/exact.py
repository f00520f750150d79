"""The same in exact arithmetic, for the few integers that floats cannot decide.

With density jumps a_i of X at the edges x_i, and b_j of Y at y_j, the tail P(Y - X > z) is the sum over i
and j of -a_i b_j max(y_j - x_i - z, 0)^2 / 2: each bucket is a difference of two ramps. Zero-length
buckets are added as what they are. Everything is a Python integer over one common denominator.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from coincide.condition import Window
from coincide.templates.table import TemplateTable

SLACK = Fraction(1, 2**50)
"""`coincide.probability.DECISION_SLACK`."""


class ExactTemplate(NamedTuple):
    """A template in integers.

    Parameters
    ----------
    jumps : tuple of (int, int)
        Edge, and by how much the density, times `scale`, rises there.
    atoms : tuple of (int, int)
        Zero-length buckets: place and mass, times `scale`.
    scale : int
    """

    jumps: tuple[tuple[int, int], ...]
    atoms: tuple[tuple[int, int], ...]
    scale: int


@lru_cache(maxsize=4096)
def exact_template(edges: tuple[int, ...], masses: tuple[float, ...]) -> ExactTemplate:
    """A template of given masses, normalised exactly."""
    given = [Fraction(mass) for mass in masses]
    total = sum(given)
    rises: dict[int, Fraction] = {}
    atoms: dict[int, Fraction] = {}
    for low, high, mass in zip(edges, edges[1:], given, strict=False):
        if low == high:
            atoms[low] = atoms.get(low, Fraction(0)) + mass / total
        else:
            height = mass / total / (high - low)
            rises[low] = rises.get(low, Fraction(0)) + height
            rises[high] = rises.get(high, Fraction(0)) - height
    scale = math.lcm(*(part.denominator for part in (*rises.values(), *atoms.values())))
    whole = [
        tuple((place, int(part * scale)) for place, part in sorted(parts.items()) if part)
        for parts in (rises, atoms)
    ]
    return ExactTemplate(whole[0], whole[1], scale)


def exact_of(table: TemplateTable, number: int) -> ExactTemplate:
    """A template of a table."""
    start, stop = int(table.starts[number]), int(table.starts[number + 1])
    masses = tuple(table.given[start : stop - 1].tolist())
    return exact_template(tuple(table.edges[start:stop].tolist()), masses)


def exact_tail(x: ExactTemplate, y: ExactTemplate, z: int) -> Fraction:
    """P(Y - X > z)."""
    doubled = 0
    for at, rise in x.jumps:
        for place, other in y.jumps:
            if (room := place - at - z) > 0:
                doubled -= rise * other * room * room
        for place, mass in y.atoms:
            # The part of X below place - z: its density, from each jump on.
            if (room := place - at - z) > 0:
                doubled += 2 * rise * mass * room
    for at, mass in x.atoms:
        for place, other in y.jumps:
            # The part of Y above at + z: all of it, less what is below.
            if (room := place - at - z) > 0:
                doubled -= 2 * mass * other * room
        doubled += 2 * sum(mass * other for place, other in y.atoms if place - at > z)
    return Fraction(doubled, 2 * x.scale * y.scale)


def allowance(confidence: float) -> Fraction:
    """How much probability outside of the window a pair may have: 1 - (ct - 2**-50)."""
    return 1 - Fraction(confidence) + SLACK


def outside(x: ExactTemplate, y: ExactTemplate, s: int, window: Window) -> Fraction:
    """The probability outside of the window, for X and Y apart by s."""
    return exact_tail(y, x, s - window.lo) + exact_tail(x, y, window.hi - s)
