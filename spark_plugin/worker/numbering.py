"""Numbers of entries within runs."""

from __future__ import annotations

import numpy as np


def numbers_in_runs(begins: np.ndarray) -> np.ndarray:
    """The how-many-eth of its run each entry is, from 0: int64 array, shape (n,).

    Parameters
    ----------
    begins : bool array, shape (n,)
        Whether a run begins there; the first entry begins one.
    """
    places = np.arange(begins.size)
    return places - np.maximum.accumulate(np.where(begins, places, 0))
