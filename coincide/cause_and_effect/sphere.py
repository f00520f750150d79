"""The sphere, in arithmetic of which every step is rounded once: the same bits on every machine.

A place is a unit vector. Of two, the squared length c of the straight line between them says how
far apart they are, without trigonometry; where the arc itself is needed, its square is a power series of c.
"""

from __future__ import annotations

import math

import numpy as np

from coincide.compiled import compiled
from coincide.rounding import product

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
    """The squared arc, radians², of a squared chord of the unit sphere.

    Parameters
    ----------
    c : float64
        0 to 4; a rounding error above 4 counts as 4.

    Returns
    -------
    float64
        0 to pi², good to some units of 2**-53.
    """
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
    """Of an angle in degrees; exact at multiples of 90, of which opposite ones are one place."""
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
    """Unit vectors of n places: all longitudes of a pole are one place, and both of the date line.

    Parameters
    ----------
    latitude, longitude : float64 arrays, shape (n,)
        Degrees. What is no place gives NaN.
    out : float64 array, shape (3 or more, n), written
        x, y and z.
    """
    for i in range(latitude.size):
        if not (abs(latitude[i]) <= 90.0 and abs(longitude[i]) <= 360.0):
            out[0, i] = out[1, i] = out[2, i] = np.nan
            continue
        up, level = _sine_and_cosine(latitude[i])
        east, ahead = _sine_and_cosine(longitude[i])
        # Plus zero: -0.0 is the same place as 0.0.
        out[0, i], out[1, i], out[2, i] = level * ahead + 0.0, level * east + 0.0, up + 0.0
