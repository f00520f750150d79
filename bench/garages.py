"""Cars that park in a city's garages for a while: the scenario of the BMQ paper's section 6.

The paper simulates a million cars in a part of Seoul. Here cars go straight from one garage to another
at 20 km/h, park for five minutes on average, and tell their position every 30 seconds; a garage is
a query of 30 x 30 m. Metres and seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.moving import PERIOD, SIDE, between

GARAGE = 30.0
_SPEED = 20 / 3.6
_STAY = 300.0


@dataclass(frozen=True)
class Garages:
    """A city with garages and cars."""

    cars: int = 20_000
    garages: int = 200
    readings: int = 240  # each car's

    @property
    def seconds(self) -> float:
        """How long the cars are watched."""
        return self.readings * PERIOD

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Readings (stream_id, time in ms, x, y) and queries (query_id, lower_x, ...), seeded."""
        rng = np.random.default_rng(7)
        centres = rng.uniform(GARAGE, SIDE - GARAGE, (self.garages, 2))
        times = rng.uniform(0, PERIOD, (self.cars, 1)) + PERIOD * np.arange(self.readings)
        values = self._values(rng, centres, times)
        readings = pa.table(
            {
                "stream_id": np.repeat(np.arange(self.cars), self.readings),
                "time": (1000 * times).astype(np.int64).ravel(),
                "x": values[..., 0].ravel(),
                "y": values[..., 1].ravel(),
            }
        )
        ends = {"lower": centres - GARAGE / 2, "upper": centres + GARAGE / 2}
        borders = {f"{end}_{'xy'[k]}": at[:, k] for end, at in ends.items() for k in range(2)}
        return readings, pa.table({"query_id": range(self.garages), **borders})

    def _values(
        self, rng: np.random.Generator, centres: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        # Arrive, stay, leave: each visit is two knots at one place. Most take half an hour.
        visits = 16 + int(self.seconds / _STAY)
        chosen = rng.integers(0, self.garages, (self.cars, visits))
        places = centres[chosen]
        ways = np.hypot(*np.moveaxis(np.diff(places, axis=1), 2, 0)) / _SPEED
        stays = rng.exponential(_STAY, (self.cars, visits))
        durations = np.empty((self.cars, 2 * visits - 1))
        durations[:, ::2], durations[:, 1::2] = stays, ways
        knots = np.concatenate([np.zeros((self.cars, 1)), np.cumsum(durations, axis=1)], axis=1)
        # Cars are on their way when the watch begins.
        begin = rng.uniform(0, 2 * SIDE / _SPEED, (self.cars, 1))
        return between(knots, np.repeat(places, 2, axis=1), begin + times)


def accesses(rate: float, window: float, buckets: float, selectivity: float) -> float:
    """Accesses a second of Tran-Seq (Figure 9): λe (2 + (t λe / (2 |B|) + 2 σw) + 2), λe the rate."""
    return rate * (2 + (window * rate / (2 * buckets) + 2 * selectivity) + 2)
