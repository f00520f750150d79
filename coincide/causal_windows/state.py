"""What a window keeps, as kernels take it: arrays, made once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.cause_and_effect.rule import PairRule

CAUSE, EFFECT = 1, 2
"""What a tuple may be; their sum: both."""

BINS = 128
"""Of the histograms of ages; twice as many as the window on delta has at first."""

MOST_CLASSES = 128
"""Of places; the last one takes all that come after."""

_NAMES = 4 * MOST_CLASSES
"""Entries of the table in which a place's class is looked up."""

(
    ARRIVED, LIVE, ENDED, FIRST, OLDEST, NEWEST, FREE, NOW, CLASSES,
    GHOSTS, GHOSTS_BEGIN, CUT, FOLLOWED, MATCHES, FOUND, MATCHES2, MATCHES_FOUND, FOUND2,
    SHIFT, RENEWED, KNOWN, PRICE, FETCHED, LEFT, EVICTED,
) = range(25)  # fmt: skip
"""Entries of `WindowState.counts`. Tuples that arrived; those in the window; the end of the order, and a
place of it before which nothing lives; first and last of those in the window by arrival; free slots; the
clock; classes; ghosts and where their queue begins; ghosts let go; tuples followed, their matches, those
that were found, and sums of squares and products of both; log2 of a bin's ticks; members at the last
renewal of scores; members; price of a stay; of those that went since, what stays were worth to them, and
their number; tuples evicted."""

(
    NUMBER, TIME, CLOCK, ROLE, LIVES, FOLLOWS, MATCHED, KEPT, BEFORE, AFTER,
    CLASS, KIN_BEFORE, KIN_AFTER, HEAP, PLACE, FREE_SLOT, GHOST,
) = range(17)  # fmt: skip
"""Rows of `WindowState.slots`. The tuple's number by arrival, -1 of a free slot; valid time; clock of its
stay; role; whether it is in the window, and whether it is followed; matches since it arrived, and those
while it was in the window, if it is followed; who arrived before and after it; its class, and who
is before and after it in that by valid time. By place, and not by slot: slots in the window as a heap by
distance; where in it a slot is; the stack of free slots; the queue of ghosts, a ring."""

HOME = 4
"""Row of `WindowState.points`, after those of `cause_and_effect.points`: squared distance from home."""

TIMES, SLOTS, NUMBERS = range(3)
"""Rows of `WindowState.order`. An entry whose slot holds another number is dead."""

FIRST_KIN, LAST_KIN, FIRST_TIME, LAST_TIME, LEAST, UNTIL, MEMBERS = range(7)
"""Rows of `WindowState.classes`: first and last one in the window by valid time, -1 of none, and their
times; the lesser score of both, and until when by the clock it stands; tuples followed."""

LONG_AGO = -(2**62)
"""Before any time."""


class WindowState(NamedTuple):
    """Tuples in slots, an order by valid time over them, and what policies keep.

    A slot holds a tuple that is in the window, or the ghost of one that was: a sample of tuples is followed
    beyond its eviction, to see what is missed. Few arrays, since kernels take long to compile for many.

    Parameters
    ----------
    slots : int64 array, shape (17, slots)
    points : float64 array, shape (5, slots)
    order : int64 array, shape (3, more than slots)
    sites : float64 array, shape (3, more than slots)
        x, y and z of each entry of the order: those in a window on delta stand side by side.
    near : uint8 array, shape (more than slots,)
    hits : int64 array, shape (more than slots,)
        Working memory: whether each of some entries is near enough, and those that are.
    classes : int64 array, shape (7, MOST_CLASSES)
    keys : float64 array, shape (4, MOST_CLASSES)
        Cell and role of a class.
    histogram, scores, indices : int64 arrays, shape (MOST_CLASSES, BINS)
        Matches of followed tuples by their age, what a tuple of that age is worth, and a stay to it.
    names : int64 array
        Hash table of classes, by their keys; -1 where there is none.
    counts : int64 array, shape (25,)
    """

    slots: np.ndarray
    points: np.ndarray
    order: np.ndarray
    sites: np.ndarray
    near: np.ndarray
    hits: np.ndarray
    classes: np.ndarray
    keys: np.ndarray
    histogram: np.ndarray
    scores: np.ndarray
    indices: np.ndarray
    names: np.ndarray
    counts: np.ndarray


class Following(NamedTuple):
    """How tuples are followed and learnt from.

    Parameters
    ----------
    sample : int
        One tuple in so many is followed; 0: none.
    ghosts : int
        So many are followed beyond their eviction.
    renewal : int
        Scores are renewed whenever so many more are followed, and at powers of two before.
    memory : int
        When so many have been followed, what was learnt counts half.
    weight : int
        What all classes learnt counts in each of them like so many of its own tuples.
    """

    sample: int = 16
    ghosts: int = 256
    renewal: int = 256
    memory: int = 1 << 14
    weight: int = 8


class WindowTerms(NamedTuple):
    """What is asked of pairs, and by what policy tuples go.

    Parameters
    ----------
    rule : PairRule
    lo, hi : int
        Between which deltas partners are looked for, ticks.
    longest : int
        The most delta of a pair, exactly.
    own : bool
        Whether every tuple may be cause and effect: then, if both orders of a pair qualify, the earlier is
        the cause, and of simultaneous ones the one that arrived first.
    policy : int
    size : int
        Tuples in the window.
    max_stay : int
        Of FCFO, by the clock.
    counted : bool
        Whether the clock of stays counts arrivals.
    side : float
        Of cells that make classes of places, in the unit of points.
    home : tuple of four float
        Where the window is, as points are.
    following : Following
    """

    rule: PairRule
    lo: int
    hi: int
    longest: int
    own: bool
    policy: int
    size: int
    max_stay: int
    counted: bool
    side: float
    home: tuple[float, float, float, float]
    following: Following


def new_state(terms: WindowTerms) -> WindowState:
    """An empty window."""
    slots, classes = terms.size + terms.following.ghosts + 2, MOST_CLASSES
    entries = 2 * slots + 64
    histogram, scores, indices = (np.zeros((classes, BINS), np.int64) for _ in range(3))
    state = WindowState(
        slots=np.zeros((GHOST + 1, slots), np.int64),
        points=np.zeros((HOME + 1, slots)),
        order=np.zeros((NUMBERS + 1, entries), np.int64),
        sites=np.zeros((3, entries)),
        near=np.zeros(entries + 8, np.uint8),
        hits=np.zeros(entries, np.int64),
        classes=np.zeros((MEMBERS + 1, classes), np.int64),
        keys=np.zeros((4, classes)),
        histogram=histogram,
        scores=scores,
        indices=indices,
        names=np.full(_NAMES, -1),
        counts=np.zeros(EVICTED + 1, np.int64),
    )
    state.slots[NUMBER] = -1
    state.slots[FREE_SLOT] = np.arange(slots)[::-1]
    state.classes[[FIRST_KIN, LAST_KIN]] = -1
    state.classes[UNTIL] = LONG_AGO
    counts = state.counts
    counts[FREE], counts[OLDEST], counts[NEWEST], counts[NOW] = slots, -1, -1, LONG_AGO
    counts[SHIFT] = _first_shift(terms.longest)
    return state


def _first_shift(longest: int) -> int:
    """log2 of a bin's ticks: half of the bins reach the most delta."""
    if longest >= 2**61:
        return 0
    return max(0, max(longest, 0).bit_length() - (BINS // 2).bit_length() + 1)
