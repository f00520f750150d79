"""Windows narrower than two templates together, which the paper leaves out: both tails count.

The probability outside of the window, as a function of s, is quadratic between the points where an end of
the window passes from one pair of buckets to another. One tail only falls and the other only rises, so
both ends of a stretch bound all between: most stretches are decided by that. What remains is cut at the
points, and then at the vertex of its quadratic.
"""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.copying import copy_into
from coincide.templates.tails import relative_error, tail

QUALIFIES, FAILS, UNSURE = 1, 0, -1
_CLEAR = 1e-10
"""Relative distance from the bound beyond which rounding of a vertex's place cannot matter."""


@compiled(allocates=True)
def ranges_of_pair(x, i, y, j, lo, hi, bound, first, last, points, out):
    """The ranges of s in which a pair qualifies.

    Parameters
    ----------
    x, y : Buckets
    i, j : int64
    lo, hi : int64
        The window, ticks.
    bound : float64
        Most probability outside of it.
    first, last : int64
        None qualifies outside of these.
    points : int64 array, shape (P,), ascending
        Where stretches begin, from first on; a last one is last + 1.
    out : int64 array, shape (P + 2, 2), written
        First and last s of each range; at most one range more than stretches.

    Returns
    -------
    int64
        How many ranges; -1 if floats cannot tell.
    """
    # What is outside of the window on either side, by point; below 0 where nobody has asked yet.
    below, above = np.full(points.size, -1.0), np.full(points.size, -1.0)
    # A stack of runs of stretches to look at, the earliest on top.
    froms, tos = np.empty(points.size + 2, np.int64), np.empty(points.size + 2, np.int64)
    froms[0], tos[0] = 0, points.size - 1
    depth, found = 1, 0
    doubt = 4.0 * relative_error(x, i, y, j)
    while depth:
        depth -= 1
        a, b = froms[depth], tos[depth]
        for point in (a, b):
            if below[point] < 0.0:
                below[point] = tail(y, j, x, i, points[point] - lo)[0]
                above[point] = tail(x, i, y, j, hi - points[point])[0]
        # One tail only falls as s grows, the other only rises: ends bound all between.
        if _state(below[a] + above[b], bound, doubt) == QUALIFIES:
            found = _added(out, found, points[a], points[b] - 1)
        elif _state(below[b] + above[a], bound, doubt) == FAILS:
            continue
        elif b - a > 1:
            middle = (a + b) >> 1
            froms[depth], tos[depth] = middle, b
            froms[depth + 1], tos[depth + 1] = a, middle
            depth += 2
        else:
            piece = points[a], points[b] - 1
            found = _of_piece(x, i, y, j, lo, hi, bound, *piece, out, found)
            if found < 0:
                return -1
    return found


@compiled(forceinline=True)
def _added(out, found, start, stop):
    """Add a range, joined to the last one if it follows it."""
    if found and out[found - 1, 1] == start - 1:
        out[found - 1, 1] = stop
        return found
    out[found, 0], out[found, 1] = start, stop
    return found + 1


@compiled
def _outside(x, i, y, j, lo, hi, s):
    return tail(y, j, x, i, s - lo)[0] + tail(x, i, y, j, hi - s)[0]


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
    """Add the ranges of a stretch on which the probability is one quadratic; -1 if floats cannot tell."""
    if stop - start < 8:
        for s in range(start, stop + 1):
            state = _state_at(x, i, y, j, lo, hi, bound, s)
            if state == UNSURE:
                return -1
            if state == QUALIFIES:
                found = _added(out, found, s, s)
        return found
    middle = (start + stop) >> 1
    ends = _outside(x, i, y, j, lo, hi, start), _outside(x, i, y, j, lo, hi, stop)
    between = _outside(x, i, y, j, lo, hi, middle)
    vertex = _vertex(float(middle - start), float(stop - middle), ends[0], between, ends[1])
    # The last integer before it turns, and the first one after.
    turn = middle + np.int64(np.floor(min(max(vertex, start - middle), stop - middle - 1.0)))
    turned = _outside(x, i, y, j, lo, hi, turn), _outside(x, i, y, j, lo, hi, turn + 1)
    for value in (ends[0], turned[0], turned[1], ends[1]):
        # A vertex is flat: a little beside it the value is the same, unless it is close to the bound.
        if abs(value - bound) <= _CLEAR * max(bound, value):
            return -1
    found = _of_slope(x, i, y, j, lo, hi, bound, start, turn, out, found)
    if found >= 0:
        found = _of_slope(x, i, y, j, lo, hi, bound, turn + 1, stop, out, found)
    return found


