"""Which tuple goes, and what becomes of it."""

from __future__ import annotations

import numpy as np

from coincide.causal_windows.policies import EXPECTED, FCFO, FHCFO, FHFO
from coincide.causal_windows.state import (
    ARRIVED,
    BINS,
    CLASSES,
    CLOCK,
    CUT,
    EVICTED,
    FIRST_KIN,
    FIRST_TIME,
    FOLLOWS,
    FREE,
    FREE_SLOT,
    GHOST,
    GHOSTS,
    GHOSTS_BEGIN,
    HEAP,
    LAST_KIN,
    LAST_TIME,
    LEAST,
    LIVE,
    LIVES,
    NOW,
    NUMBER,
    OLDEST,
    SHIFT,
    TIME,
    UNTIL,
)
from cpu_fallback.causality.windowed.inner import inner
from cpu_fallback.causality.windowed.learning import bin_of, note_price
from cpu_fallback.causality.windowed.ordering import earliest
from cpu_fallback.causality.windowed.slots import (
    enter_class,
    enter_heap,
    enter_last,
    leave_arrivals,
    leave_class,
    leave_heap,
)

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
    """Let one tuple go for another.

    Parameters
    ----------
    window : WindowState
    terms : WindowTerms
    time : int64
        Valid time of the new tuple.
    stay_clock : int64
        What the clock of stays says.
    """
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
    """Of the first and the last one of each class the one of least score; of equals the first by time."""
    classes, now = window.classes, window.counts[NOW]
    known = window.counts[CLASSES] + 1
    least = _NONE
    for own in range(known):
        if classes[UNTIL, own] <= now:  # rarely: ages are told in bins
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
    """Note the lesser score of the ends of a class, and until when it stands if the ends do."""
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
