"""What is known of events before they are joined: weighted samples, and how far pairs reach."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Sample:
    """A weighted sample of one side, ascending by midpoint.

    Parameters
    ----------
    midpoints : int64 array
        Doubled midpoints, half ticks.
    weights : float64 array
        Events for which each sample stands.
    hashes : int64 array
        Hash of the keys, 0 without keys.
    rows : int
        Events on the side.
    """

    midpoints: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray
    rows: int


@dataclass(frozen=True)
class Reach:
    """A pair can qualify only if first <= D <= last, D the difference of doubled midpoints."""

    first: int
    last: int

    @property
    def reversed(self) -> Reach:
        """Of the difference the other way round."""
        return Reach(-self.last, -self.first)


def expected_partners(base: Sample, targets: Sample, reach: Reach) -> np.ndarray:
    """Targets of the same keys that each event of a base sample can reach, estimated.

    Parameters
    ----------
    base, targets : Sample
    reach : Reach
        Of D = midpoint of the target - midpoint of the base event.

    Returns
    -------
    float64 array, shape (samples of the base,)
    """
    partners = np.zeros(base.midpoints.size)
    # One pass per distinct key would be slow; heavy keys are those that the sample shows often.
    for key in _frequent(base.hashes):
        mine, theirs = base.hashes == key, targets.hashes == key
        partners[mine] = _weight_between(
            targets.midpoints[theirs], targets.weights[theirs], base.midpoints[mine], reach
        )
    return partners


def shifted(values: np.ndarray, by: int) -> np.ndarray:
    """``values + by``, held at the ends of int64: beyond every midpoint."""
    ends = np.iinfo(np.int64)
    if by >= 0:
        return np.where(values > ends.max - by, ends.max, values + np.int64(by))
    return np.where(values < ends.min - by, ends.min, values + np.int64(by))


def _frequent(hashes: np.ndarray, most: int = 64) -> np.ndarray:
    """The hashes that occur most often."""
    values, counts = np.unique(hashes, return_counts=True)
    return values[np.argsort(-counts, kind="stable")[:most]]


def _weight_between(
    midpoints: np.ndarray, weights: np.ndarray, base: np.ndarray, reach: Reach
) -> np.ndarray:
    """Weight of the sorted midpoints within reach of each base midpoint."""
    cumulated = np.concatenate([[0.0], np.cumsum(weights)])
    last = np.searchsorted(midpoints, shifted(base, reach.last), side="right")
    first = np.searchsorted(midpoints, shifted(base, reach.first), side="left")
    return cumulated[last] - cumulated[first]
