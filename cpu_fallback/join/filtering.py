"""Pairs of a finished join of which only some count: a test, the best ones, a one-to-one assignment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled

Both = tuple[np.ndarray, np.ndarray]
"""An array of the left side, or of left rows, and one of the right side."""


SAME, EARLIER, LATER, UNSURE = range(4)
"""Pairs of one stream: an event with itself; left is the earlier; left is the later, and the other
order qualifies, too; left is the later, and the other order is yet to be decided."""
NEVER, NESTED, ALWAYS = range(3)
"""When the other order is to be decided, of a pair whose left event is the later one: never, as it
qualifies as well; only where its midpoint is the earlier one; always."""


class Stamps(NamedTuple):
    """Events of one side of a stream that is joined with itself: int64 arrays, shape (n,), ticks."""

    max_time: np.ndarray
    lengths: np.ndarray
    ranks: np.ndarray


def order_of_pairs(
    left: Stamps, right: Stamps, rows: Both, doubt: int, shift: int = 0
) -> np.ndarray:
    """The order of events in pairs of one stream, by later ends, earlier ends, ranks: uint8 array."""
    # Right times were moved by `shift` ticks: of equal timestamps what was earlier is so.
    out = np.empty(rows[0].size, np.uint8)
    _order_of_pairs(left, right, rows[0], rows[1], np.int64(doubt), np.int64(shift), out)
    return out


def runs_taken(
    values: np.ndarray, places: np.ndarray, firsts: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Values at the places of some runs, one run after the other."""
    out = np.empty(int(counts.sum()), values.dtype)
    _runs_taken(values, places, firsts, counts, out)
    return out


NOWHERE = np.uint64(np.iinfo(np.uint64).max), np.int64(np.iinfo(np.int64).max)
"""A place after all others: half ticks from the middle of a window, and a rank."""


@compiled(forceinline=True)
def is_better(merit, place, top, least):
    """Whether a match goes before the best one so far: by merit, then by the least place.

    It is the order of all kernels that look for one best match. Places are tuples: how far a pair is
    from the middle of its window, and at last a rank. `PairOrder` of the engine sorts by the same.
    """
    return merit > top or (merit == top and place < least)


def best_of_each(
    left: np.ndarray, right: np.ndarray, merits: tuple[np.ndarray, np.ndarray], ranks: np.ndarray
) -> np.ndarray:
    """The pair of each base event with the greatest merit, then least distance, then least rank."""
    best = np.empty(left.size, np.int64)
    return best[: _best_of_each(left, right, *merits, ranks, best)]


@compiled
def _order_of_pairs(left, right, left_rows, right_rows, doubt, shift, out):
    for pair in range(out.size):
        own, other = left_rows[pair], right_rows[pair]
        later = right.max_time[other] - left.max_time[own]
        # The longer timestamp begins earlier, where later ends are equal.
        longer = left.lengths[own] - right.lengths[other]
        ranked = right.ranks[other] - left.ranks[own]
        tied = -shift if shift else ranked
        # Without a branch: which of two is earlier cannot be foreseen.
        is_earlier = (later > 0) | ((later == 0) & ((longer > 0) | ((longer == 0) & (tied > 0))))
        is_nested = 2 * later + longer > 0
        is_unsure = (doubt == ALWAYS) | ((doubt == NESTED) & is_nested)
        code = np.uint8(EARLIER) if is_earlier else np.uint8(LATER) + np.uint8(is_unsure)
        out[pair] = np.uint8(SAME) if ranked == 0 else code


@compiled
def passing_of_each(offsets, passing, counts):
    """Count the pairs of each base event that pass; of offsets, shape (events + 1,), differences matter."""
    for event in range(counts.size):
        count = np.int64(0)
        for pair in range(offsets[event] - offsets[0], offsets[event + 1] - offsets[0]):
            count += passing[pair]
        counts[event] = count


