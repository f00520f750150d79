"""How many length classes to use: scanning a class costs time, and so does probing a wide shell."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np

from coincide.model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO
from coincide.model.classes import ShapeClasses, class_ends, length_sample
from coincide.model.sides import LEFT, RIGHT

LEFT_CHOICES = (1, 2, 4, 8)
RIGHT_CHOICES = (1, 2, 4, 8, 16)
_SAMPLED_KEYS = 512
_TARGETS = 1 << 16


class Costs(NamedTuple):
    """What a join does, in nanoseconds on one core."""

    scan: float = 6.0  # Placing one base event by one cursor
    step: float = 3.6  # One step of one cursor over one target
    probe: float = 6.6  # Evaluating one candidate
    opening: float = 140.0  # Setting the cursors of one pair of classes at the start of a group


INTERVAL_COSTS = Costs()
"""Fitted by `python -m bench run classes`."""
_MOST_STEPS = 8.0
"""Steps for one base event and cursor beyond which a search takes their place."""


def amounts(
    bands: np.ndarray, probes: float, targets: float, groups: float
) -> tuple[float, float, float, float]:
    """How often each cost arises for one base event: scans, steps, probes, openings."""
    k1, k2 = bands.shape[:2]
    # Where a shell is empty its two ends are one cursor.
    cursors = 2.0 + np.mean(bands[:, :, INNER_LO] != bands[:, :, OUTER_LO])
    cursors += np.mean(bands[:, :, INNER_HI] != bands[:, :, OUTER_HI])
    return _amounts(k1, k2, cursors, probes, targets, groups)


def _amounts(
    k1: int, k2: int, cursors: float, probes: float, targets: float, groups: float
) -> tuple[float, float, float, float]:
    steps = min(k1 * targets, _MOST_STEPS * k2)
    return cursors * k2, cursors * steps, probes, k1 * k2 * groups


class Population(Protocol):
    """Events of one side, wherever their arrays are."""

    @property
    def size(self) -> int:
        """Number of events."""

    def keys_apart(self, stride: int) -> np.ndarray:
        """One in this many of the sorted keys, from the first: int64 array, half ticks."""

    def shape_sample(self) -> np.ndarray:
        """As `coincide.model.classes.length_sample`, of the shapes in the keys' order."""

    def classes_between(self, highest: np.ndarray) -> ShapeClasses:
        """As `ShapeClasses.between`."""

    def group_shares(self, groups: int) -> np.ndarray | None:
        """Fraction of the events in each group: float64 array, shape (groups,); None: one group."""


class HostPopulation(NamedTuple):
    """A `Population` of NumPy arrays."""

    keys: np.ndarray  # int64, shape (n,): keys, ascending, half ticks
    shapes: np.ndarray  # int64, shape (n,): shapes in the same order
    group: np.ndarray | None  # int64, shape (n,), or None

    @property
    def size(self) -> int:
        """As `Population`; so are the methods."""
        return self.shapes.size

    def keys_apart(self, stride: int) -> np.ndarray:  # noqa: D102
        return self.keys[::stride]

    def shape_sample(self) -> np.ndarray:  # noqa: D102
        return length_sample(self.shapes)

    def classes_between(self, highest: np.ndarray) -> ShapeClasses:  # noqa: D102
        return ShapeClasses.between(self.shapes, highest)

    def group_shares(self, groups: int) -> np.ndarray | None:  # noqa: D102
        if self.group is None:
            return None
        # Those of no group are counted first, and left off: a mask would take longer.
        return (
            np.bincount(np.maximum(self.group, -1) + 1, minlength=groups + 1)[1:] / self.group.size
        )


Bands = Callable[[ShapeClasses, ShapeClasses], np.ndarray]
"""Bounds on the difference of keys by the classes of both sides."""


