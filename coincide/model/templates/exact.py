"""The ranges of a pair of templates in exact arithmetic, for the few integers that floats cannot decide."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from coincide.model.condition import Window
from coincide.model.templates.narrow import QUALIFIES
from coincide.model.templates.template import TemplateTable

SLACK = Fraction(1, 2**50)
"""`coincide.model.probability.DECISION_SLACK`."""


class ExactTemplate(NamedTuple):
    """A template in integers."""

    jumps: tuple[tuple[int, int], ...]
    atoms: tuple[tuple[int, int], ...]  # Zero-length buckets: place and mass, times `scale`
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


Range = tuple[int, int]


def least_beyond_exactly(
    x: ExactTemplate, y: ExactTemplate, bound: Fraction, low: int, high: int
) -> int:
    """The least z with P(Y - X > z) <= bound, which is above `low` and at most `high`."""
    while high - low > 1:
        z = (low + high) >> 1
        if exact_tail(x, y, z) <= bound:
            high = z
        else:
            low = z
    return high


def with_undecided(
    x: ExactTemplate, y: ExactTemplate, window: Window, pieces: Iterable[tuple[int, int, int]]
) -> list[Range]:
    """All ranges of s that qualify, of some that do and others that floats could not decide."""
    bound, kinks = allowance(window.confidence), sorted(set(_kinks(x, y, window)))

    def ranges() -> Iterator[Range]:
        for first, last, state in pieces:
            if state == QUALIFIES:
                yield first, last
                continue
            inside = kinks[bisect_right(kinks, first) : bisect_left(kinks, last + 1)]
            yield from _undecided(x, y, window, bound, [first, *inside, last + 1])

    return _joined(ranges())


def _joined(ranges: Iterable[Range]) -> list[Range]:
    """Ascending ranges, those that follow one another as one."""
    found: list[Range] = []
    for low, high in ranges:
        if found and found[-1][1] == low - 1:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _kinks(x: ExactTemplate, y: ExactTemplate, window: Window) -> Iterator[int]:
    """Where the formula of the probability changes; after a jump, the next integer too."""
    for own in {place for place, _ in (*x.jumps, *x.atoms)}:
        for other in {place for place, _ in (*y.jumps, *y.atoms)}:
            for end in (window.lo, window.hi):
                yield end - (other - own)
                yield end - (other - own) + 1


def _undecided(
    x: ExactTemplate, y: ExactTemplate, window: Window, bound: Fraction, points: list[int]
) -> Iterator[Range]:
    """Ranges that qualify: runs of stretches by what their ends tell, single ones by their quadratic."""
    runs = [(0, len(points) - 1)]
    while runs:
        a, b = runs.pop()
        start, stop = points[a], points[b] - 1
        below = exact_tail(y, x, start - window.lo), exact_tail(y, x, stop - window.lo)
        above = exact_tail(x, y, window.hi - start), exact_tail(x, y, window.hi - stop)
        if below[0] + above[1] <= bound:
            yield start, stop
        elif below[1] + above[0] > bound:
            continue
        elif b - a > 1:
            middle = (a + b) >> 1
            runs += [(middle, b), (a, middle)]
        else:
            yield from _of_quadratic(x, y, window, bound, start, stop)


def _of_quadratic(
    x: ExactTemplate, y: ExactTemplate, window: Window, bound: Fraction, start: int, stop: int
) -> Iterator[Range]:
    """Ranges in a stretch on which what is outside of the window is a quadratic of s."""
    if stop - start < 3:
        good = [s for s in range(start, stop + 1) if outside(x, y, s, window) <= bound]
        yield from ((s, s) for s in good)
        return
    # Through three values, as a s'^2 + b s' + c with s' from the start; less the bound.
    values = [outside(x, y, start + step, window) - bound for step in range(3)]
    c = values[0]
    a = (values[2] - 2 * values[1] + values[0]) / 2
    b = values[1] - values[0] - a
    scale = math.lcm(a.denominator, b.denominator, c.denominator)
    ints = int(a * scale), int(b * scale), int(c * scale)
    # The quadratic changes sign at its roots alone: what is between two integers near them is one range.
    cuts = sorted({0, stop - start + 1, *_near_roots(*ints, stop - start)})
    for low, high in pairwise(cuts):
        if ints[0] * low * low + ints[1] * low + ints[2] <= 0:
            yield start + low, start + high - 1


def _near_roots(a: int, b: int, c: int, most: int) -> Iterator[int]:
    """The integers beside the real roots of a quadratic, of those from 1 to `most`."""
    if a == 0:
        roots = [] if b == 0 else [-c // b]
    else:
        square = b * b - 4 * a * c
        if square < 0:
            return
        root = math.isqrt(square)
        roots = [(sign * root - b) // (2 * a) for sign in (1, -1)]
    for at in roots:
        for near in range(at - 2, at + 4):
            if 0 < near <= most:
                yield near
