"""What is known of events before they are joined: weighted samples, and how far pairs reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coincide.bands import OUTER_HI, OUTER_LO
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT
from spark_plugin.worker.timestamps.models import Bounds


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
    """A pair can qualify only if first <= D <= last, D the difference of doubled midpoints of supports.

    Parameters
    ----------
    first, last : int
        Half ticks.
    left, right : (int, int)
        Smallest and largest shapes of the events of each side for which it holds.
    """

    first: int
    last: int
    left: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, pairs: Bounds, left: tuple[int, int], right: tuple[int, int]) -> Reach:
        """Of events whose smallest and largest shapes are given by side."""
        classes = ShapeClasses.one(*left), ShapeClasses.one(*right)
        bands = pairs.bands(LEFT, *classes)[0, 0]
        return cls(int(bands[OUTER_LO]), int(bands[OUTER_HI]), left, right)

    @property
    def reversed(self) -> Reach:
        """Of the difference the other way round."""
        return Reach(-self.last, -self.first, self.right, self.left)


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
    n = base.hashes.size
    keys = np.unique(np.concatenate([base.hashes, targets.hashes]), return_inverse=True)[1]
    ticks = np.unique(targets.midpoints)

    def places(
        key: np.ndarray, midpoints: np.ndarray, side: Literal["left", "right"]
    ) -> np.ndarray:
        """One number that is ascending by key, then by time."""
        return key * (ticks.size + 1) + np.searchsorted(ticks, midpoints, side=side)

    there = places(keys[n:], targets.midpoints, "left")
    order = np.argsort(there, kind="stable")
    cumulated = np.concatenate([[0.0], np.cumsum(targets.weights[order])])
    first = places(keys[:n], shifted(base.midpoints, reach.first), "left")
    last = places(keys[:n], shifted(base.midpoints, reach.last), "right")
    ends = np.searchsorted(there[order], np.stack([first, last]))
    # Of a reach that nothing is in, the ends are the wrong way round.
    return np.maximum(cumulated[ends[1]] - cumulated[ends[0]], 0.0)


def shifted(values: np.ndarray, by: int) -> np.ndarray:
    """``values + by``, held at the ends of int64: beyond every midpoint."""
    ends = np.iinfo(np.int64)
    step = min(max(by, ends.min), ends.max)
    if by != step:  # a window of all time is further than int64 tells
        return shifted(shifted(values, step), by - step)
    if by >= 0:
        return np.where(values > ends.max - by, ends.max, values + np.int64(by))
    return np.where(values < ends.min - by, ends.min, values + np.int64(by))


def weight_between(sample: Sample, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Events from `first` to `last`, both included, estimated: float64 array, shape as theirs."""
    cumulated = np.concatenate([[0.0], np.cumsum(sample.weights)])
    above = np.searchsorted(sample.midpoints, last, side="right")
    below = np.searchsorted(sample.midpoints, first, side="left")
    return np.maximum(cumulated[above] - cumulated[below], 0.0)
