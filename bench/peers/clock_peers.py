"""Offsets of one clock against another, by packages that look for them: seconds, right less left."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

Offset = Callable[[np.ndarray, np.ndarray, float, float], float]
"""The offset between left and right times, at most some seconds, at a left time; all in seconds."""


def peers() -> dict[str, Offset]:
    """The packages that can be imported, by name."""
    return {name: find for name, (module, find) in _PEERS.items() if find_spec(module)}


def missing() -> list[str]:
    """Names of those that cannot."""
    return [name for name, (module, _) in _PEERS.items() if not find_spec(module)]


def _nearest_advocate(left: np.ndarray, right: np.ndarray, most: float, at: float) -> float:
    """One offset for all the time: it looks for no drift."""
    from nearest_advocate import nearest_advocate

    found = nearest_advocate(arr_ref=left, arr_sig=right, td_min=-most, td_max=most)
    return float(found[np.argmin(found[:, 1]), 0])


def _ibl(left: np.ndarray, right: np.ndarray, most: float, at: float) -> float:
    """Offset and drift; it takes no largest offset."""
    from ibldsp.sync import sync_timestamps

    right_of, _ = sync_timestamps(left, right, linear=True)
    return float(right_of(at)) - at


_PEERS: dict[str, tuple[str, Offset]] = {
    "nearest_advocate": ("nearest_advocate", _nearest_advocate),
    "ibl-neuropixel's sync": ("ibldsp", _ibl),
}
