"""Host arrays of which the device has a copy: values given again for every batch travel once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_kernels.device.transfers import current

_MOST = 6


def _itself(copy: Any) -> Any:
    return copy


class Residents:
    """The device's copies of the last few host arrays, or what was made of them."""

    def __init__(self) -> None:
        self._kept: deque[tuple[np.ndarray, Any, Any]] = deque(maxlen=_MOST)

    def known(self, array: np.ndarray, copy: Any) -> np.ndarray:
        """Note that the device has a copy of an array; returns the array."""
        self._kept.append((array, _itself, copy))
        return array

    def get(self, array: np.ndarray, make: Callable[[Any], Any] = _itself) -> Any:
        """What `make` makes of the device's copy, made when the array is first asked for."""
        for kept, maker, made in self._kept:
            if kept is array and maker is make:
                return made
        made = make(current().send_one(array))
        self._kept.append((array, make, made))
        return made
