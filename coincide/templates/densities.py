"""Templates from any density that has a distribution function, to a stated error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from coincide.errors import ConditionError, DataError, brief
from coincide.options import check_count
from coincide.templates.fitting import TemplateFit, fitted_to_density
from coincide.templates.given import GivenTemplate, Templates
from coincide.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, unit_name

_TAIL_SHARE = 1 / 8
"""Of the error: what each tail that is cut off may take."""


def templates_from_densities(
    densities: Mapping[str, Any],
    *,
    unit: str,
    error: float = 0.01,
    tick: str = "us",
    delays: bool = True,
    most: int = 256,
) -> TemplateFit:
    """Histograms of densities: Gaussians, gammas, mixtures, whatever has a distribution function.

    Lee & Lee (2010) leave Gaussian timestamps to the future: they are templates like any others.

    Parameters
    ----------
    densities : mapping of str to distribution
        By template id. A distribution has ``cdf`` and ``ppf``, as those that SciPy freezes
        (``scipy.stats.gamma(2, scale=3)``), or ``cdf`` and ``inv_cdf``, as `statistics.NormalDist`.
    unit : str
        Of the densities' numbers, such as ``"ms"``.
    error : float
        Most by which the probability of a pair may be off because of a template; the errors of both
        sides add.
    tick : str
        Unit in which edges are whole numbers: that of the time columns, or a coarser one.
    delays : bool
        Whether the densities are of delays of detection; else of times, of which the end of the
        support comes to lie at an event's time.
    most : int
        Upper limit on the buckets of a template.

    Returns
    -------
    TemplateFit
        With the largest possible error of each template.

    Raises
    ------
    ConditionError
        If the error cannot be reached, or a distribution lacks a function.

    Examples
    --------
    >>> from statistics import NormalDist
    >>> fit = templates_from_densities({"a": NormalDist(40, 10)}, unit="ms", error=0.01)
    >>> fit.error["a"] <= 0.01
    True
    """
    if not isinstance(error, Real) or not 0.0 < error < 1.0:
        raise ConditionError(f"error must lie between 0 and 1; found {brief(error)}")
    check_count("most", most)
    if not isinstance(densities, Mapping):
        raise ConditionError(
            f"densities must be a mapping from ids to distributions; found {brief(densities)}"
        )
    if not densities:
        raise DataError("there is no density; give at least one")
    scale = NANOSECONDS_PER_UNIT[unit_name(unit)] / NANOSECONDS_PER_UNIT[unit_name(tick)]
    given, distance = {}, {}
    for key, density in densities.items():
        name = str(key)
        if name in given:
            raise DataError(f"the template {brief(name)} is there twice; give each density one id")
        quantile = _quantile_function(name, density)
        tail = error / 2 * _TAIL_SHARE
        ends = _ends(name, quantile, tail)
        if not all(abs(end) * scale < TIME_LIMIT // 2 for end in ends):  # NaN is not either
            raise ConditionError(
                f"density {brief(name)} reaches from {ends[0]:g} to {ends[1]:g} {unit}; its ends must be"
                f" finite and below 2^60 {tick}"
            )
        edges, masses, distance[name] = fitted_to_density(
            _of_arrays(name, density.cdf), *ends, scale, error, most
        )
        given[name] = GivenTemplate(tuple(edges), tuple(masses), delays)
    return TemplateFit(
        Templates(given, tick),
        {},
        distance,
        {name: 2 * value for name, value in distance.items()},
    )


def _ends(name: str, quantile: Callable[[float], Any], tail: float) -> tuple[float, float]:
    """Where a density begins and ends, all but its tails."""
    try:
        return float(quantile(tail)), float(quantile(1.0 - tail))
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConditionError(f"density {brief(name)} has no quantiles: {error}") from error


def _quantile_function(name: str, density: Any) -> Callable[[float], Any]:
    found = getattr(density, "ppf", None) or getattr(density, "inv_cdf", None)
    if found is None or not hasattr(density, "cdf"):
        raise ConditionError(
            f"density {brief(name)} must have cdf and ppf (or inv_cdf), as SciPy's frozen distributions;"
            f" found a {type(density).__name__}"
        )
    return found


def _of_arrays(name: str, cdf: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    """A distribution function of arrays: Python's own take one number at a time."""

    def over(points: np.ndarray) -> np.ndarray:
        try:
            found = np.asarray(cdf(points), np.float64)
        except (TypeError, ValueError):
            found = _one_by_one(name, cdf, points)
        if np.isnan(found).any():
            at = points[np.isnan(found)][0]
            raise ConditionError(f"density {brief(name)}: its cdf is NaN at {at:g}")
        return found

    return over


def _one_by_one(name: str, cdf: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    try:
        return np.array([cdf(point) for point in points.tolist()], np.float64)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConditionError(f"density {brief(name)}: its cdf fails: {error}") from error
