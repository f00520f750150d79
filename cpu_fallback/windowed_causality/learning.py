"""What tuples of a place promise at an age, learnt from those that are followed."""

from __future__ import annotations

from functools import partial

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.windowed_causality import (
    BINS,
    CLASS,
    CLASSES,
    FETCHED,
    FOLLOWED,
    FOUND,
    FOUND2,
    KEPT,
    KNOWN,
    LEFT,
    LIVES,
    LONG_AGO,
    MATCHED,
    MATCHES,
    MATCHES2,
    MATCHES_FOUND,
    MEMBERS,
    MOST_CLASSES,
    NOW,
    PRICE,
    RENEWED,
    ROLE,
    SHIFT,
    TIME,
    UNTIL,
)

inner = partial(compiled, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Without what calls them from Python: to unbox a window takes longer to compile than they do."""


ONE = 1 << 20
"""Means are counted in this many parts of a match."""

_GOLDEN = 2654435761
"""2**32 over the golden ratio: its multiples, modulo 2**32, are spread evenly."""


_FAR = 1e300
"""Cells beyond have one entry in common; they may be infinite."""


@inner
def is_followed(number, sample):
    """Whether the tuple of a number is one of the sample: one in `sample`, spread evenly."""
    return sample > 0 and (number * _GOLDEN) % (1 << 32) * sample < (1 << 32)


@inner
def class_of(window, terms, slot):
    """The class of a tuple: the cell in which it lies and its role, numbered as they first come."""
    x, y, z = (
        np.floor(window.points[0, slot] / terms.side) + 0.0,
        np.floor(window.points[1, slot] / terms.side) + 0.0,
        np.floor(window.points[2, slot] / terms.side) + 0.0,
    )  # fmt: skip
    keys, role = window.keys, float(window.slots[ROLE, slot])
    entries = window.names.size
    mixed = x * 73856093.0 + y * 19349663.0 + z * 83492791.0 + role * 7919.0
    at = int(abs(mixed) % entries) if abs(mixed) < _FAR else 0
    while window.names[at] >= 0:
        own = window.names[at]
        if keys[0, own] == x and keys[1, own] == y and keys[2, own] == z and keys[3, own] == role:
            return own
        at = at + 1 if at + 1 < entries else 0
    own = window.counts[CLASSES]
    if own == MOST_CLASSES - 1:
        return own
    keys[0, own], keys[1, own], keys[2, own], keys[3, own] = x, y, z, role
    window.names[at] = own
    window.counts[CLASSES] += 1
    for b in range(BINS):  # until scores are renewed, those of a class of which nothing is known
        window.scores[own, b] = window.scores[MOST_CLASSES - 1, b]
        window.indices[own, b] = window.indices[MOST_CLASSES - 1, b]
    return own


@inner(forceinline=True)
def bin_of(window, time, now):
    """The bin of the age of a tuple; more than the last one if it is older."""
    return max(0, now - time) >> window.counts[SHIFT]


@inner
def note_match(window, slot, learns, now):
    """Count a match of a tuple that is followed, and learn from it."""
    counts, slots = window.counts, window.slots
    found = window.slots[LIVES, slot]
    matches, kept = slots[MATCHED, slot], slots[KEPT, slot]
    counts[MATCHES] += 1
    counts[FOUND] += found
    counts[MATCHES2] += 2 * matches + 1
    counts[MATCHES_FOUND] += (matches + 1) * (kept + found) - matches * kept
    counts[FOUND2] += (2 * kept + 1) * found
    slots[MATCHED, slot], slots[KEPT, slot] = matches + 1, kept + found
    if not learns:
        return
    while bin_of(window, window.slots[TIME, slot], now) >= BINS:
        _widen(window)
    window.histogram[window.slots[CLASS, slot], bin_of(window, window.slots[TIME, slot], now)] += 1


@inner
def _widen(window):
    """Make bins twice as wide."""
    histogram = window.histogram
    for own in range(MOST_CLASSES):
        for b in range(BINS // 2):
            histogram[own, b] = histogram[own, 2 * b] + histogram[own, 2 * b + 1]
        for b in range(BINS // 2, BINS):
            histogram[own, b] = 0
    window.counts[SHIFT] += 1
    window.counts[FETCHED] *= 2
    window.counts[RENEWED] = -1  # scores belong to narrower bins


@inner
def note_price(window, slot):
    """Note what a stay was worth to one that goes."""
    own, age = (
        window.slots[CLASS, slot],
        bin_of(window, window.slots[TIME, slot], window.counts[NOW]),
    )
    window.counts[FETCHED] += window.indices[own, min(age, BINS - 1)]
    window.counts[LEFT] += 1


@inner
def note_followed(window, slot):
    """Count a tuple that is followed from now on."""
    window.counts[FOLLOWED] += 1
    window.counts[KNOWN] += 1
    window.classes[MEMBERS, window.slots[CLASS, slot]] += 1


@inner(allocates=True)
def renew(window, terms):
    """Compute scores anew where it is time."""
    counts, following = window.counts, terms.following
    known, last = counts[KNOWN], counts[RENEWED]
    if not (last < 0 or known >= last + min(max(last, 1), following.renewal)):
        return
    if known >= following.memory:
        counts[KNOWN] = known = known // 2
        for own in range(MOST_CLASSES):
            window.classes[MEMBERS, own] //= 2
            for b in range(BINS):
                window.histogram[own, b] //= 2
    counts[RENEWED] = known
    window.classes[UNTIL] = LONG_AGO
    if counts[LEFT] > 0:
        counts[PRICE] = counts[FETCHED] // counts[LEFT]
        counts[LEFT], counts[FETCHED] = 0, 0
    shared, means, hull = (
        np.zeros(BINS + 1, np.int64), np.zeros(BINS + 1, np.int64), np.zeros(BINS + 1, np.int64)
    )  # fmt: skip
    _fill_shared(window, terms.longest, shared)
    for k in range(counts[CLASSES] + 1):
        own = k if k < counts[CLASSES] else MOST_CLASSES - 1
        members = window.classes[MEMBERS, own] + following.weight
        total = 0
        for b in range(BINS):
            total += window.histogram[own, b]
            means[b + 1] = (total * ONE + following.weight * shared[b + 1]) // members
        _fill_indices(means, hull, window.indices[own])
        _fill_scores(means, counts[PRICE], window.scores[own])


@inner
def _fill_shared(window, hi, shared):
    """Mean matches before each bin, of all tuples and one whose only match comes evenly up to hi."""
    known = window.counts[KNOWN] + 1
    last = min(max(hi, 0) >> window.counts[SHIFT], BINS - 1) + 1
    total = 0
    for b in range(BINS):
        for own in range(MOST_CLASSES):
            total += window.histogram[own, b]
        shared[b + 1] = (total * ONE + min(b + 1, last) * ONE // last) // known


@inner
def _fill_scores(means, price, scores):
    """What a tuple is worth at the beginning of each bin beyond the price of its stay."""
    best = means[BINS] - price * BINS
    for b in range(BINS - 1, -1, -1):
        own = means[b] - price * b
        best = max(best, own)
        scores[b] = best - own


@inner
def _fill_indices(means, hull, indices):
    """The largest slope from each bin to a later end: along the upper hull of what lies behind it."""
    hull[0], size = BINS, 1
    for b in range(BINS - 1, -1, -1):
        while size > 1 and _is_steeper(means, b, hull[size - 2], hull[size - 1]):
            size -= 1
        top = hull[size - 1]
        indices[b] = (means[top] - means[b]) // (top - b)
        hull[size] = b
        size += 1


@inner
def _is_steeper(means, b, far, near):
    """Whether the slope from b to the farther point is at least that to the nearer one."""
    return (means[far] - means[b]) * (near - b) >= (means[near] - means[b]) * (far - b)
