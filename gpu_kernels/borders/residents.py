"""The device's copies of border indexes: they travel once, and again in part when queries were removed."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np

from coincide.borders.index import BorderIndex
from gpu_kernels.device.arrays import array_module
from gpu_kernels.device.transfers import current
from gpu_kernels.kernels.border_layout import SortedBorders
from gpu_kernels.kernels.simulation import SIMULATED


class Resident(NamedTuple):
    """A copy of an index.

    Parameters
    ----------
    live : int
        Queries that had not been removed: those of an index only become fewer.
    values : float64 array, shape (d * 2 * N,), in device memory
    borders : SortedBorders
    """

    live: int
    values: Any
    borders: SortedBorders


_Key = tuple[int, int]
_residents: dict[_Key, Resident] = {}
"""By index, for as long as it lives, and device."""


def resident(index: BorderIndex) -> Resident:
    """The current device's copy of an index. Called by one thread at a time.

    A query takes 40 bytes a dimension, and half a byte for peaks.

    Parameters
    ----------
    index : BorderIndex
    """
    key = id(index), 0 if SIMULATED else array_module().cuda.runtime.getDevice()
    found, live = _residents.get(key), index.live
    if found is not None and found.live == live:
        return found
    if found is None:
        values = index.borders.values
        made = Resident(live, _sent(values), _all_sent(index))
        weakref.finalize(index, _residents.pop, key, None).atexit = False
    else:
        # What `BorderIndex.remove` writes.
        keys, places = (_sent(index.borders.keys), _sent(index.borders.places))
        made = Resident(live, found.values, found.borders._replace(keys=keys, places=places))
    _residents[key] = made
    return made


def _all_sent(index: BorderIndex) -> SortedBorders:
    borders = index.borders
    keys, queries, peaks, places = map(
        _sent, (borders.keys, borders.queries, borders.peaks, borders.places)
    )
    return SortedBorders(
        keys, queries, _sent(borders.levels), peaks, places,
        len(index), borders.peaks.shape[2], index.dimensions,
    )  # fmt: skip


def _sent(array: np.ndarray) -> Any:
    return current().send_one(array.reshape(-1))
