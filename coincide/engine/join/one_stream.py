"""One stream with itself: left is every event, right every other one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coincide.engine.events.sides import PairTest, Side
from coincide.model.condition import Window
from cpu_fallback.join.filtering import ALWAYS, NESTED, NEVER, SAME, Stamps, order_of_pairs

ROW_NUMBERS = ("\0group", "\0row")
"""Columns that say which event of a stream a row is, added to those of files."""
Ranks = tuple[np.ndarray, np.ndarray]


def numbered(left: Side, right: Side) -> tuple[Side, Side]:
    """Both sides of a join of one stream, with ranks, which say which event is which."""
    # Ranks that they have already stay. Without identities and ranks their rows are the same.
    if left.ranks is not None and right.ranks is not None:
        return left, right
    if left.identity:
        left, right, ranks = ranked_sides(left, right)
    else:
        ranks = (np.arange(len(left)),) * 2
    return replace(left, ranks=ranks[0]), replace(right, ranks=ranks[1])


def ranked_sides(causes: Side, effects: Side) -> tuple[Side, Side, Ranks]:
    """Parts of one stream in order of identity, and for each event its number in that order."""
    # Events of equal identity are alike in all that is asked of them. Each side has all of them, in
    # whatever order, so that the k-th of one side may be taken for the k-th of the other. Ranks are
    # int64, ascending, and an event has the same one on both sides.
    first, second = (
        np.concatenate([own.to_numpy(), other.to_numpy()])
        for own, other in zip(causes.identity, effects.identity, strict=True)
    )
    is_effect = np.arange(first.size) >= len(causes)
    order = np.lexsort((is_effect, second, first))
    first, second, is_effect = first[order], second[order], is_effect[order]
    begins = np.ones(first.size, bool)
    begins[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    changes = begins.copy()
    changes[1:] |= is_effect[1:] != is_effect[:-1]
    # Where the first event of this identity is, and how many of this side come before this one.
    at = np.arange(first.size)
    ranks = np.maximum.accumulate(np.where(begins, at, 0)) + at
    ranks -= np.maximum.accumulate(np.where(changes, at, 0))
    causes, effects = (
        causes.rows(order[~is_effect]),
        effects.rows(order[is_effect] - len(causes)),
    )
    return causes, effects, (ranks[~is_effect], ranks[is_effect])


def window_once(window: Window, left: Side, right: Side) -> tuple[Window, bool]:
    """The part of a window that holds all pairs as they are given once, and whether it holds no others."""
    if not (left.are_instants and right.are_instants):
        return window, False
    if window.lo > 0 or window.hi < 0:
        return window, True
    least = 0 if _has_ties(left, right) else 1
    if not window.lo + window.hi >= 0 or least > window.hi:
        return window, False
    return replace(window, lo=least), least > 0


def doubt_of_order(window: Window, are_symmetric: bool) -> int:
    """When to decide whether a pair whose right event is the earlier one qualifies in that order, too."""
    if window.lo + window.hi == 0:
        return NEVER
    return NESTED if window.lo + window.hi > 0 and are_symmetric else ALWAYS


def stamps_of(side: Side) -> Stamps:
    """The events of a side with ranks."""
    assert side.ranks is not None
    given = side.max_time, side.lengths, side.ranks
    # A kernel is compiled for one kind of arrays: it takes less time to copy one of another kind.
    return Stamps(*(np.require(each, requirements=("C", "W")) for each in given))


def are_two(left: Side, right: Side) -> PairTest:
    """Whether pairs are of two events."""
    own, others = stamps_of(left), stamps_of(right)
    return lambda *rows: order_of_pairs(own, others, rows, NEVER) != SAME


def _has_ties(left: Side, right: Side) -> bool:
    """Whether there are two events of one time; those that match nothing do not matter."""
    if left.max_time is right.max_time:
        times = np.sort(_of_matchable(left, left.max_time))
        return bool((times[1:] == times[:-1]).any())
    assert left.ranks is not None
    assert right.ranks is not None
    times, ranks = (
        np.concatenate([_of_matchable(left, own), _of_matchable(right, others)])
        for own, others in ((left.max_time, right.max_time), (left.ranks, right.ranks))
    )
    order = np.argsort(times, kind="stable")
    times, ranks = times[order], ranks[order]
    # An event that is on both sides has one rank.
    return bool(((times[1:] == times[:-1]) & (ranks[1:] != ranks[:-1])).any())


def _of_matchable(side: Side, values: np.ndarray) -> np.ndarray:
    return values if side.matchable is None else values[side.matchable]
