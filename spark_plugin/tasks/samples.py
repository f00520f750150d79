"""What is known of events before they are joined: weighted samples, and how far pairs reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from coincide.engine.events.timestamps import Bounds
from coincide.model.bands import OUTER_HI, OUTER_LO
from coincide.model.classes import ShapeClasses
from coincide.model.sides import LEFT

_MOST_STEPS = 24
FARTHEST = 2**62
"""No doubled midpoint lies further out."""
_NONE = np.empty(0, np.int64)
_ENDS = np.iinfo(np.int64)


@dataclass(frozen=True, eq=False)
class Sample:
    """A weighted sample of one side, ascending by midpoint."""

    midpoints: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray
    rows: int
    shapes: np.ndarray = field(default_factory=lambda: _NONE)

    def of_shapes(self, lowest: int, highest: int) -> Sample:
        """Events of shapes from one to another."""
        rows = np.flatnonzero((self.shapes >= lowest) & (self.shapes <= highest))
        weights = self.weights[rows]
        return Sample(
            self.midpoints[rows], weights, self.hashes[rows], int(weights.sum()), self.shapes[rows]
        )


class Step(NamedTuple):
    """How far right events of some shapes reach: `first` and `last` as in `Reach`."""

    lowest: int
    highest: int
    first: int
    last: int


@dataclass(frozen=True)
class Reach:
    """A pair can qualify only if first <= D <= last, D the difference of doubled midpoints of supports."""

    first: int
    last: int
    left: tuple[int, int] = (0, 0)
    right: tuple[int, int] = (0, 0)
    own: tuple[Step, ...] = ()

    @classmethod
    def of(
        cls,
        pairs: Bounds,
        left: tuple[int, int],
        right: tuple[int, int],
        useful: tuple[int, int] | None = None,
    ) -> Reach:
        """The reach of events whose smallest and largest shapes are given by side."""
        sides = _useful((left, right), useful)
        bands = pairs.bands(LEFT, *(ShapeClasses.one(*side) for side in sides))[0, 0]
        first, last = int(bands[OUTER_LO]), int(bands[OUTER_HI])
        if useful is not None and (left[0] > useful[0] or right[0] > useful[1]):
            first, last = 1, 0  # no event of a side can be of a pair
        return cls(first, last, left, right)

    def by_shape(self, pairs: Bounds, useful: tuple[int, int], *, are_lengths: bool) -> Reach:
        """The same, right events by their own shapes, which are lengths or numbers of templates."""
        left, right = _useful((self.left, self.right), useful)
        classes = _classes(*right) if are_lengths else ShapeClasses.even(*right, _MOST_STEPS)
        bands = pairs.bands(LEFT, ShapeClasses.one(*left), classes)[0]
        steps = [
            Step(int(low), int(high), int(band[OUTER_LO]), int(band[OUTER_HI]))
            for low, high, band in zip(classes.lowest, classes.highest, bands, strict=True)
        ]
        if right[1] < self.right[1]:  # no pair has these
            steps.append(Step(right[1] + 1, self.right[1], 1, 0))
        return replace(self, own=tuple(steps))

    @property
    def steps(self) -> tuple[Step, ...]:
        """`own`; of a reach that nothing is in, one step; of any other that is the same for all, none."""
        if self.own or self.first <= self.last:
            return self.own
        return (Step(*self.right, self.first, self.last),)

    @property
    def middle(self) -> int:
        """Half ticks."""
        return (self.first + self.last) // 2

    def of_right(self, midpoints: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Earliest and latest midpoints of left events that right ones reach; for none, swapped."""
        # For an unforeseen shape it is one midpoint: so the event comes to a task, which refuses it.
        if not self.steps:
            return shifted(midpoints, -self.last), shifted(midpoints, -self.first)
        highest = np.array([step.highest for step in self.steps])
        of_step = np.searchsorted(highest, shapes)
        is_foreseen = shapes >= self.steps[0].lowest
        of_step = np.where(is_foreseen, of_step, highest.size)
        moves = [(step.first, step.last) for step in self.steps] + [(self.middle, self.middle)]
        latest, earliest = (
            _moved(midpoints, [-end for end in ends], of_step) for ends in zip(*moves, strict=True)
        )
        is_empty = np.array([first > last for first, last in moves])[of_step]
        return np.where(is_empty, _ENDS.max, earliest), np.where(is_empty, _ENDS.min, latest)

    @property
    def reversed(self) -> Reach:
        """The reach of the difference the other way round."""
        return Reach(-self.last, -self.first, self.right, self.left)


def _moved(midpoints: np.ndarray, by: Sequence[int], choice: np.ndarray) -> np.ndarray:
    """Midpoints, each moved by a choice of these; by what could overflow, beyond all others."""
    is_far = np.array([abs(each) > FARTHEST for each in by])
    steps = [0 if abs(each) > FARTHEST else each for each in by]
    moved = midpoints + np.array(steps, np.int64)[choice]
    if is_far.any():
        ends = np.array([_ENDS.max if each > 0 else _ENDS.min for each in by])
        moved = np.where(is_far[choice], ends[choice], moved)
    return moved


def _useful(
    sides: tuple[tuple[int, int], tuple[int, int]], useful: tuple[int, int] | None
) -> list[tuple[int, int]]:
    """Smallest and largest shapes of the events that can be of a pair; of none, the smallest one."""
    if useful is None:
        return list(sides)
    return [
        (low, max(low, min(high, most))) for (low, high), most in zip(sides, useful, strict=True)
    ]


def lengths_between(shortest: int, longest: int) -> np.ndarray:
    """Some lengths from one to the other, each about as many times as long as the last: int64 array."""
    ends = np.geomspace(max(shortest, 1), max(longest, 1), _MOST_STEPS)
    between = np.clip(ends.astype(np.int64), shortest, longest)
    return np.unique(np.concatenate([[shortest, longest], between]))


def _classes(shortest: int, longest: int) -> ShapeClasses:
    """Classes of lengths, each about as many times as long as the one before."""
    highest = lengths_between(shortest, longest)
    lowest = np.append(shortest, highest[:-1] + 1)
    return ShapeClasses(lowest, highest, np.full(highest.size, 1 / highest.size))


def expected_matches(base: Sample, targets: Sample, reach: Reach) -> np.ndarray:
    """Targets of the same keys that each event of a base sample can reach, estimated."""
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
    # The ends of a reach that nothing is in are the wrong way round.
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
