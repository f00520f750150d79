"""Rows that come in order of their keys: where a key begins, also from one chunk to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Runs:
    """Numbers the keys of rows, chunk by chunk.

    In each chunk the key with which the one before it ended is number 0, whether or not it goes on, and
    those that begin are numbered from 1.
    """

    def __init__(self) -> None:
        self._last: list[pa.Scalar] | None = None

    def numbered(self, keys: Sequence[pa.Array]) -> np.ndarray:
        """The numbers of rows.

        Parameters
        ----------
        keys : sequence of pa.Array, shape (n,), n > 0
            Columns of the key, without nulls, equal keys next to each other.

        Returns
        -------
        int64 array, shape (n,)
            Ascending.
        """
        is_new = begins(keys)
        first = [key[0] for key in keys]
        is_new[0] = self._last is None or not all(map(pa.Scalar.equals, first, self._last))
        self._last = [key[-1] for key in keys]
        return np.cumsum(is_new)


def begins(keys: Sequence[pa.Array]) -> np.ndarray:
    """Which rows begin a key, the first one among them: bool array, shape (n,), n > 0.

    Parameters
    ----------
    keys : sequence of pa.Array, shape (n,)
        Columns of the key, without nulls, equal keys next to each other.
    """
    found = np.zeros(len(keys[0]), np.bool_)
    found[0] = True
    for key in keys:
        found[1:] |= _differ(key)
    return found


def _differ(key: pa.Array) -> np.ndarray:
    """Which values differ from the one before them: bool array, shape (n - 1,)."""
    if pa.types.is_int64(key.type):
        values = key.to_numpy()
        return values[1:] != values[:-1]
    differ = pc.not_equal(key.slice(1), key.slice(0, len(key) - 1))
    return np.asarray(differ.to_numpy(zero_copy_only=False))
