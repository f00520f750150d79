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
    """Sensors at random places of the unit square, around the one that they report to.

    Parameters
    ----------
    period : float
        Mean seconds between two readings of a sensor: lambda_1.
    delay : float
        Mean seconds of a hop: lambda_2. A reading takes as many hops as its sensor's distance needs.
    propagation, tolerance : float
        t_p and delta_P, seconds: an effect comes more than t_p and less than t_p + delta_P after its cause.
    radius : float
        Cause and effect are nearer than this.
    sensors, readings : int
        Readings of each sensor.
    """

    period: float = 0.5
    delay: float = 0.2
    propagation: float = 0.6
    tolerance: float = 0.3
    radius: float = 0.2
    sensors: int = 100
    readings: int = 1000

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
