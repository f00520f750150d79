"""Windows narrower than two templates together: both tails count; exact where floats cannot decide."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled, copy_into
from coincide.model.condition import Window
from coincide.model.templates.tails import relative_error, tail
from coincide.model.templates.template import TemplateTable

QUALIFIES, FAILS, UNSURE = 1, 0, -1
_CLEAR = 1e-10
"""Relative distance from the bound beyond which rounding of a vertex's place cannot matter."""


_HALVINGS = 4
"""Cuts in the middle, before points are looked for."""

_FEW = 8
"""This many integers are decided one by one; and a stretch that is not cut makes no more ranges."""

_DEPTH = _HALVINGS + 130
"""Most stretches that wait: cut at the point nearest to the middle, those with points shrink to 2/3."""


@compiled(allocates=True)
def ranges_of_pair(x, i, y, j, lo, hi, bound, first, last, out, stack):
    """The ranges of s in which a pair qualifies, and those that floats cannot decide."""
    ends, tails = stack
    # A stack of stretches to look at, the earliest on top: start, end and depth of each, and what is
    # outside of the window on either side at its start and at its end.
    ends[0, 0], ends[0, 1], ends[0, 2] = first, last + 1, 0
    tails[0, 0], tails[0, 1] = _tails(x, i, y, j, lo, hi, first)
    tails[0, 2], tails[0, 3] = _tails(x, i, y, j, lo, hi, last + 1)
    depth, found = 1, np.int64(0)
    doubt = 4.0 * relative_error(x, i, y, j)
    jumps = _has_instants(x, i) and _has_instants(y, j)
    while depth:
        depth -= 1
        out = _with_room(out, found, _FEW)
        start, end, level = ends[depth, 0], ends[depth, 1], ends[depth, 2]
        # One tail only falls as s grows, the other only rises: ends bound all between.
        if _state(tails[depth, 0] + tails[depth, 3], bound, doubt) == QUALIFIES:
            found = _added(out, found, start, end - 1, QUALIFIES)
            continue
        if _state(tails[depth, 2] + tails[depth, 1], bound, doubt) == FAILS:
            continue
        cut = start
        if end - start > _FEW:
            cut = (start + end) >> 1
            if level >= _HALVINGS:
                cut = point_near(x, i, y, j, lo, hi, start, end, cut, jumps)
        if cut == start:
            found = _of_piece(x, i, y, j, lo, hi, bound, start, end - 1, out, found)
            continue
        below, above = _tails(x, i, y, j, lo, hi, cut)
        ends[depth + 1, 0], ends[depth + 1, 1], ends[depth + 1, 2] = start, cut, level + 1
        tails[depth + 1, 0], tails[depth + 1, 1] = tails[depth, 0], tails[depth, 1]
        tails[depth + 1, 2], tails[depth + 1, 3] = below, above
        ends[depth, 0], ends[depth, 2] = cut, level + 1
        tails[depth, 0], tails[depth, 1] = below, above
        depth += 2
    return out, found


@compiled(forceinline=True)
def _added(out, found, start, stop, state):
    """Add a range, joined to the last one if it follows it."""
    if found and out[found - 1, 1] == start - 1 and out[found - 1, 2] == state:
        out[found - 1, 1] = stop
        return found
    out[found, 0], out[found, 1], out[found, 2] = start, stop, state
    return found + 1


@compiled
def _tails(x, i, y, j, lo, hi, s):
    """What is outside of the window, before it and after it."""
    return tail(y, j, x, i, s - lo)[0], tail(x, i, y, j, hi - s)[0]


@compiled
def _outside(x, i, y, j, lo, hi, s):
    below, above = _tails(x, i, y, j, lo, hi, s)
    return below + above


@compiled(forceinline=True)
def _state(value, bound, doubt):
    if value <= bound * (1.0 - doubt):
        return QUALIFIES
    return FAILS if value > bound * (1.0 + doubt) else UNSURE


@compiled
def _state_at(x, i, y, j, lo, hi, bound, s):
    value = _outside(x, i, y, j, lo, hi, s)
    return _state(value, bound, 4.0 * relative_error(x, i, y, j))


@compiled
def _of_piece(x, i, y, j, lo, hi, bound, start, stop, out, found):
    """Add the ranges of a stretch that is short, or on which the probability is one quadratic."""
    if stop - start < _FEW:
        for s in range(start, stop + 1):
            state = _state_at(x, i, y, j, lo, hi, bound, s)
            if state != FAILS:
                found = _added(out, found, s, s, state)
        return found
    middle = (start + stop) >> 1
    ends = _outside(x, i, y, j, lo, hi, start), _outside(x, i, y, j, lo, hi, stop)
    between = _outside(x, i, y, j, lo, hi, middle)
    slope, bend = _parabola(float(middle - start), float(stop - middle), ends[0], between, ends[1])
    vertex = _turn(slope, bend, float(stop - start))
    # The last integer before it turns, and the first one after.
    turn = middle + np.int64(np.floor(min(max(vertex, start - middle), stop - middle - 1.0)))
    turned = _outside(x, i, y, j, lo, hi, turn), _outside(x, i, y, j, lo, hi, turn + 1)
    for value in (ends[0], turned[0], turned[1], ends[1]):
        # A vertex is flat: a little way off the value is the same, unless it is close to the bound.
        if abs(value - bound) <= _CLEAR * max(bound, value):
            return _added(out, found, start, stop, UNSURE)
    for low, high in ((start, turn), (turn + 1, stop)):
        root = _root(slope, bend, between - bound, float(low - middle), float(high - middle))
        near = middle + np.int64(np.floor(root))
        found = _of_slope(x, i, y, j, lo, hi, bound, low, high, near, out, found)
    return found