@compiled(forceinline=True)
def _vertex(before, after, first, middle, last):
    """Where the parabola through three values turns, from the middle one; far off where it is a line."""
    falling, rising = (middle - first) / before, (last - middle) / after
    bend = (rising - falling) / (before + after)
    slope = (falling * after + rising * before) / (before + after)
    if bend == 0.0:
        return 2.0 * before if slope <= 0.0 else -2.0 * before
    return -slope / (2.0 * bend)


@compiled
def _of_slope(x, i, y, j, lo, hi, bound, start, stop, out, found):
    """Add the range of a stretch on which the probability only rises or only falls; -1 if unclear."""
    first = _state_at(x, i, y, j, lo, hi, bound, start)
    last = _state_at(x, i, y, j, lo, hi, bound, stop)
    if first == UNSURE or last == UNSURE:
        return -1
    if first == last:
        return _added(out, found, start, stop) if first == QUALIFIES else found
    low, high = start, stop
    while high - low > 1:
        s = (low + high) >> 1
        state = _state_at(x, i, y, j, lo, hi, bound, s)
        if state == UNSURE:
            return -1
        if state == first:
            low = s
        else:
            high = s
    return _added(out, found, start, low) if first == QUALIFIES else _added(out, found, high, stop)


@compiled(allocates=True)
def narrow_rows(x, y, lo, hi, bound, start, stop, first, last):
    """The ranges of all pairs of some templates of X with all of Y for which a window is narrow.

    Parameters
    ----------
    x, y : Buckets
    lo, hi, bound
        As `ranges_of_pair`.
    start, stop : int64
        Templates of X.
    first, last : int64 arrays, shape (X, Y), written
        In: outside of what no s qualifies. Out: the first and the last s that does; (1, 0) for none.

    Returns
    -------
    int64 array, shape (G, 3)
        Gaps between ranges, by pair: the pair's place in `first`, and the gap's first and last s.
    int64 array, shape (U,)
        Places of pairs that floats cannot decide; they are left as they were.
    """
    most = 0
    for j in range(y.starts.size - 1):
        most = max(most, y.starts[j + 1] - y.starts[j])
    gaps, unsure = np.empty((64, 3), np.int64), np.empty((stop - start) * first.shape[1], np.int64)
    held = doubtful = 0
    for i in range(start, stop):
        room = 4 * (x.starts[i + 1] - x.starts[i]) * most + 2
        out = np.empty((room + 2, 2), np.int64)
        for j in range(first.shape[1]):
            if hi - lo >= -x.edges[x.starts[i]] - y.edges[y.starts[j]] or first[i, j] > last[i, j]:
                continue
            points = _points(x, i, y, j, lo, hi, first[i, j], last[i, j])
            found = ranges_of_pair(x, i, y, j, lo, hi, bound, first[i, j], last[i, j], points, out)
            place = i * first.shape[1] + j
            if found < 0:
                unsure[doubtful] = place
                doubtful += 1
                continue
            first[i, j], last[i, j] = (out[0, 0], out[found - 1, 1]) if found else (1, 0)
            while held + found > gaps.shape[0]:
                grown = np.empty((2 * gaps.shape[0], 3), np.int64)
                for g in range(held):
                    copy_into(grown[g], gaps[g])
                gaps = grown
            for r in range(1, found):
                gaps[held, 0] = place
                gaps[held, 1], gaps[held, 2] = out[r - 1, 1] + 1, out[r, 0] - 1
                held += 1
    return gaps[:held].copy(), unsure[:doubtful].copy()


@compiled(allocates=True)
def _points(x, i, y, j, lo, hi, first, last):
    """Where stretches begin: at first, wherever an edge meets an edge, and at last + 1."""
    own, other = x.starts[i + 1] - x.starts[i], y.starts[j + 1] - y.starts[j]
    points = np.empty(4 * own * other + 2, np.int64)
    points[0], points[1] = first, last + 1
    count = 2
    jumps = _has_instants(x, i) and _has_instants(y, j)
    for a in range(x.starts[i], x.starts[i + 1]):
        for b in range(y.starts[j], y.starts[j + 1]):
            apart = y.edges[b] - x.edges[a]
            for at in (lo - apart, hi - apart):
                for point in (at, at + 1) if jumps else (at, at):
                    if first < point <= last:
                        points[count] = point
                        count += 1
    return np.unique(points[:count])


@compiled
def _has_instants(x, i):
    """Whether some mass is at an instant; with both so, the probability jumps."""
    for e in range(x.starts[i], x.starts[i + 1] - 1):
        if x.edges[e] == x.edges[e + 1] and x.masses[e] > 0.0:
            return True
    return False
