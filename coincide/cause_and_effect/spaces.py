"""Spaces in which events lie: what their coordinates are, and what the distance of two is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from coincide.cause_and_effect.numbers import DISTANCE_LIMIT, checked_number
from coincide.cause_and_effect.points import H
from coincide.cause_and_effect.sphere import unit_vectors
from coincide.errors import ConditionError, brief
from coincide.plurals import several

EARTH_KM = 6371.0088
"""Mean radius of the Earth (2 a + b) / 3, kilometres."""

MOST_LATITUDE, MOST_LONGITUDE = 90.0, 360.0


class Space(Protocol):
    """Where events lie."""

    @property
    def curvature(self) -> float:
        """Squared radius of the sphere; 0 of a plane."""

    @property
    def dimensions(self) -> tuple[int, int]:
        """Least and most coordinates of an event."""

    @property
    def words(self) -> str:
        """What the coordinates are, for messages."""

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Where n events lie, of their coordinates: `coincide.cause_and_effect.points.Points`."""

    def limits(self, coordinates: int) -> list[float]:
        """How far each of so many coordinates can be from 0."""


@dataclass(frozen=True)
class Plane:
    """Straight distance, in one to three dimensions.

    Parameters
    ----------
    scale : sequence of float, optional
        What one unit of each coordinate is worth in the unit of distances, such as ``(111.19, 81.6, 1)``
        kilometres for latitude, longitude and depth near one place. None: 1 each.
    """

    scale: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.scale is None:
            return
        if isinstance(self.scale, str) or not isinstance(self.scale, Sequence):
            raise ConditionError(
                f"scale must be a sequence of numbers, one a coordinate; found {brief(self.scale)}"
            )
        scale = tuple(checked_number("scale", each) for each in self.scale)
        if not 1 <= len(scale) <= 3:
            raise ConditionError(
                f"a plane has one to three coordinates; scale has {len(scale)} numbers"
            )
        object.__setattr__(self, "scale", scale)

    @property
    def curvature(self) -> float:
        """As `Space`, like all that follow."""
        return 0.0

    @property
    def dimensions(self) -> tuple[int, int]:  # noqa: D102
        return (1, 3) if self.scale is None else (len(self.scale), len(self.scale))

    @property
    def words(self) -> str:  # noqa: D102
        if self.scale is None:
            return "a plane has one to three coordinates"
        return f"scale names {several(len(self.scale), 'coordinate')}"

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:  # noqa: D102
        scale = self.scale or (1.0,) * len(columns)
        found = np.zeros((3, columns[0].size))
        for row, column, one in zip(found, columns, scale, strict=False):
            np.multiply(column, one, out=row)
        found += 0.0  # -0.0 is the same place as 0.0
        return found

    def limits(self, coordinates: int) -> list[float]:  # noqa: D102
        return [DISTANCE_LIMIT / max(1.0, one) for one in self.scale or (1.0,) * coordinates]


@dataclass(frozen=True)
class Sphere:
    """Great-circle distance of latitudes and longitudes in degrees, with a height or depth beside it.

    With a third coordinate, distance² = great-circle distance² + (difference of heights)², so that events
    of equal height are as far apart as without it.

    Parameters
    ----------
    radius : float
        Of the sphere, in the unit of distances; the Earth's in kilometres unless given.
    height_scale : float
        What one unit of the height is worth in the unit of distances: 0.001 of metres.
    """

    radius: float = EARTH_KM
    height_scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("radius", "height_scale"):
            object.__setattr__(self, name, checked_number(name, getattr(self, name)))

    @property
    def curvature(self) -> float:
        """As `Space`, like all that follow."""
        return self.radius * self.radius

    @property
    def dimensions(self) -> tuple[int, int]:  # noqa: D102
        return 2, 3

    @property
    def words(self) -> str:  # noqa: D102
        return "a sphere has a latitude and a longitude in degrees, and perhaps a height"

    @property
    def farthest(self) -> float:
        """Distance of antipodes."""
        return math.pi * self.radius

    def points(self, columns: Sequence[np.ndarray]) -> np.ndarray:  # noqa: D102
        found = np.empty((1 + len(columns), columns[0].size))
        unit_vectors(*(np.require(c, np.float64, ("C", "W")) for c in columns[:2]), found)
        if len(columns) == 3:
            found[H] = columns[2] * self.height_scale + 0.0
        return found

    def limits(self, coordinates: int) -> list[float]:  # noqa: D102
        height = DISTANCE_LIMIT / max(1.0, self.height_scale)
        return [MOST_LATITUDE, MOST_LONGITUDE, height][:coordinates]