@compiled
def kept(values, passing, out):
    """Write the values of pairs that pass, in their order, to an array that has room for just these."""
    place = np.int64(0)
    for pair in range(values.size):
        if place == out.size:
            break
        # Written in any case, and again if it does not pass.
        out[place] = values[pair]
        place += passing[pair]


@compiled
def _runs_taken(values, places, firsts, counts, out):
    at = 0
    for run in range(firsts.size):
        for place in range(firsts[run], firsts[run] + counts[run]):
            out[at] = values[places[place]]
            at += 1


@compiled
def _best_of_each(left, right, merits, distances, ranks, best):
    events = np.int64(0)
    for pair in range(left.size):
        if pair == 0 or left[pair] != left[pair - 1]:
            best[events] = pair
            events += 1
            continue
        top = best[events - 1]
        place = distances[pair], ranks[right[pair]]
        if is_better(merits[pair], place, merits[top], (distances[top], ranks[right[top]])):
            best[events - 1] = pair
    return events


_NONE = np.iinfo(np.int64).max
NEAREST, EARLIEST, LATEST = 0, 1, 2
"""Which delay is the best: the one nearest to 0, the least, the greatest."""

Keys = tuple[np.ndarray, np.ndarray]
"""By what pairs are ordered, first and then: int64 arrays, shape (pairs,)."""


def ordered_delays(
    left: np.ndarray, right: np.ndarray, rows: tuple[np.ndarray, np.ndarray], best: int
) -> np.ndarray:
    """Delays of pairs as numbers of which the least is best: int64 array, shape (pairs,)."""
    out = np.empty(rows[0].size, np.int64)
    _ordered_delays(left, right, rows[0], rows[1], best, out)
    return out


def least_of_each(offsets: np.ndarray, keys: Keys, k: int) -> np.ndarray:
    """Which pairs are among the k least of their base event, or equal to the k-th: bool array."""
    chosen = np.empty(keys[0].size, np.bool_)
    _least_of_each(offsets, keys[0], keys[1], np.empty(k, np.int64), np.empty(k, np.int64), chosen)
    return chosen


def least_of_targets(targets: np.ndarray, keys: Keys, count: int) -> np.ndarray:
    """Which pairs are the least of their target, one of `count`, or equal to it: bool array."""
    chosen = np.empty(targets.size, np.bool_)
    _least_of_targets(targets, keys[0], keys[1], *np.full((2, count), _NONE), chosen)
    return chosen


@compiled
def _ordered_delays(left, right, left_rows, right_rows, best, out):
    for pair in range(out.size):
        delay = right[right_rows[pair]] - left[left_rows[pair]]
        if best == LATEST or (best == NEAREST and delay < 0):
            delay = -delay
        out[pair] = delay