@compiled(forceinline=True)
def _parabola(before, after, first, middle, last):
    """Slope and half the bend, at the middle one, of the parabola through three values."""
    falling, rising = (middle - first) / before, (last - middle) / after
    return (falling * after + rising * before) / (before + after), (rising - falling) / (
        before + after
    )


@compiled(forceinline=True)
def _turn(slope, bend, far):
    """Where a parabola turns, from the middle; far off where it is a line."""
    if bend == 0.0:
        return far if slope <= 0.0 else -far
    return -slope / (2.0 * bend)


@compiled(forceinline=True)
def _root(slope, bend, middle, low, high):
    """Where a parabola is 0 between low and high; from the middle, where it has a value."""
    square = slope * slope - 4.0 * bend * middle
    if square < 0.0:
        return low
    half = -0.5 * (slope + np.copysign(np.sqrt(square), slope))
    for above, below in ((half, bend), (middle, half)):
        if below != 0.0 and low <= above / below <= high:
            return above / below
    return low


@compiled
def _of_slope(x, i, y, j, lo, hi, bound, start, stop, near, out, found):
    """Add the ranges of a stretch on which the probability only rises or only falls, from `near` on."""
    first = _state_at(x, i, y, j, lo, hi, bound, start)
    last = _state_at(x, i, y, j, lo, hi, bound, stop)
    if first == last:
        return found if first == FAILS else _added(out, found, start, stop, first)
    low, high, tries = start, stop, 0
    while high - low > 1:
        s = near + (0, 1, -1, 2)[tries] if tries < 4 else (low + high) >> 1
        tries += 1
        if not low < s < high:
            continue
        state = _state_at(x, i, y, j, lo, hi, bound, s)
        if state == UNSURE:
            break
        if state == first:
            low = s
        else:
            high = s
    if first == QUALIFIES:
        found = _added(out, found, start, low, QUALIFIES)
    if high - low > 1:
        found = _added(out, found, low + 1, high - 1, UNSURE)
    if last == QUALIFIES:
        found = _added(out, found, high, stop, QUALIFIES)
    return found


@compiled(allocates=True)
def narrow_rows(x, y, lo, hi, bound, start, stop, first, last):
    """The ranges of all pairs of some templates of X with all of Y for which a window is narrow."""
    out = np.empty((64, 3), np.int64)
    stack = np.empty((_DEPTH, 3), np.int64), np.empty((_DEPTH, 4))
    gaps, pieces = np.empty((64, 3), np.int64), np.empty((16, 4), np.int64)
    held = doubtful = 0
    for i in range(start, stop):
        for j in range(first.shape[1]):
            if hi - lo >= -x.edges[x.starts[i]] - y.edges[y.starts[j]] or first[i, j] > last[i, j]:
                continue
            place = i * first.shape[1] + j
            ends = first[i, j], last[i, j]
            out, found = ranges_of_pair(x, i, y, j, lo, hi, bound, *ends, out, stack)
            is_sure = True
            for r in range(found):
                is_sure &= out[r, 2] != UNSURE
            if not is_sure:
                pieces = _with_room(pieces, doubtful, found)
                for r in range(found):
                    pieces[doubtful, 0] = place
                    copy_into(pieces[doubtful, 1:], out[r])
                    doubtful += 1
                continue
            first[i, j], last[i, j] = (out[0, 0], out[found - 1, 1]) if found else (1, 0)
            gaps = _with_room(gaps, held, found)
            for r in range(1, found):
                gaps[held, 0] = place
                gaps[held, 1], gaps[held, 2] = out[r - 1, 1] + 1, out[r, 0] - 1
                held += 1
    return gaps[:held].copy(), pieces[:doubtful].copy()


@compiled(allocates=True)
def _with_room(rows, held, more):
    """An array with room for more rows than those that it holds."""
    if held + more <= rows.shape[0]:
        return rows
    grown = np.empty((2 * (held + more), rows.shape[1]), np.int64)
    for r in range(held):
        copy_into(grown[r], rows[r])
    return grown


@compiled
def _has_instants(x, i):
    """Whether some mass is at an instant; with both so, the probability jumps."""
    for e in range(x.starts[i], x.starts[i + 1] - 1):
        if x.edges[e] == x.edges[e + 1] and x.masses[e] > 0.0:
            return True
    return False


@compiled
def point_near(x, i, y, j, lo, hi, start, end, middle, jumps):
    """The point between start and end that is nearest to the middle; `start` if no point is there."""
    best, nearest = start, end - start
    for a in range(x.starts[i], x.starts[i + 1]):
        for end_of_window in (lo, hi):
            for shift in range(2 if jumps else 1):
                # Points are `later` less an edge of Y, and those are sorted.
                later = end_of_window + x.edges[a] + shift
                b = _first_at_least(y, j, later - middle)
                for neighbour in (b - 1, b):
                    if y.starts[j] <= neighbour < y.starts[j + 1]:
                        point = later - y.edges[neighbour]
                        if start < point < end and abs(point - middle) < nearest:
                            best, nearest = point, abs(point - middle)
    return best


@compiled
def _first_at_least(y, j, place):
    """The first edge of a template that is not before a place; the next template's if all are."""
    low, high = y.starts[j], y.starts[j + 1]
    while low < high:
        middle = (low + high) >> 1
        if y.edges[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


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
    """The integers next to the real roots of a quadratic, from 1 to `most`."""
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
