"""Arithmetic that is the same to the bit wherever it is compiled."""

from __future__ import annotations

from numba.extending import overload


def product(a: float, b: float) -> float:
    """a * b, rounded before anything is added to it: compilers for GPUs would fuse the two."""
    return a * b


def _product(a, b):
    return lambda a, b: a * b


overload(product)(_product)