def choose_classes(
    left: Population,
    right: Population,
    groups: int,
    ends: tuple[int, int],
    bands: Bands,
    classes: int | None,
) -> tuple[ShapeClasses, ShapeClasses]:
    """Classes of lengths of both sides; the cheapest by estimate if `classes` is None.

    `ends`: how far before and after a left event, ticks, a right one may end and begin.
    """
    if classes is not None or not left.size or not right.size:
        return _at_most(left, classes or 1), _at_most(right, classes or 1)
    samples = left.shape_sample(), right.shape_sample()
    if all(sample.min() == sample.max() for sample in samples):  # for example those of exact times
        own, others = (ShapeClasses.one(int(each[0]), int(each[0])) for each in samples)
        return own, others
    longest = sum(int(sample.max()) for sample in samples)
    return cheapest_classes(
        left, right, groups, INTERVAL_COSTS,
        lambda side, sample, mosts: class_ends(sample, mosts),
        bands, (2 * ends[0] - longest - 1, 2 * ends[1] + longest + 1),
    )  # fmt: skip


def cheapest_classes(
    left: Population,
    right: Population,
    groups: int,
    costs: Costs,
    ends: Callable[[int, np.ndarray, tuple[int, ...]], list[np.ndarray]],
    bands: Bands,
    outer: tuple[int, int],
) -> tuple[ShapeClasses, ShapeClasses]:
    """The classes of both sides that cost least, by estimate."""
    samples = left.shape_sample(), right.shape_sample()
    lefts = _choices(samples[LEFT], ends(LEFT, samples[LEFT], LEFT_CHOICES))
    rights = _choices(samples[RIGHT], ends(RIGHT, samples[RIGHT], RIGHT_CHOICES))
    density = _targets_per_half_tick(left, right, groups, outer)
    bases = left.size
    per_base = right.size / bases

    def cost(k1: ShapeClasses, k2: ShapeClasses) -> float:
        table = bands(k1, k2)
        widths = table.astype(np.float64)
        shell = widths[:, :, OUTER_HI] - widths[:, :, OUTER_LO]
        shell -= widths[:, :, INNER_HI] - widths[:, :, INNER_LO]
        probes = density * float(k1.share @ shell @ k2.share)
        return float(np.dot(costs, amounts(table, probes, per_base, groups / bases)))

    def least(k1: ShapeClasses, k2: ShapeClasses) -> float:
        """What these classes cost if they leave nothing to probe: no bands are needed to know it."""
        return float(
            np.dot(costs, _amounts(k1.count, k2.count, 2.0, 0.0, per_base, groups / bases))
        )

    best, chosen = np.inf, (lefts[0], rights[0])
    for pair in product(lefts, rights):
        if least(*pair) < best and (own := cost(*pair)) < best:
            best, chosen = own, pair
    k1, k2 = chosen
    return left.classes_between(k1.highest), right.classes_between(k2.highest)


def _at_most(population: Population, most: int) -> ShapeClasses:
    if population.size == 0:
        return ShapeClasses.one(0, 0)
    if most == 1:  # nothing to weigh: of the small joins of streams, weighing is most of the work
        return population.classes_between(population.shape_sample().max()[None])
    return population.classes_between(class_ends(population.shape_sample(), [most])[0])


def _choices(sample: np.ndarray, ends: list[np.ndarray]) -> list[ShapeClasses]:
    """One choice per number of classes: few distinct shapes give the same classes again."""
    choices = [ShapeClasses.between(sample, highest) for highest in ends]
    return list({choice.count: choice for choice in choices}.values())


def strides_of_keys(left: int, right: int) -> tuple[int, int]:
    """The strides of the keys that are asked for, of sides of these sizes: `Population.keys_apart`."""
    return max(1, left // _SAMPLED_KEYS), max(1, right // _TARGETS)


def _targets_per_half_tick(
    left: Population, right: Population, groups: int, outer: tuple[int, int]
) -> float:
    """Mean density of matches around a base event, per unit of D, from a sample of base events."""
    # As floats: sums with a window cannot overflow.
    own, stride = strides_of_keys(left.size, right.size)
    base = left.keys_apart(own).astype(np.float64)
    # Targets at equal steps, in order, stand for all: enough for a mean.
    few = right.keys_apart(stride).astype(np.float64)
    near = stride * (np.searchsorted(few, base + outer[1]) - np.searchsorted(few, base + outer[0]))
    share = _same_group_share(left, right, groups)
    return float(near.mean()) / max(float(outer[1] - outer[0]), 1.0) * share


def _same_group_share(left: Population, right: Population, groups: int) -> float:
    """Chance that a left and a right event have the same group."""
    shares = left.group_shares(groups), right.group_shares(groups)
    if shares[0] is None or shares[1] is None:
        return 1.0
    return float(shares[0] @ shares[1])
