"""Correlograms by others: pairs by bucket of their delay, of sorted times that are whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numba
import numpy as np

Counts = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Pairs by bucket, of left times, right times and edges: int64 arrays."""
CURSORS, PYCORRELATE, PYNAPPLE = "cursors", "pycorrelate", "pynapple"


def peers(*, are_equal: bool) -> dict[str, Counts]:
    """Those that can be imported, by name; for equal buckets or any."""
    found: dict[str, Counts] = {CURSORS: cursors}
    if find_spec("pycorrelate"):
        found[PYCORRELATE] = _pycorrelate
    if are_equal and find_spec("pynapple"):
        found[PYNAPPLE] = _pynapple
    return found


def missing() -> list[str]:
    """Names of those that cannot."""
    return [name for name in (PYCORRELATE, PYNAPPLE) if not find_spec(name)]


@numba.njit(nogil=True)
def cursors(left: np.ndarray, right: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """A cursor for each edge, which moves on with each left event: Laurence, Fore and Huser (2006)."""
    at = np.zeros(edges.size, np.int64)
    counts = np.zeros(edges.size - 1, np.int64)
    for time in left:
        for k in range(edges.size):
            while at[k] < right.size and right[at[k]] < time + edges[k]:
                at[k] += 1
        for k in range(edges.size - 1):
            counts[k] += at[k + 1] - at[k]
    return counts


def _pycorrelate(left: np.ndarray, right: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """It divides each count by the width of its bucket."""
    from pycorrelate import pcorrelate

    counts: np.ndarray = np.rint(pcorrelate(left, right, edges) * np.diff(edges)).astype(np.int64)
    return counts


def _pynapple(left: np.ndarray, right: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """It takes an odd number of buckets about 0, and gives rates."""
    import pynapple

    width = float(edges[1] - edges[0])
    group = pynapple.TsGroup(
        {0: pynapple.Ts(left.astype(float)), 1: pynapple.Ts(right.astype(float))}
    )
    rates = pynapple.compute_crosscorrelogram(
        group, binsize=width, windowsize=width * (edges.size // 2 - 1), norm=False
    )
    return np.rint(rates.to_numpy()[:, 0] * left.size * width).astype(np.int64)
