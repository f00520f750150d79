"""Objects that move in a city of 15 x 15 km: what stands in for the data of the BMQ paper's section 7.2.

The paper takes Brinkhoff's generator on the roads of Oldenburg, which is not here. Instead objects go
straight from one random place to the next (a random waypoint model), at a speed that is drawn anew for
every period between readings; its mean and its maximum are the paper's. Metres and seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench.borders import Ranges, Walks, kinds_of

SIDE = 15_000.0
PERIOD = 30.0


@dataclass(frozen=True)
class Objects:
    """Moving objects of one kind; of their speeds the mean and the most."""

    mean_kmh: float
    most_kmh: float
    objects: int = 1000
    readings: int = 100  # each object's, every 30 seconds

    def walks(self) -> Walks:
        """The objects, seeded."""
        rng = np.random.default_rng(5)
        share = self.mean_kmh / self.most_kmh
        # A beta distribution with that mean.
        speeds = rng.beta(2, 2 / share - 2, (self.objects, self.readings)) * self.most_kmh / 3.6
        way = np.cumsum(speeds * PERIOD, axis=1)
        furthest = float(way.max())
        # Places are half a side apart on average, and more.
        places = rng.uniform(0, SIDE, (self.objects, 8 + int(4 * furthest / SIDE), 2))
        legs = np.hypot(*np.moveaxis(np.diff(places, axis=1), 2, 0))
        knots = np.concatenate([np.zeros((self.objects, 1)), np.cumsum(legs, axis=1)], axis=1)
        values = between(knots, places, way)
        return Walks(values.reshape(-1, 2), kinds_of(self.objects, self.readings))


FAST, SLOW = Objects(20.0, 60.0), Objects(4.3, 12.0)


def between(knots: np.ndarray, places: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Where objects are, shape (objects, n, 2), on straight lines between places, of times or ways `at`."""
    assert (at[:, -1] <= knots[:, -1]).all(), "they move on"
    # All objects on one axis, each behind the one before.
    room = 1.0 + max(float(knots.max()), float(at.max()))
    origins = room * np.arange(knots.shape[0])[:, np.newaxis]
    axis, sought = (knots + origins).ravel(), (at + origins).ravel()
    each = [np.interp(sought, axis, places[:, :, k].ravel()) for k in range(2)]
    return np.stack(each, axis=1).reshape(*at.shape, 2)


def squares(queries: int, width: float) -> Ranges:
    """Squares whose centres are normal around the middle of the city, with a deviation of a sixth of it."""
    centres = np.random.default_rng(6).normal(SIDE / 2, SIDE / 6, (queries, 2))
    return Ranges(centres - width / 2, centres + width / 2)
