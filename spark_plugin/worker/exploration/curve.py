"""How many pairs qualify at each confidence: exactly as many as the join finds there."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np
import pyarrow as pa

from coincide.probability import DECISION_SLACK
from spark_plugin.worker.exploration.arguments import LEAST_CONFIDENCE
from spark_plugin.worker.exploration.candidates import Pairs

STEPS = 100
CONFIDENCES = np.array([i / STEPS for i in range(STEPS + 1)])
"""Of the curve; the first stands for all candidates."""
_LIMITS = np.concatenate([[LEAST_CONFIDENCE], CONFIDENCES[1:]]) - DECISION_SLACK
_BARS = 50


def steps_of(pairs: Pairs) -> np.ndarray:
    """Candidates by the highest of `CONFIDENCES` that they reach: int64 array, shape (101,)."""
    reached = np.searchsorted(_LIMITS, pairs.probability, side="right") - 1
    # What the table of satisfaction times lets through may lie below by a rounding error.
    return np.bincount(np.maximum(reached, 0), minlength=_LIMITS.size)


def histogram_table(steps: np.ndarray) -> pa.Table:
    """The histogram of P over candidates.

    Parameters
    ----------
    steps : int64 array, shape (101,)
        From `steps_of`.

    Returns
    -------
    pa.Table
        Columns ``lower`` and ``upper`` (float64; P from lower to below upper, and of the last one P = 1)
        and ``pairs`` (int64).
    """
    per_bar = STEPS // _BARS
    lower = CONFIDENCES[::per_bar]
    upper = np.append(lower[1:], 1.0)
    pairs = np.append(steps[:-1].reshape(_BARS, per_bar).sum(axis=1), steps[-1])
    return pa.table({"lower": lower, "upper": upper, "pairs": pairs})


def curve_table(steps: np.ndarray, accidental: Sequence[np.ndarray]) -> pa.Table:
    """Pairs by confidence.

    Parameters
    ----------
    steps : int64 array, shape (101,)
        From `steps_of`.
    accidental : sequence of int64 arrays
        The same of candidates by each shift.

    Returns
    -------
    pa.Table
        Columns ``confidence`` (float64; 0 stands for all candidates), ``pairs`` (int64), and with shifts
        ``accidental_pairs`` and ``accidental_spread`` (float64; null of one shift).
    """
    columns = {"confidence": pa.array(CONFIDENCES), "pairs": pa.array(_at_least(steps))}
    if accidental:
        by_shift = np.array([_at_least(each) for each in accidental], float).T.tolist()
        several = len(accidental) > 1
        spread = [stdev(each) if several else None for each in by_shift]
        columns["accidental_pairs"] = pa.array(map(fmean, by_shift), pa.float64())
        columns["accidental_spread"] = pa.array(spread, pa.float64())
    return pa.table(columns)


def _at_least(steps: np.ndarray) -> np.ndarray:
    return np.cumsum(steps[::-1])[::-1].copy()


def flat_stretch(curve: pa.Table, tolerance: float = 0.01) -> tuple[float, float] | None:
    """The widest range of confidences between which the number of pairs changes by at most `tolerance`.

    None where no range is 0.1 wide, or there are no pairs.

    Parameters
    ----------
    curve : pa.Table
        From `curve_table`.
    tolerance : float
        As a share of the pairs at the lower end.
    """
    pairs = curve["pairs"].to_numpy()[1:]
    if not pairs[0]:
        return None
    # The number never rises: the last confidence with so many is found by bisection.
    least = np.ceil(pairs * (1 - tolerance)).astype(np.int64)
    stops = np.searchsorted(-pairs, -np.maximum(least, 1), side="right") - 1
    widths = stops - np.arange(stops.size)
    start = int(np.argmax(widths))
    if widths[start] < STEPS // 10:
        return None
    return float(CONFIDENCES[1 + start]), float(CONFIDENCES[1 + stops[start]])
