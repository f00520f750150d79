"""One pass through a window: every tuple meets those that are kept, one goes, and it is kept itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.causality.deciding import (
    accepts,
    distance_between,
    squared_distance,
    squared_gap,
)
from coincide.model.causality.spaces import H, X, Y, Z
from coincide.model.compiled import compiled
from coincide.model.windowed_causality import (
    AFTER,
    ARRIVED,
    BEFORE,
    BINS,
    CAUSE,
    CLASS,
    CLASSES,
    CLOCK,
    CUT,
    EFFECT,
    ENDED,
    EVICTED,
    EXPECTED,
    FCFO,
    FHCFO,
    FHFO,
    FIRST,
    FIRST_KIN,
    FIRST_TIME,
    FOLLOWS,
    FREE,
    FREE_SLOT,
    GHOST,
    GHOSTS,
    GHOSTS_BEGIN,
    HEAP,
    HOME,
    KEPT,
    KIN_AFTER,
    KIN_BEFORE,
    LAST_KIN,
    LAST_TIME,
    LEAST,
    LIVE,
    LIVES,
    LONG_AGO,
    MATCHED,
    NEWEST,
    NOW,
    NUMBER,
    NUMBERS,
    OLDEST,
    PLACE,
    ROLE,
    SHIFT,
    SLOTS,
    TIME,
    TIMES,
    UNTIL,
)
from cpu_fallback.windowed_causality.learning import (
    bin_of,
    class_of,
    inner,
    is_followed,
    note_followed,
    note_match,
    note_price,
    renew,
)

_EIGHT = np.uint64(8)


class Arrivals(NamedTuple):
    """Tuples in the order in which they arrived."""

    times: np.ndarray
    clocks: np.ndarray
    points: np.ndarray
    roles: np.ndarray


class Pairs(NamedTuple):
    """Where pairs go."""

    causes: np.ndarray
    effects: np.ndarray
    deltas: np.ndarray
    distances: np.ndarray


@compiled(allocates=True)
def take(window, terms, arrivals, start, out):
    """Take tuples from `start` on, as long as there is room for what one more may find."""
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
    for wanted in (CAUSE, EFFECT):  # the role of the others
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
            and _is_reported_swapped(rule, gap, points[H, other] - h, delta, wanted)
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
def _is_reported_swapped(rule, gap, dh, delta, wanted):
    """Whether a pair of one stream whose effect came first, or at once, is reported in the other order."""
    return wanted == EFFECT if delta == 0 else accepts(rule, gap, dh, -delta)


@inner
def _note_near(window, x, y, z, farthest, start, stop):
    """Note which entries of the order, dead ones as well, are near enough; their number."""
    # Indices without a sign: Numba need not ask whether they count from the end, and the first loop
    # does several entries at a time. Few are near, so that most runs of eight are passed over at
    # once.
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


_NONE = np.int64(2**62)
"""More than any score, and later than any time."""


@inner
def enter(window, policy, slot):
    """Put a tuple into what the policy needs."""
    if policy in (FCFO, FHCFO):
        enter_heap(window, slot)
    if policy == EXPECTED:
        enter_class(window, slot)
    enter_last(window, slot)
    window.slots[LIVES, slot] = 1
    window.counts[LIVE] += 1


@inner
def evict(window, terms, time, stay_clock):
    """Let one tuple go for another."""
    slot = victim(window, terms, time, stay_clock)
    policy = terms.policy
    if policy in (FCFO, FHCFO):
        leave_heap(window, slot)
    if policy == EXPECTED:
        leave_class(window, slot)
        note_price(window, slot)
    leave_arrivals(window, slot)
    counts = window.counts
    window.slots[LIVES, slot] = 0
    counts[LIVE] -= 1
    counts[EVICTED] += 1
    if window.slots[FOLLOWS, slot]:
        _haunt(window, terms.following.ghosts, slot)
    else:
        _let_go(window, slot)


@inner
def victim(window, terms, time, stay_clock):
    """The slot of the tuple that goes."""
    policy, oldest = terms.policy, window.counts[OLDEST]
    if policy == FHFO:
        return earliest(window)
    if policy == FCFO:
        outstayed = stay_clock - window.slots[CLOCK, oldest] > terms.max_stay
        return oldest if outstayed else window.slots[HEAP, 0]
    if policy == FHCFO:
        first = earliest(window)
        is_over = time - window.slots[TIME, first] > terms.longest
        return first if is_over else window.slots[HEAP, 0]
    if policy == EXPECTED:
        return _least_promising(window)
    return oldest


@inner
def _least_promising(window):
    """The one of least score, among the first and the last one of each class; of equals the first one."""
    classes, now = window.classes, window.counts[NOW]
    known = window.counts[CLASSES] + 1
    least = _NONE
    for own in range(known):
        if classes[UNTIL, own] <= now:  # rarely: ages are known in bins
            _weigh(window, own, now)
        least = min(least, classes[LEAST, own])
    best = -1
    for own in range(known):
        if classes[LEAST, own] != least:
            continue
        for end in (FIRST_KIN, LAST_KIN):
            slot = classes[end, own]
            is_least = _score(window, own, window.slots[TIME, slot], now) == least
            if is_least and (best < 0 or _precedes(window, slot, best)):
                best = slot
    return best


@inner(forceinline=True)  # to hand over a window takes longer than what it does
def _weigh(window, own, now):
    """Note the lesser score of the ends of a class, and until when it holds if the ends do."""
    classes, shift = window.classes, window.counts[SHIFT]
    least, until = _NONE, _NONE
    if classes[FIRST_KIN, own] >= 0:
        for end in (FIRST_TIME, LAST_TIME):
            time = classes[end, own]
            age = bin_of(window, time, now)
            least = min(least, window.scores[own, min(age, BINS - 1)])
            if age < BINS - 1:
                until = min(until, time + ((age + 1) << shift))
    classes[LEAST, own], classes[UNTIL, own] = least, until


@inner(forceinline=True)
def _score(window, own, time, now):
    """What a tuple of a class and a valid time is worth."""
    return window.scores[own, min(bin_of(window, time, now), BINS - 1)]


@inner
def _precedes(window, a, b):
    own, other = window.slots[TIME, a], window.slots[TIME, b]
    return own < other or (own == other and window.slots[NUMBER, a] < window.slots[NUMBER, b])


@inner
def _haunt(window, most, slot):
    """Follow a tuple that has gone, and no longer the one that went first if these are too many."""
    counts, slots = window.counts, window.slots
    slots[GHOST, (counts[GHOSTS_BEGIN] + counts[GHOSTS]) % slots.shape[1]] = slot
    counts[GHOSTS] += 1
    if counts[GHOSTS] > most:
        first = slots[GHOST, counts[GHOSTS_BEGIN]]
        counts[GHOSTS_BEGIN] = (counts[GHOSTS_BEGIN] + 1) % slots.shape[1]
        counts[GHOSTS] -= 1
        counts[CUT] += 1
        _let_go(window, first)


@inner
def _let_go(window, slot):
    window.slots[NUMBER, slot] = -1
    window.slots[FREE_SLOT, window.counts[FREE]] = slot
    window.counts[FREE] += 1


@inner
def take_slot(window):
    """A free slot for the tuple that arrives, whose number it has from now on."""
    counts = window.counts
    counts[FREE] -= 1
    slot = window.slots[FREE_SLOT, counts[FREE]]
    window.slots[NUMBER, slot] = counts[ARRIVED]
    counts[ARRIVED] += 1
    return slot


@inner(forceinline=True)
def first_from(window, time):
    """The first entry of the order whose time is at least `time`."""
    order, low, high = window.order, 0, window.counts[ENDED]
    while low < high:
        middle = (low + high) >> 1
        if order[TIMES, middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def put_in_order(window, slot):
    """Enter a slot after all of its time and before."""
    # Those of later valid time are moved, which arrived before it: few, where delays are short.
    counts, order = window.counts, window.order
    if counts[ENDED] == order.shape[1]:
        _compact(window)
    time, end = window.slots[TIME, slot], counts[ENDED]
    at = end
    while at > 0 and order[TIMES, at - 1] > time:
        at -= 1
    _make_room(order, at, end)
    _make_room(window.sites, at, end)
    order[TIMES, at], order[SLOTS, at], order[NUMBERS, at] = time, slot, window.slots[NUMBER, slot]
    for k in range(3):
        window.sites[k, at] = window.points[k, slot]
    counts[ENDED] += 1
    counts[FIRST] = min(counts[FIRST], at)


@inner
def earliest(window):
    """The slot of least valid time in the window; of equals the one that arrived first."""
    counts, at = window.counts, window.counts[FIRST]
    while not _lives(window, at):
        at += 1
    counts[FIRST] = at
    return window.order[SLOTS, at]


@inner
def _lives(window, at):
    return is_there(window, at) and window.slots[LIVES, window.order[SLOTS, at]] == 1


@inner
def is_there(window, at):
    """Whether an entry of the order is not dead."""
    order = window.order
    return window.slots[NUMBER, order[SLOTS, at]] == order[NUMBERS, at]


@inner
def _compact(window):
    """Drop dead entries: at least half, so that each costs a constant time."""
    kept = 0
    for at in range(window.counts[ENDED]):
        if is_there(window, at):
            for k in range(3):
                window.order[k, kept] = window.order[k, at]
                window.sites[k, kept] = window.sites[k, at]
            kept += 1
    window.counts[ENDED], window.counts[FIRST] = kept, 0


@inner
def _make_room(rows, at, end):
    """Move what is in columns at ... end by one."""
    for k in range(3):
        for column in range(end, at, -1):
            rows[k, column] = rows[k, column - 1]


@inner
def enter_last(window, slot):
    """Enter a tuple in the list by arrival."""
    counts, slots = window.counts, window.slots
    last = counts[NEWEST]
    slots[BEFORE, slot], slots[AFTER, slot] = last, -1
    if last >= 0:
        slots[AFTER, last] = slot
    else:
        counts[OLDEST] = slot
    counts[NEWEST] = slot


@inner
def leave_arrivals(window, slot):
    """Take a tuple out of the list by arrival."""
    counts, slots = window.counts, window.slots
    before, after = slots[BEFORE, slot], slots[AFTER, slot]
    if before >= 0:
        slots[AFTER, before] = after
    else:
        counts[OLDEST] = after
    if after >= 0:
        slots[BEFORE, after] = before
    else:
        counts[NEWEST] = before


@inner
def enter_class(window, slot):
    """Enter a tuple among those of its class, by valid time and arrival."""
    slots, own = window.slots, window.slots[CLASS, slot]
    after, before = -1, window.classes[LAST_KIN, own]
    while before >= 0 and slots[TIME, before] > slots[TIME, slot]:
        after, before = before, slots[KIN_BEFORE, before]
    slots[KIN_BEFORE, slot], slots[KIN_AFTER, slot] = before, after
    _link(window, own, before, after, slot, slot)


@inner
def leave_class(window, slot):
    """Take a tuple out of those of its class."""
    slots = window.slots
    before, after = slots[KIN_BEFORE, slot], slots[KIN_AFTER, slot]
    _link(window, slots[CLASS, slot], before, after, after, before)


@inner
def _link(window, own, before, after, next_one, previous):
    """Say what comes after one of a class, and before another; -1 is an end of the list."""
    window.classes[UNTIL, own] = LONG_AGO
    if before >= 0:
        window.slots[KIN_AFTER, before] = next_one
    else:
        window.classes[FIRST_KIN, own] = next_one
        window.classes[FIRST_TIME, own] = window.slots[TIME, max(next_one, 0)]
    if after >= 0:
        window.slots[KIN_BEFORE, after] = previous
    else:
        window.classes[LAST_KIN, own] = previous
        window.classes[LAST_TIME, own] = window.slots[TIME, max(previous, 0)]


@inner
def enter_heap(window, slot):
    """Enter a tuple in the heap, of as many as are in the window without it."""
    at = window.counts[LIVE]
    window.slots[HEAP, at], window.slots[PLACE, slot] = slot, at
    _rise(window, at)


@inner
def leave_heap(window, slot):
    """Take a tuple out of the heap, of as many as are in the window with it."""
    at, last = window.slots[PLACE, slot], window.counts[LIVE] - 1
    moved = window.slots[HEAP, last]
    window.slots[HEAP, at], window.slots[PLACE, moved] = moved, at
    if at < last:
        _rise(window, at)
        _sink(window, window.slots[PLACE, moved], last)


@inner
def _goes_before(window, a, b):
    """Whether a slot is nearer than another, or as near and arrived before it."""
    near, far = window.points[HOME, a], window.points[HOME, b]
    return near < far or (near == far and window.slots[NUMBER, a] < window.slots[NUMBER, b])


@inner
def _swap(window, a, b):
    slots = window.slots
    own, other = slots[HEAP, a], slots[HEAP, b]
    slots[HEAP, a], slots[HEAP, b] = other, own
    slots[PLACE, other], slots[PLACE, own] = a, b


@inner
def _rise(window, at):
    while at > 0 and _goes_before(
        window, window.slots[HEAP, at], window.slots[HEAP, (at - 1) >> 1]
    ):
        _swap(window, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@inner
def _sink(window, at, size):
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _goes_before(window, window.slots[HEAP, child], window.slots[HEAP, least]):
                least = child
        if least == at:
            return
        _swap(window, at, least)
        at = least
