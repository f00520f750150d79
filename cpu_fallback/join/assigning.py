"""One-to-one assignments: of all pairs at most one for each event, as good as they can be together.

SciPy is loaded by what needs it: every worker of a join imports this module.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Groups(NamedTuple):
    """Pairs by the connected groups that they are of: no pair leads from one group to another.

    Parameters
    ----------
    order : int64 array, shape (pairs,)
        Numbers of the pairs, those of a group together.
    offsets : int64 array, shape (groups + 1,)
        Where the pairs of each group begin, in that order.
    left, right : int64 arrays, shape (pairs,)
        In that order, the how-many-eth event of its group each is, from 0.
    sizes : int64 array, shape (groups, 2)
        Left and right events of each group.
    """

    order: np.ndarray
    offsets: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sizes: np.ndarray


def connected_groups(left: np.ndarray, right: np.ndarray) -> Groups:
    """The connected groups of pairs.

    Parameters
    ----------
    left, right : int64 arrays, shape (pairs,), not negative
        What stands for the events of each pair. Events of a group keep their order by it.

    Returns
    -------
    Groups
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    lefts, own = np.unique(left, return_inverse=True)
    rights, others = np.unique(right, return_inverse=True)
    n = lefts.size + rights.size
    links = coo_matrix((np.ones(left.size, np.int8), (own, lefts.size + others)), shape=(n, n))
    count, labels = connected_components(links, directed=False)
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
    """The pairs of the assignment with the greatest sum of gains.

    Of several such it is one that follows from the order of the events.

    Parameters
    ----------
    groups : Groups
    gains : float64 array, shape (pairs,), positive
        Of each pair, in the order of its number. Sums are exact of whole numbers below 2^53.

    Returns
    -------
    int64 array
        Numbers of pairs.
    """
    from scipy.optimize import linear_sum_assignment

    ordered = gains[groups.order]
    chosen = np.zeros(ordered.size, bool)
    is_star = groups.sizes.min(axis=1) == 1
    _choose_of_stars(groups, is_star, ordered, chosen)
    for group in np.flatnonzero(~is_star):
        pairs = slice(groups.offsets[group], groups.offsets[group + 1])
        left, right = groups.left[pairs], groups.right[pairs]
        table = np.zeros(groups.sizes[group])
        table[left, right] = ordered[pairs]
        partners = np.full(table.shape[0], -1)
        rows, columns = linear_sum_assignment(table, maximize=True)
        partners[rows] = columns
        # What is no pair has no gain, and no number either.
        chosen[pairs] = partners[left] == right
    return groups.order[chosen]


def _choose_of_stars(
    groups: Groups, is_star: np.ndarray, gains: np.ndarray, chosen: np.ndarray
) -> None:
    """Groups of one event with its partners, of which most groups are: its best pair."""
    of_pair = np.repeat(np.arange(is_star.size), np.diff(groups.offsets))
    pairs = np.flatnonzero(is_star[of_pair])
    by_gain = pairs[np.lexsort((pairs, -gains[pairs], of_pair[pairs]))]
    owners = of_pair[by_gain]
    first = np.ones(owners.size, bool)
    first[1:] = owners[1:] != owners[:-1]
    chosen[by_gain[first]] = True
