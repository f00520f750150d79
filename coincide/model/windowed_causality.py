"""A bounded window of causes and effects: its policies, what it keeps, and what became of its tuples."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from coincide.model.causality.deciding import PairRule
from coincide.model.errors import ConditionError, argument
from coincide.model.options import Invalid, check_choice, check_count
from coincide.model.units import Duration, name_units, size_of

MOST_TUPLES = 10_000_000
"""Most tuples of a window: each takes some 300 bytes, and its columns."""

_GHOSTS = 256


@dataclass(frozen=True)
class WindowOptions:
    """Options of `WindowedCausality` and `window_recall`.

    Parameters
    ----------
    window : int
        Tuples that are kept: the paper's n_W.
    policy : {"fifo", "fhfo", "fcfo", "fhcfo", "expected"}
        Which tuple goes when another one comes: `coincide.model.windowed_causality`.
    max_stay : int or str, optional
        The paper's t_max_stay, for ``"fcfo"``, which needs an arrival column. None: as many arrivals
        as the window has tuples, like in the paper.
    sample : int, optional
        The window follows one in this many of the tuples that have gone, to estimate `recall`, and for
        ``"expected"`` to learn from. It keeps the latest 256, or half a window of them. None: 8, or more
        where that is needed to follow each through 8 windows. 0: no tuple, and no estimate.
    invalid : {"raise", "drop"}
        What to do with impossible times and places, and with arrivals that go back: raise an error, or
        skip and count them. An unknown role is an error either way.
    unit, tick : str or None
        Like those of `CorrelateOptions`.

    Raises
    ------
    ConditionError
        If a value makes no sense.
    """

    window: int = 500
    policy: Policy = "expected"
    max_stay: Duration | None = None
    sample: int | None = None
    invalid: Invalid = "raise"
    unit: str | None = None
    tick: str | None = None

    def __post_init__(self) -> None:
        if self.window is None:
            raise ConditionError(f"{argument('window')} must be a number of tuples (found None).")
        check_count("window", self.window, most=MOST_TUPLES)
        check_count("sample", self.sample, 0, 1 << 20)
        check_choice("policy", self.policy, POLICIES)
        check_choice("invalid", self.invalid, get_args(Invalid))
        name_units(self, "unit", "tick")
        if self.max_stay is not None:
            if size_of(self.max_stay) <= 0:
                raise ConditionError(
                    f"{argument('max_stay')} must be above 0 (found {self.max_stay!r})."
                )
            if self.policy != "fcfo":
                raise ConditionError(
                    f"{argument('max_stay')} belongs to policy 'fcfo' (found {self.policy!r})."
                    " Remove it."
                )
        if self.policy == "expected" and self.sample == 0:
            raise ConditionError(
                "policy 'expected' learns from the tuples that it follows, so sample must be at"
                " least 1. Give a larger sample, or choose another policy."
            )

    @property
    def following(self) -> Following:
        """How tuples are followed and learnt from."""
        if self.sample == 0:
            return Following(0, 0)
        ghosts = max(_GHOSTS, self.window // 2)
        return Following(self.sample or max(8, -(-8 * self.window // ghosts)), ghosts)


Policy = Literal["fifo", "fhfo", "fcfo", "fhcfo", "expected"]
"""
``"fifo"``
    The tuple that arrived first.
``"fhfo"``
    First happens, first out (Definition 2): the one of least valid time.
``"fcfo"``
    First closely located, first out (Definition 3): the one that arrived first if it has stayed longer
    than allowed, else the one nearest to where the window is.
``"fhcfo"``
    First happens and closely located, first out (Definition 4): the one of least valid time if it can
    cause the new one no more, else the one nearest to where the window is.
``"expected"``
    The one of which the least matches are to be expected yet, less what its stay would cost others; what
    to expect is learnt by place and age: `cpu_fallback.windowed_causality.learning`. The new one may
    be sent away itself.

