"""Streams of sensors whose readings travel some hops: section 5.1 of Kwon & Li (2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

HOME = (0.5, 0.5)
HOP = 0.1
"""How far a hop carries. The paper does not say."""

SECOND = 1_000_000
"""Ticks."""


class SensorStream(NamedTuple):
    """Tuples in order of arrival: valid times and times of arrival, ticks; places, shape (2, n)."""

    times: np.ndarray
    arrivals: np.ndarray
    places: np.ndarray


@dataclass(frozen=True)
class SensorLoad:
    """Sensors at random places of the unit square, around the one that they report to."""

    period: float = 0.5  # mean seconds between two readings of a sensor: lambda_1
    # Mean seconds of a hop: lambda_2; how many there are follows from the distance.
    delay: float = 0.2
    propagation: float = 0.6  # t_p, seconds: an effect comes later than that after its cause
    tolerance: float = 0.3  # delta_P, seconds: and earlier than t_p + delta_P
    radius: float = 0.2  # cause and effect are nearer than this
    sensors: int = 100
    readings: int = 1000  # each sensor's

    def stream(self, seed: int) -> SensorStream:
        """The readings, in order of arrival."""
        random = np.random.default_rng(seed)
        places = random.random((2, self.sensors))
        shape = self.sensors, self.readings
        times = np.cumsum(random.exponential(self.period, shape), axis=1)
        apart = np.hypot(places[0] - HOME[0], places[1] - HOME[1])
        hops = np.maximum(1, np.ceil(apart / HOP))
        delays = random.gamma(np.repeat(hops[:, None], self.readings, axis=1), self.delay)
        arrivals = (times + delays).ravel()
        order = np.argsort(arrivals, kind="stable")
        ticks = [
            np.rint(SECOND * each[order]).astype(np.int64) for each in (times.ravel(), arrivals)
        ]
        return SensorStream(*ticks, places[:, order // self.readings])
