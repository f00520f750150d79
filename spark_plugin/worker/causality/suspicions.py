"""Places and distances that look like another unit was meant: degrees for metres, metres for km."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from coincide.cause_and_effect.condition import CausalityCondition, CausalityModel
from coincide.cause_and_effect.placing.buckets import extent
from coincide.cause_and_effect.points import H, PlacedEvents
from coincide.cause_and_effect.spaces import EARTH_KM, Plane, Space, Sphere
from coincide.cause_and_effect.sphere import squared_arc
from coincide.warnings import DistanceUnitWarning
from spark_plugin.worker.causality.places import Coordinate
from spark_plugin.worker.reports.warn import warn

_LATITUDE, _LONGITUDE, _LENGTH = (
    re.compile(rf"(.*[_ ])?({words})([_ ].*)?", re.IGNORECASE)
    for words in ("lat|latitude", "lon|lng|long|longitude", "x|y|easting|northing")
)
_ENOUGH = 2.0
"""A radius that is so many times as long as all places are apart was hardly meant so."""


def warn_of_names(condition: CausalityCondition, places: Sequence[tuple[Coordinate, ...]]) -> None:
    """Warn of places whose columns are called as if they were of another space.

    Parameters
    ----------
    condition : CausalityCondition
    places : sequence of tuples of coordinates
        Of each side.
    """
    if not condition.needs_places:
        return
    for text in dict.fromkeys(t for place in places for t in _of_names(condition.space, place)):
        warn(text, DistanceUnitWarning)


def _of_names(space: Space, place: tuple[Coordinate, ...]) -> Iterator[str]:
    names = [each if isinstance(each, str) else "" for each in place[:2]]
    if len(names) < 2:
        return
    called = " and ".join(map(repr, names))
    is_degrees = any(map(_LATITUDE.fullmatch, names)) and any(map(_LONGITUDE.fullmatch, names))
    if isinstance(space, Plane) and space.scale is None and is_degrees:
        yield (
            f"distances are taken in degrees (found the places {called} in a plane). Say Sphere()"
            " (--lat-lon) for distances in km, or Plane(scale=...) (--scale) for another unit"
        )
    if isinstance(space, Sphere) and _LONGITUDE.fullmatch(names[0]) and is_degrees:
        yield (
            f"a sphere takes the latitude first, then the longitude (found the places {called}). Swap the"
            " two"
        )
    if isinstance(space, Sphere) and all(map(_LENGTH.fullmatch, names)):
        yield (
            f"a sphere takes latitudes and longitudes in degrees (found the places {called}). Leave out"
            " Sphere() (--lat-lon) where they are lengths"
        )


def warn_of_reach(
    space: Space, model: CausalityModel, events: tuple[PlacedEvents, PlacedEvents | None]
) -> None:
    """Warn of a radius in km, on the Earth, that is far longer than any two events are apart."""
    sides = [side for side in events if side is not None and side.points is not None]
    is_earth = isinstance(space, Sphere) and space.radius == EARTH_KM
    if not (is_earth and sides and math.isfinite(model.reach)):
        return
    ends = [extent(side.points, side.codes) for side in sides]
    apart = np.max([high for _, high in ends], axis=0) - np.min([low for low, _ in ends], axis=0)
    gap = float((apart[:3] ** 2).sum())
    if not 0.0 < gap < math.inf:  # infinite of no events
        return
    height = apart[H] if math.isfinite(apart[H]) else 0.0
    farthest = math.hypot(math.sqrt(space.curvature * squared_arc(min(gap, 4.0))), height)
    if model.reach >= _ENOUGH * farthest:
        warn(
            f"the condition reaches {model.reach:.6g} km, and no two events are more than"
            f" {farthest:.6g} km apart: their distance leaves out nothing. Distances on a sphere are in km:"
            " if metres were meant, divide them by 1,000",
            DistanceUnitWarning,
        )