Among equals the one that arrived first goes.
"""

POLICIES: tuple[Policy, ...] = get_args(Policy)
FIFO, FHFO, FCFO, FHCFO, EXPECTED = range(len(POLICIES))
"""Policies as kernels have them: places in `POLICIES`."""

BY_DISTANCE = ("fcfo", "fhcfo")
"""Policies that ask how far tuples are from where the window is."""


@dataclass(frozen=True)
class WindowCounts:
    """What became of tuples."""

    arrived: int = 0  # Tuples that came, that are in the window, and that had to go
    kept: int = 0  # Tuples that came, that are in the window, and that had to go
    evicted: int = 0  # Tuples that came, that are in the window, and that had to go
    followed: int = 0  # Those of the sample that is followed beyond eviction
    matches: int = 0
    found: int = 0
    matches2: int = 0
    matches_found: int = 0
    found2: int = 0
    cut: int = 0

    def then(self, later: WindowCounts) -> WindowCounts:
        """Counts of both, of a window that was emptied and of the next one."""
        sums = [getattr(self, f.name) + getattr(later, f.name) for f in fields(WindowCounts)]
        return replace(WindowCounts(*sums), kept=later.kept)

    @property
    def recall(self) -> float | None:
        """The estimated share of all pairs that were found; None while nothing is known."""
        return self.found / self.matches if self.matches else None

    @property
    def recall_error(self) -> float | None:
        """Standard error of `recall`: that of a ratio, its tuples taken to be independent."""
        recall = self.recall
        if recall is None:
            return None
        squares = self.found2 - 2 * recall * self.matches_found + recall * recall * self.matches2
        return math.sqrt(max(0.0, squares)) / self.matches


CAUSE, EFFECT = 1, 2
"""What a tuple may be; their sum: both."""

BINS = 128
"""Bins of the histograms of ages; twice as many as the window on delta has at first."""

MOST_CLASSES = 128
"""Classes of places; the last one takes all that come after."""

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
times; the lesser score of both, and until when by the clock it holds; tuples followed."""

LONG_AGO = -(2**62)
"""Before any time."""


class WindowState(NamedTuple):
    """Tuples in slots, an order by valid time over them, and what policies keep.

    A slot holds a tuple that is in the window, or the ghost of one that was: a sample of tuples is followed
    beyond its eviction, to see what is missed. Few arrays, since kernels take long to compile for many.
    """

    slots: np.ndarray  # int64, shape (17, slots)
    points: np.ndarray  # float64, shape (5, slots)
    order: np.ndarray  # int64, shape (3, more than slots)
    sites: np.ndarray  # float64, shape (3, more than slots)
    near: np.ndarray  # uint8, shape (more than slots,)
    hits: np.ndarray  # int64, shape (more than slots,)
    classes: np.ndarray  # int64, shape (7, MOST_CLASSES)
    keys: np.ndarray  # float64, shape (4, MOST_CLASSES): cell and role of a class
    histogram: np.ndarray  # int64, shape (MOST_CLASSES, BINS)
    scores: np.ndarray  # int64, shape (MOST_CLASSES, BINS)
    indices: np.ndarray  # int64, shape (MOST_CLASSES, BINS)
    names: np.ndarray  # int64: hash table of classes, by their keys; -1 where no class is
    counts: np.ndarray  # int64, shape (25,)


class Following(NamedTuple):
    """How tuples are followed and learnt from."""

    sample: int = 16  # One tuple in this many is followed; 0: none
    ghosts: int = 256  # This many are followed beyond their eviction
    renewal: int = 256
    memory: int = 1 << 14  # When this many have been followed, what was learnt counts half
    weight: int = (
        8  # What all classes learnt counts in each of them like this many of its own tuples
    )


class WindowTerms(NamedTuple):
    """The question about pairs, and by what policy tuples go."""

    rule: PairRule
    lo: int  # Between which deltas matches are looked for, ticks
    hi: int  # Between which deltas matches are looked for, ticks
    longest: int  # The most delta of a pair, exactly
    own: bool
    policy: int
    size: int  # Tuples in the window
    max_stay: int  # FCFO's, by the clock
    counted: bool  # Whether the clock of stays counts arrivals
    side: float  # The side of cells that make classes of places, in the unit of points
    home: tuple[float, float, float, float]  # Where the window is, as points are
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
