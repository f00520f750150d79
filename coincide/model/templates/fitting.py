"""Templates from measured delays and from densities, and how good they are."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from coincide.model.errors import ConditionError, DataError, argument, brief
from coincide.model.options import check_choice, check_count, check_truth
from coincide.model.templates.template import GivenTemplate, Templates
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, unit_name

_FEWEST_PER_BUCKET = 5
_DOUBT = 0.05
_POINTS = 16
"""A bucket's CDF is looked at in this many places: its error is bounded between them."""


@dataclass(frozen=True)
class TemplateFit:
    """Templates, and how near each is to what it was made from.

    Parameters
    ----------
    templates : Templates
    samples : mapping of str to int
        Delays per template; none for densities.
    distance : mapping of str to float
        Largest difference of the template's distribution function from that of the samples, or a bound
        on its difference from the density's.
    error : mapping of str to float
        How far the probability of a pair may be off because of this template. Errors of both sides
        add. For samples it holds with 95 % confidence (Dvoretzky-Kiefer-Wolfowitz), and includes the
        fit's distance.
    """

    templates: Templates
    samples: Mapping[str, int]
    distance: Mapping[str, float]
    error: Mapping[str, float]


def fitted_to_delays(
    delays: Mapping[str, np.ndarray],
    *,
    buckets: int,
    method: Literal["quantile", "width"],
    fewest: int,
    pool: bool,
    unit: str | None,
) -> TemplateFit:
    """Templates of samples: `coincide.templates_from_delays` says what arguments mean."""
    check_count("buckets", buckets)
    check_count("fewest", fewest)
    check_choice("method", method, ("quantile", "width"))
    check_truth("pool", pool)
    few = {name for name, values in delays.items() if values.size < fewest}
    if few and not pool:
        name = min(few)
        others = f" (and {len(few) - 1} more such)" if len(few) > 1 else ""
        raise DataError(
            f"template {brief(name)} has {delays[name].size} delays, fewer than {fewest}{others}."
            f" Measure more, lower {argument('fewest')}, or use {argument('pool', True)}, which"
            " gives such ids the histogram of all delays."
        )
    everything = np.sort(np.concatenate([np.empty(0, np.int64), *delays.values()]))
    if everything.size < fewest:
        whose = f"template {brief(min(few))}: " if few else ""
        raise DataError(
            f"{whose}all ids together have {everything.size} delays, fewer than {fewest}. Measure"
            f" more, or lower {argument('fewest')}."
        )
    given, distance, error = {}, {}, {}
    for name, values in delays.items():
        ordered = np.sort(values)
        source = everything if name in few else ordered
        most = max(1, min(buckets, source.size // _FEWEST_PER_BUCKET))
        edges, masses = _histogram(source, most, method)
        given[name] = GivenTemplate(tuple(edges.tolist()), tuple(masses.tolist()), delays=True)
        # From its own delays, though they be few: all together may be quite unlike them.
        distance[name] = _distance(ordered, edges, masses)
        doubt = math.sqrt(math.log(2 / _DOUBT) / (2 * ordered.size))
        error[name] = min(1.0, 2 * (distance[name] + doubt))
    samples = {name: int(values.size) for name, values in delays.items()}
    return TemplateFit(Templates(given, unit), samples, distance, error)


def _histogram(ordered: np.ndarray, buckets: int, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Edges and masses of sorted delays; a value that fills a bucket alone is one of length 0."""
    if method == "width":
        edges = np.rint(np.linspace(ordered[0], ordered[-1], buckets + 1)).astype(np.int64)
    else:
        edges = ordered[np.linspace(0, ordered.size - 1, buckets + 1).astype(np.int64)]
    values, repeats = np.unique(edges, return_counts=True)
    edges = np.repeat(values, np.where(repeats > 1, 2, 1))
    if edges.size == 1:  # all delays are equal
        edges = np.repeat(edges, 2)
    # A delay at an edge belongs to the bucket before, except at the lower end of a bucket of length 0.
    upper = np.searchsorted(ordered, edges[1:], side="right").astype(np.float64)
    lower = np.searchsorted(ordered, edges[:-1], side="right").astype(np.float64)
    instants = edges[1:] == edges[:-1]
    lower[instants] = np.searchsorted(ordered, edges[:-1][instants], side="left")
    upper[:-1][instants[1:]] = lower[1:][instants[1:]]
    lower[0] = 0.0
    return edges, (upper - lower) / ordered.size


def _distance(ordered: np.ndarray, edges: np.ndarray, masses: np.ndarray) -> float:
    """Kolmogorov's distance of the samples from the histogram."""
    after = np.cumsum(masses)
    # Right and left limits of the histogram's distribution function at each sample.
    at = np.searchsorted(edges, ordered, side="right") - 1
    upto = _cdf(ordered, edges, masses, after, at)
    before = _cdf(ordered, edges, masses, after, np.searchsorted(edges, ordered, side="left") - 1)
    n = ordered.size
    low = np.searchsorted(ordered, ordered, side="left") / n
    high = np.searchsorted(ordered, ordered, side="right") / n
    return float(max(np.abs(high - upto).max(), np.abs(low - before).max()))


def _cdf(
    times: np.ndarray, edges: np.ndarray, masses: np.ndarray, after: np.ndarray, at: np.ndarray
) -> np.ndarray:
    k = np.clip(at, 0, masses.size - 1)
    width = np.maximum(edges[k + 1] - edges[k], 1)
    part = np.clip((times - edges[k]) / width, 0.0, 1.0)
    found = after[k] - masses[k] * (1.0 - part)
    return np.where(at < 0, 0.0, np.where(at >= masses.size, 1.0, found))


def fitted_to_density(
    cdf: Callable[[np.ndarray], np.ndarray],
    low: float,
    high: float,
    scale: float,
    error: float,
    most: int,
) -> tuple[list[int], list[float], float]:
    """A histogram of a density, whose buckets are split where it is worst."""
    edges = [math.floor(low * scale), math.ceil(high * scale)]
    if edges[0] == edges[1]:
        edges[1] += 1
    values = dict(zip(edges, cdf(np.array(edges) / scale).tolist(), strict=True))
    beyond = max(values[edges[0]], 1.0 - values[edges[1]])
    values[edges[0]], values[edges[1]] = 0.0, 1.0
    queue = [(-_deviation(cdf, scale, edges[0], edges[1], values), edges[0], edges[1])]
    while -queue[0][0] + beyond > error / 2:
        worst, start, stop = heapq.heappop(queue)
        if len(queue) + 1 >= most or stop - start < 2:
            raise ConditionError(
                f"{len(queue) + 1} buckets differ from the density's probabilities by"
                f" {2 * (beyond - worst):.3g}, more than {error:.3g}. Allow more buckets or a"
                " larger error, or count edges in a finer tick."
            )
        middle = (start + stop) // 2
        values[middle] = float(cdf(np.array([middle / scale]))[0])
        for a, b in ((start, middle), (middle, stop)):
            heapq.heappush(queue, (-_deviation(cdf, scale, a, b, values), a, b))
    found = sorted((start, stop) for _, start, stop in queue)
    ends = [found[0][0], *(stop for _, stop in found)]
    masses = np.maximum(np.diff([values[end] for end in ends]), 0.0)
    return ends, (masses / masses.sum()).tolist(), beyond - queue[0][0]


def _deviation(
    cdf: Callable[[np.ndarray], np.ndarray],
    scale: float,
    start: int,
    stop: int,
    values: dict[int, float],
) -> float:
    """A bound on how far the distribution function is from a straight line in a bucket."""
    # Both rise: between two points neither leaves what it is at them.
    points = np.linspace(start, stop, _POINTS + 1)
    true = np.clip(cdf(points / scale), values[start], values[stop])
    true[0], true[-1] = values[start], values[stop]
    line = np.linspace(values[start], values[stop], _POINTS + 1)
    return float(max((true[1:] - line[:-1]).max(), (line[1:] - true[:-1]).max()))


_TAIL_SHARE = 1 / 8
"""The share of the error: what each tail that is cut off may take."""


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
        By template id. A distribution has ``cdf`` and ``ppf``, like those that SciPy freezes
        (``scipy.stats.gamma(2, scale=3)``), or ``cdf`` and ``inv_cdf``, like `statistics.NormalDist`.
    unit : str
        The unit of the densities' numbers, such as ``"ms"``.
    error : float
        Most by which the probability of a pair may be off because of a template; the errors of both
        sides add.
    tick : str
        Unit in which edges are whole numbers: that of the time columns, or a coarser one.
    delays : bool
        Whether the densities describe delays of detection. If not, they describe times, and the end of
        the support comes to lie at an event's time.
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
        raise ConditionError(
            f"{argument('error')} must lie between 0 and 1 (found {brief(error)})."
        )
    check_count("most", most)
    if not isinstance(densities, Mapping):
        raise ConditionError(
            f"{argument('densities')} must be a mapping from ids to distributions (found"
            f" {brief(densities)})."
        )
    if not densities:
        raise DataError("there is no density. Give at least one.")
    scale = float(NANOSECONDS_PER_UNIT[unit_name(unit)] / NANOSECONDS_PER_UNIT[unit_name(tick)])
    given, distance = {}, {}
    for key, density in densities.items():
        name = str(key)
        if name in given:
            raise DataError(
                f"the template {brief(name)} is given twice. Give each density its own id."
            )
        quantile = _quantile_function(name, density)
        tail = error / 2 * _TAIL_SHARE
        ends = _ends(name, quantile, tail)
        if not all(abs(end) * scale < TIME_LIMIT // 2 for end in ends):  # NaN is not either
            raise ConditionError(
                f"density {brief(name)} must have finite ends below 2^60 {tick} (found"
                f" {ends[0]:g} to {ends[1]:g} {unit}). Cut off its tails, or use a coarser tick."
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
            f"density {brief(name)} must have cdf and ppf (or inv_cdf), like SciPy's frozen"
            f" distributions (found a {type(density).__name__})."
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
            raise ConditionError(
                f"density {brief(name)} has a cdf that is NaN at {at:g}. Give a density whose cdf"
                " is a number everywhere."
            )
        return found

    return over


def _one_by_one(name: str, cdf: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    try:
        return np.array([cdf(point) for point in points.tolist()], np.float64)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ConditionError(f"density {brief(name)}: its cdf fails: {error}") from error
