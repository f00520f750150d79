"""What a float time means, slow and obvious: the decimal that it is printed as."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

MOST_PLACES = 9


def decimal_of(value: float, *, is_single: bool = False) -> Fraction:
    """The shortest decimal that reads as a float; the float itself, if that has more than nine places."""
    decimal = Decimal(str(np.float32(value)) if is_single else repr(float(value))).normalize()
    exponent = decimal.as_tuple().exponent
    has_places = isinstance(exponent, int) and -MOST_PLACES <= exponent < 0
    return Fraction(decimal) if has_places else Fraction(value)


def float_ticks(value: float, factor: Fraction, *, is_single: bool = False) -> int:
    """A float in ticks, of which one has `factor`, rounded half to even."""
    return round(decimal_of(value, is_single=is_single) * factor)
