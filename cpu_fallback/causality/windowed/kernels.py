"""One pass through a window: every tuple meets those that are kept, one goes, and it is kept itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.causal_windows.policies import EXPECTED
from coincide.causal_windows.state import (
    CAUSE,
    CLASS,
    CLOCK,
    EFFECT,
    FOLLOWS,
    HOME,
    KEPT,
    LIVE,
    LIVES,
    MATCHED,
    NOW,
    NUMBER,
    NUMBERS,
    ROLE,
    SLOTS,
    TIME,
    TIMES,
)
from coincide.cause_and_effect.deciding import (
    accepts,
    distance_between,
    squared_distance,
    squared_gap,
)
from coincide.cause_and_effect.points import H, X, Y, Z
from coincide.compiled import compiled
from cpu_fallback.causality.windowed.evicting import enter, evict, take_slot
from cpu_fallback.causality.windowed.inner import inner
from cpu_fallback.causality.windowed.learning import (
    class_of,
    is_followed,
    note_followed,
    note_match,
    renew,
)
from cpu_fallback.causality.windowed.ordering import first_from, put_in_order

_EIGHT = np.uint64(8)


class Arrivals(NamedTuple):
    """Tuples in the order in which they arrived.

    Parameters
    ----------
    times, clocks : int64 arrays, shape (n,)
        Valid times and times of arrival, ticks.
    points : float64 array, shape (4, n)
        Zero where there are no places, and no heights.
    roles : int64 array, shape (n,)
    """

    times: np.ndarray
    clocks: np.ndarray
    points: np.ndarray
    roles: np.ndarray


class Pairs(NamedTuple):
    """Where pairs go.

    Parameters
    ----------
    causes, effects, deltas : int64 arrays, shape (room,)
        Numbers of tuples by arrival; ticks.
    distances : float64 array, shape (room,)
    """

    causes: np.ndarray
    effects: np.ndarray
    deltas: np.ndarray
    distances: np.ndarray


@compiled(allocates=True)
def take(window, terms, arrivals, start, out):
    """Take tuples from `start` on, as long as there is room for what one more may find.

    Parameters
    ----------
    window : WindowState
    terms : WindowTerms
    arrivals : Arrivals
    start : int64
    out : Pairs
        With more room than the window has tuples.

    Returns
    -------
    at, pairs : int64
        Where to go on, and how many pairs were written.
    """
    at, pairs = np.int64(start), np.int64(0)  # a literal is compiled apart
    room, counts = out.causes.size - terms.size, window.counts
    while at < arrivals.times.size and pairs <= room:
        slot = take_slot(window)
        _lay_down(window, terms, arrivals, at, slot)
        pairs = _join(window, terms, slot, out, pairs)
        time, stay_clock = window.slots[TIME, slot], window.slots[CLOCK, slot]
        if terms.policy == EXPECTED:
            _admit(window, terms, slot)
            renew(window, terms)
            if counts[LIVE] > terms.size:
                evict(window, terms, time, stay_clock)
        else:
            if counts[LIVE] == terms.size:
                evict(window, terms, time, stay_clock)
            _admit(window, terms, slot)
        at += 1
    return at, pairs


@inner
def _lay_down(window, terms, arrivals, at, slot):
    """Write a tuple into its slot, and set the clock."""
    window.slots[TIME, slot] = arrivals.times[at]
    clock = arrivals.clocks[at]
    window.counts[NOW] = max(window.counts[NOW], clock)
    window.slots[CLOCK, slot] = window.slots[NUMBER, slot] if terms.counted else clock
    window.slots[ROLE, slot] = arrivals.roles[at]
    points, home = window.points, terms.home
    for k in range(4):
        points[k, slot] = arrivals.points[k, at]
    gap = squared_gap(
        points[X, slot] - home[X], points[Y, slot] - home[Y], points[Z, slot] - home[Z]
    )
    dh = points[H, slot] - home[H]
    window.points[HOME, slot] = squared_distance(terms.rule.curvature, gap, dh)
    window.slots[LIVES, slot] = 0
    window.slots[FOLLOWS, slot] = is_followed(window.slots[NUMBER, slot], terms.following.sample)
    window.slots[MATCHED, slot], window.slots[KEPT, slot] = 0, 0


@inner
def _admit(window, terms, slot):
    """Put a tuple into the window."""
    follows = window.slots[FOLLOWS, slot]
    if terms.policy == EXPECTED:
        window.slots[CLASS, slot] = class_of(window, terms, slot)
    put_in_order(window, slot)
    enter(window, terms.policy, slot)
    if follows:
        note_followed(window, slot)


@inner
def _join(window, terms, slot, out, pairs):
    """The pairs of a tuple with those that are kept; ghosts only count theirs."""
    time, role = window.slots[TIME, slot], window.slots[ROLE, slot]
    for wanted in (CAUSE, EFFECT):  # of the others
        if wanted == CAUSE and role & EFFECT:
            pairs = _meet(window, terms, slot, time - terms.hi, time - terms.lo, wanted, out, pairs)
        elif wanted == EFFECT and role & CAUSE:
            pairs = _meet(window, terms, slot, time + terms.lo, time + terms.hi, wanted, out, pairs)
    return pairs


@inner
def _meet(window, terms, slot, first, last, wanted, out, pairs):
    """The pairs of a tuple with those from `first` to `last` that have a role."""
    rule, points, now = terms.rule, window.points, window.counts[NOW]
    slots, order, sites, hits = window.slots, window.order, window.sites, window.hits
    x, y, z, h = points[X, slot], points[Y, slot], points[Z, slot], points[H, slot]
    own, time, learns = slots[NUMBER, slot], slots[TIME, slot], terms.policy == EXPECTED
    start = first_from(window, first)
    count = _note_near(window, x, y, z, rule.near, start, first_from(window, last + 1))
    for k in range(count):
        at = hits[k]
        other, number = order[SLOTS, at], order[NUMBERS, at]
        if slots[NUMBER, other] != number or slots[ROLE, other] & wanted == 0:
            continue
        delta = time - order[TIMES, at]
        if wanted == EFFECT:
            delta = -delta
        gap = squared_gap(sites[X, at] - x, sites[Y, at] - y, sites[Z, at] - z)
        if not accepts(rule, gap, points[H, other] - h, delta):
            continue
        if (
            terms.own
            and delta <= 0
            and _is_told_swapped(rule, gap, points[H, other] - h, delta, wanted)
        ):
            continue
        if slots[FOLLOWS, other]:
            note_match(window, other, learns, now)
        if slots[LIVES, other]:
            causes = wanted == CAUSE
            out.causes[pairs], out.effects[pairs] = (
                number if causes else own, own if causes else number
            )  # fmt: skip
            out.deltas[pairs] = delta
            out.distances[pairs] = distance_between(rule.curvature, gap, points[H, other] - h)
            pairs += 1
    return pairs


@inner
def _is_told_swapped(rule, gap, dh, delta, wanted):
    """Whether a pair of one stream whose effect came first, or at once, is told in the other order."""
    return wanted == EFFECT if delta == 0 else accepts(rule, gap, dh, -delta)


@inner
def _note_near(window, x, y, z, farthest, start, stop):
    """Note which entries of the order, dead ones as well, are near enough; their number.

    Indices without a sign: Numba need not ask whether they count from the end, and the first loop does
    several entries at a time. Few are near, so that most runs of eight are passed over at once.
    """
    sites, near, hits = window.sites, window.near, window.hits
    begin, end, one = np.uint64(start), np.uint64(stop), np.uint64(1)
    for at in range(begin, end):
        near[at] = squared_gap(sites[X, at] - x, sites[Y, at] - y, sites[Z, at] - z) <= farthest
    for at in range(end, end + _EIGHT):
        near[at] = 0
    count = 0
    while begin < end:
        some = near[begin]
        for at in range(begin + one, begin + _EIGHT):
            some |= near[at]
        if some:
            for at in range(begin, begin + _EIGHT):
                if near[at]:
                    hits[count] = at
                    count += 1
        begin += _EIGHT
    return count
