"""Windows narrower than two templates together, which the paper leaves out: both tails count."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled, copy_into
from coincide.model.templates.tails import relative_error, tail

QUALIFIES, FAILS, UNSURE = 1, 0, -1
_CLEAR = 1e-10
"""Relative distance from the bound beyond which rounding of a vertex's place cannot matter."""


_HALVINGS = 4
"""Cuts in the middle, before points are looked for."""

_FEW = 8
"""So many integers are decided one by one; and a stretch that is not cut makes no more ranges."""

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
        # A vertex is flat: a little beside it the value is the same, unless it is close to the bound.
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
    """Where a parabola is 0, of what is between low and high; from the middle, where it has a value."""
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
    """The point between start and end that is nearest to the middle; `start` if there is none."""
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
