"""How probable a peak of a correlogram is by chance."""

from __future__ import annotations

import math

import numpy as np

from coincide.model.compiled import compiled

_EULER = 0.5772156649
_LEAST_SCALE = 1.0
"""The scale of extremes of Poisson counts, in units of half a deviance: no block falls off faster."""


@compiled(forceinline=True)
def deviance(n: float, expected: float) -> float:
    """Twice the log likelihood ratio of n counts against those expected, 0 where there are fewer."""
    return 2.0 * (n * math.log(n / expected) - (n - expected)) if n > expected else 0.0


def log_chance_of_trials(peak: float, trials: float) -> float:
    """The log of the chance that one of many Poisson counts has at least a deviance."""
    return -peak / 2 + math.log(trials)


def log_chance_of_extremes(peak: float, maxima: np.ndarray, trials: float = 1.0) -> float:
    """The same, of the largest deviances of stretches in which chance alone is at work."""
    # Half a deviance has an exponential tail, so its maxima have Gumbel's distribution, whose scale
    # and place follow from their moments. Few maxima tell the scale badly: it is taken to be larger.
    halves = maxima / 2
    unsure = 1 + 1 / math.sqrt(maxima.size)
    scale = unsure * max(float(halves.std()) * math.sqrt(6) / math.pi, _LEAST_SCALE)
    place = float(halves.mean()) - _EULER * scale
    return -(peak / 2 - place) / scale + math.log(trials)
