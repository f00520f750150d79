"""The closed form of two interval timestamps as Spark's columns: `coincide.probability`, step by step.

Differences are taken in bigint before any double is made, and every operation on doubles is the kernels',
in their order, so that the bits are theirs. Java fuses no multiplication with an addition.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from coincide.condition import Window
from coincide.probability import DECISION_SLACK


def window_probability(s: Column, l1: Column, l2: Column, lo: int, hi: int) -> Column:
    """P(lo <= T_right - T_left <= hi), double: `coincide.probability.window_probability`.

    Parameters
    ----------
    s, l1, l2 : Column
        max_right - max_left and the two lengths, ticks: bigint, never null, lengths >= 0.
    lo, hi : int
        The window, ticks.
    """
    first, last = F.lit(lo), F.lit(hi)
    exact = F.when((s >= first) & (s <= last), 1.0).otherwise(0.0)
    found = _trapezoid_cdf(last - s, l1, l2) - _trapezoid_cdf(first - s, l1, l2)
    return F.when((l1 == 0) & (l2 == 0), exact).otherwise(found)


def reaches(probability: Column, window: Window) -> Column:
    """Whether a probability qualifies: `coincide.probability.qualifies`."""
    return probability >= F.lit(window.confidence - DECISION_SLACK)


def _trapezoid_cdf(z: Column, l1: Column, l2: Column) -> Column:
    # Branches are evaluated in order: where u could overflow, or a divisor be 0, an earlier one is met.
    u, v = (z + l2), (l1 - z)
    shorter, longer = F.least(l1, l2), F.greatest(l1, l2)
    area = _double(l1) * _double(l2)
    return (
        F.when(z <= -l2, 0.0)
        .when(z >= l1, 1.0)
        .when(u <= shorter, F.lit(0.5) * (_double(u) * _double(u)) / area)
        .when(u <= longer, _double(F.lit(2) * u - shorter) / (F.lit(2.0) * _double(longer)))
        .otherwise(F.lit(1.0) - F.lit(0.5) * (_double(v) * _double(v)) / area)
    )


def _double(whole: Column) -> Column:
    return whole.cast("double")