@compiled
def _least_of_each(offsets, keys, seconds, kept, kept_seconds, chosen):
    """`kept` and `kept_seconds` hold the least of an event as a heap, the greatest of them on top."""
    k = kept.size
    for event in range(offsets.size - 1):
        first, stop = offsets[event], offsets[event + 1]
        if stop - first <= k:
            chosen[first:stop] = True
            continue
        for place in range(k):
            kept[place] = keys[first + place]
            kept_seconds[place] = seconds[first + place]
        for place in range(k // 2 - 1, -1, -1):
            _sift(kept, kept_seconds, place, kept[place], kept_seconds[place])
        for pair in range(first + k, stop):
            key, second = keys[pair], seconds[pair]
            if key < kept[0] or (key == kept[0] and second < kept_seconds[0]):
                _sift(kept, kept_seconds, np.int64(0), key, second)
        for pair in range(first, stop):
            is_kept = keys[pair] == kept[0] and seconds[pair] <= kept_seconds[0]
            chosen[pair] = is_kept or keys[pair] < kept[0]


@compiled
def _sift(kept, kept_seconds, place, key, second):
    """Put a pair into a heap where there is room for it, or below, in place of those that are greater."""
    child = 2 * place + 1
    while child < kept.size:
        other = child + 1
        if other < kept.size and (
            kept[other] > kept[child]
            or (kept[other] == kept[child] and kept_seconds[other] > kept_seconds[child])
        ):
            child = other
        if key > kept[child] or (key == kept[child] and second >= kept_seconds[child]):
            break
        kept[place] = kept[child]
        kept_seconds[place] = kept_seconds[child]
        place, child = child, 2 * child + 1
    kept[place] = key
    kept_seconds[place] = second


@compiled
def _least_of_targets(targets, keys, seconds, least, least_seconds, chosen):
    for pair in range(keys.size):
        target = targets[pair]
        if keys[pair] < least[target]:
            least[target] = keys[pair]
            least_seconds[target] = seconds[pair]
        elif keys[pair] == least[target]:
            least_seconds[target] = min(least_seconds[target], seconds[pair])
    for pair in range(keys.size):
        target = targets[pair]
        is_least = keys[pair] == least[target]
        chosen[pair] = is_least and seconds[pair] == least_seconds[target]


class Groups(NamedTuple):
    """Pairs by the connected groups that they belong to: no pair leads from one group to another."""

    order: np.ndarray
    offsets: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sizes: np.ndarray


def connected_groups(left: np.ndarray, right: np.ndarray) -> Groups:
    """The connected groups of pairs."""
    from cpu_fallback.union_find import connect_pairs, flatten

    lefts, own = np.unique(left, return_inverse=True)
    rights, others = np.unique(right, return_inverse=True)
    n = lefts.size + rights.size
    parents = np.arange(n)
    connect_pairs(own, lefts.size + others, parents)
    flatten(parents)
    roots, labels = np.unique(parents, return_inverse=True)
    count = roots.size
    of_pair = labels[own]
    order = np.lexsort((others, own, of_pair))
    places, sizes = np.empty(n, np.int64), np.empty((count, 2), np.int64)
    for side, events in enumerate((np.arange(lefts.size), np.arange(lefts.size, n))):
        groups = labels[events]
        sizes[:, side] = np.bincount(groups, minlength=count)
        sorted_events = np.lexsort((events, groups))
        begins = np.cumsum(sizes[:, side]) - sizes[:, side]
        places[events[sorted_events]] = np.arange(events.size) - begins[groups[sorted_events]]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(of_pair, minlength=count))])
    return Groups(order, offsets, places[own[order]], places[lefts.size + others[order]], sizes)


def best_assignment(groups: Groups, gains: np.ndarray) -> np.ndarray:
    """The pairs of the assignment with the greatest sum of gains."""
    # Where there are several, it is one that follows from the order of the events.
    from cpu_fallback.join.assignment import greatest_assignment

    ordered = gains[groups.order]
    chosen = np.zeros(ordered.size, bool)
    is_star = groups.sizes.min(axis=1) == 1
    _choose_of_stars(groups, is_star, ordered, chosen)
    for group in np.flatnonzero(~is_star):
        pairs = slice(groups.offsets[group], groups.offsets[group + 1])
        left, right = groups.left[pairs], groups.right[pairs]
        table = np.zeros(groups.sizes[group])
        table[left, right] = ordered[pairs]
        # What is no pair has no gain, and no number either.
        chosen[pairs] = greatest_assignment(table)[left] == right
    return groups.order[chosen]


def _choose_of_stars(
    groups: Groups, is_star: np.ndarray, gains: np.ndarray, chosen: np.ndarray
) -> None:
    """Groups of one event with its matches, as most groups are: its best pair."""
    of_pair = np.repeat(np.arange(is_star.size), np.diff(groups.offsets))
    pairs = np.flatnonzero(is_star[of_pair])
    by_gain = pairs[np.lexsort((pairs, -gains[pairs], of_pair[pairs]))]
    owners = of_pair[by_gain]
    first = np.ones(owners.size, bool)
    first[1:] = owners[1:] != owners[:-1]
    chosen[by_gain[first]] = True
