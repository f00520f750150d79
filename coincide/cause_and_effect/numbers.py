"""Numbers that conditions are made of, checked."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real

from coincide.errors import ConditionError, brief
from coincide.units import as_float

DISTANCE_LIMIT = 1e100
"""Coordinates, distances and speeds beyond it, or below 1 over it, have squares that floats cannot hold."""


def checked_number(name: str, value: object, *, zero: bool = False, hint: str = "") -> float:
    """A positive number as a float.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
    zero : bool
        Whether 0 will do, too.
    hint : str
        What else will do, for the error.

    Raises
    ------
    ConditionError
        If it is no number, negative, 0, NaN, infinite, or too large or small to be squared.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConditionError(f"{name} must be a number{hint}; found {brief(value)}")
    number = as_float(value)
    if zero and number == 0:
        return 0.0
    if not 1 / DISTANCE_LIMIT <= number <= DISTANCE_LIMIT:
        least = "0, or from" if zero else "from"
        raise ConditionError(
            f"{name} must be {least} 1e-100 to 1e100, a positive and finite number{hint}; found"
            f" {brief(value)}"
        )
    return number


def largest_square(distance: float, strict: bool) -> float:
    """The largest float that is at most the exact square of a distance, or below it if `strict`."""
    exact = Fraction(distance) ** 2
    nearest = float(exact)
    while Fraction(nearest) > exact or (strict and Fraction(nearest) == exact):
        nearest = math.nextafter(nearest, -math.inf)
    return nearest
