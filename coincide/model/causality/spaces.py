"""Spaces in which events lie: their coordinates, and the distance of two points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Annotated, Protocol

import numpy as np
from numba import types

from coincide.model.compiled import compiled, product
from coincide.model.errors import ConditionError, argument, brief, several
from coincide.model.templates.template import TemplateTable
from coincide.model.units import as_float

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
        """Where n events lie, of their coordinates: `coincide.model.causality.spaces.Points`."""

    def limits(self, coordinates: int) -> list[float]:
        """How far each of this many coordinates can be from 0."""


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
                f"{argument('scale')} must be a sequence of numbers, one a coordinate (found"
                f" {brief(self.scale)})."
            )
        scale = tuple(checked_number("scale", each) for each in self.scale)
        if not 1 <= len(scale) <= 3:
            raise ConditionError(
                f"a plane has one to three coordinates (found {len(scale)} numbers in scale)."
                " Give one number for each coordinate."
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
        return f"{argument('scale')} names {several(len(self.scale), 'coordinate')}"

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
    """Great-circle distance of latitudes and longitudes in degrees, and perhaps a height or depth.

    With a third coordinate, distance² = great-circle distance² + (difference of heights)², so that events
    of equal height are as far apart as without it.

    Parameters
    ----------
    radius : float
        The radius of the sphere, in the unit of distances. Default: the Earth's, in kilometres.
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


_RADIANS = math.pi / 180.0
_NEAR, _NEARER = 2.0**-4, 2.0**-10
"""Squared chords up to which nine terms of the series do, and up to which five: 14 and 1.8 degrees."""

# arc² = 4 asin²(√c / 2) = c + c²/12 + c³/90 + ...: the n-th denominator is n² C(2n, n) / 2.
_A2, _A3, _A4, _A5 = 1 / 12, 1 / 90, 1 / 560, 1 / 3150
_A6, _A7, _A8, _A9 = 1 / 16632, 1 / 84084, 1 / 411840, 1 / 1969110

# Power series for angles up to 45 degrees, the last terms first.
_SINE = tuple((-1.0) ** k / math.factorial(2 * k + 1) for k in range(8, 0, -1))
_COSINE = tuple((-1.0) ** k / math.factorial(2 * k) for k in range(9, 0, -1))


@compiled(forceinline=True)
def squared_arc(c):
    """The squared arc, radians², of a squared chord of the unit sphere."""
    if c <= _NEARER:
        return product(
            c, 1.0 + product(c, _A2 + product(c, _A3 + product(c, _A4 + product(c, _A5))))
        )
    halvings = 1.0
    while c > _NEAR:
        # The squared chord of half the arc.
        c = c / (2.0 + math.sqrt(max(0.0, 4.0 - c)))
        halvings = 4.0 * halvings
    tail = _A6 + product(c, _A7 + product(c, _A8 + product(c, _A9)))
    tail = _A3 + product(c, _A4 + product(c, _A5 + product(c, tail)))
    return product(halvings, product(c, 1.0 + product(c, _A2 + product(c, tail))))


@compiled
def squared_chord(arc):
    """The squared chord of the unit sphere of an arc in radians, 0 to pi: 4 sin²(arc / 2)."""
    half = 2.0 * math.sin(0.5 * min(arc, math.pi))
    return half * half


@compiled(forceinline=True)
def _sine_and_cosine(angle):
    """Sine and cosine of degrees; exact at multiples of 90, where opposite ones are one place."""
    turns = np.rint(angle / 90.0)
    radians = (angle - 90.0 * turns) * _RADIANS
    square = radians * radians
    sine = cosine = 0.0
    for coefficient in _SINE:
        sine = (sine + coefficient) * square
    for coefficient in _COSINE:
        cosine = (cosine + coefficient) * square
    sine, cosine = radians + radians * sine, 1.0 + cosine
    quarter = int(turns) % 4
    if quarter == 0:
        return sine, cosine
    if quarter == 1:
        return cosine, -sine
    return (-sine, -cosine) if quarter == 2 else (-cosine, sine)


@compiled
def unit_vectors(latitude, longitude, out):
    """Unit vectors of n places: all longitudes of a pole are one place, and both of the date line."""
    for i in range(latitude.size):
        if not (abs(latitude[i]) <= 90.0 and abs(longitude[i]) <= 360.0):
            out[0, i] = out[1, i] = out[2, i] = np.nan
            continue
        up, level = _sine_and_cosine(latitude[i])
        east, ahead = _sine_and_cosine(longitude[i])
        # Plus zero: -0.0 is the same place as 0.0.
        out[0, i], out[1, i], out[2, i] = level * ahead + 0.0, level * east + 0.0, up + 0.0


Points = Annotated[np.ndarray, types.Array(types.float64, 2, "C")]
"""Where n events lie: a C-contiguous float64 array, shape (3 or 4, n), of x, y, z and h.

In a plane x, y and z are coordinates in the unit of distances, 0 of dimensions that it has not. On a sphere
they are the unit vector; h is the height, in the unit of distances, and is there where heights are.
"""

X, Y, Z, H = range(4)


@dataclass(frozen=True, eq=False)
class PlacedEvents:
    """Events of one side."""

    times: np.ndarray  # int64, shape (n,): ticks, |time| < 2**61; of intervals the later end
    points: np.ndarray | None = None  # Finite where the event's group is not negative
    lengths: np.ndarray | None = None  # int64, shape (n,), or None
    group: np.ndarray | None = None  # int64, shape (n,), or None
    groups: int = 1  # Number of codes, above every code
    ranks: np.ndarray | None = None  # int64, shape (n,), or None
    templates: TemplateTable | None = None

    def __post_init__(self) -> None:
        # Kernels are compiled for one kind of arrays: it takes less time to copy one of another kind.
        for name in ("times", "points", "lengths", "group", "ranks"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, np.require(given, requirements=("C", "W")))

    def __len__(self) -> int:
        return self.times.size

    @property
    def codes(self) -> np.ndarray:
        """The groups: int64 array, shape (n,)."""
        return np.zeros(len(self), np.int64) if self.group is None else self.group

    @property
    def longest(self) -> int:
        """The longest length of a timestamp, ticks."""
        if self.templates is not None:
            known = self.codes >= 0
            assert self.lengths is not None
            return int(self.templates.lengths[np.unique(self.lengths[known])].max(initial=0))
        return 0 if self.lengths is None else int(self.lengths.max(initial=0))


def no_points() -> np.ndarray:
    """The points of events that have no places."""
    return np.empty((0, 0))


DISTANCE_LIMIT = 1e100
"""Coordinates, distances and speeds beyond it, or below 1 over it, have squares that floats cannot hold."""


def checked_number(name: str, value: object, *, zero: bool = False, hint: str = "") -> float:
    """A positive number as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConditionError(f"{argument(name)} must be a number{hint} (found {brief(value)}).")
    number = as_float(value)
    if zero and number == 0:
        return 0.0
    if not 1 / DISTANCE_LIMIT <= number <= DISTANCE_LIMIT:
        least = "0, or from" if zero else "from"
        raise ConditionError(
            f"{argument(name)} must be {least} 1e-100 to 1e100, a positive and finite"
            f" number{hint} (found {brief(value)})."
        )
    return number


def largest_square(distance: float, strict: bool) -> float:
    """The largest float that is at most the exact square of a distance, or below it if `strict`."""
    exact = Fraction(distance) ** 2
    nearest = float(exact)
    while Fraction(nearest) > exact or (strict and Fraction(nearest) == exact):
        nearest = math.nextafter(nearest, -math.inf)
    return nearest
