"""Columns of the host that are made as they are sent: in half the bytes, where values fit."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from coincide.model.timestamps.intervals import IntervalTimes, narrow_lengths


def narrow_type(most: int) -> Any:
    """The least type, of int32 and int64, for whole numbers from 0 up to this one."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


class Made(Protocol):
    """A column that is written, piece by piece, where it is to be."""

    @property
    def size(self) -> int:
        """Number of items."""

    @property
    def dtype(self) -> np.dtype:
        """Their type, once written."""

    def __getitem__(self, piece: slice) -> Made:
        """Some of them."""

    def write(self, out: np.ndarray) -> None:
        """Write them."""


class Narrowed:
    """Whole numbers as int32, in which they fit."""

    dtype = np.dtype(np.int32)

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    @property
    def size(self) -> int:
        """As `Made`, like what follows."""
        return self._values.size

    def __getitem__(self, piece: slice) -> Narrowed:
        return Narrowed(self._values[piece])

    def write(self, out: np.ndarray) -> None:
        """A copy."""
        np.copyto(out, self._values)


class Lengths:
    """The lengths of intervals as int32: `fit` says, once they are written, whether all do."""

    dtype = np.dtype(np.int32)

    def __init__(self, times: IntervalTimes, whole: Lengths | None = None) -> None:
        self._times, self._whole, self.fit = times, whole, True

    @property
    def size(self) -> int:
        """As `Made`, like what follows."""
        return self._times.max_time.size

    def __getitem__(self, piece: slice) -> Lengths:
        return Lengths(IntervalTimes(*(each[piece] for each in self._times)), self._whole or self)

    def write(self, out: np.ndarray) -> None:
        """The differences; any of several threads may find that they do not fit."""
        if not narrow_lengths(*self._times, out):
            (self._whole or self).fit = False
