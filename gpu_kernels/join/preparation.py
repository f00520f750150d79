"""From two sides sorted by midpoint to the buffers of a join, all in device memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.bands import band_table
from coincide.class_choice import choose_classes
from coincide.condition import Window
from coincide.probability import DECISION_SLACK
from gpu_kernels.device.arrays import on_device
from gpu_kernels.join.blocks import Sides
from gpu_kernels.join.buffers import OrderedEvents, base_buffer, target_buffer
from gpu_kernels.kernels.layout import Condition


class Prepared(NamedTuple):
    """A join ready to be counted and filled.

    Parameters
    ----------
    left_order, right_order : int64 arrays, shape (n,), in device memory
        Row at each base and at each target position.
    bands : int64 array, shape (K1, K2, 4), in host memory
    sides : Sides
    """

    left_order: Any
    right_order: Any
    bands: np.ndarray
    sides: Sides


def prepared(
    left: OrderedEvents, right: OrderedEvents, groups: int, window: Window, classes: int | None
) -> Prepared:
    """Choose length classes, and sort both sides into them.

    Parameters
    ----------
    left, right : OrderedEvents
    groups : int
        Number of groups, of both sides.
    window : Window
    classes : int or None
        Of each side; None: chosen.
    """
    k1, k2 = choose_classes(left, right, groups, window, classes)
    bands = band_table(k1, k2, window)
    left_order, base = base_buffer(left, groups, k1)
    right_order, targets = target_buffer(right, groups, k2)
    condition = Condition(window.lo, window.hi, window.confidence - DECISION_SLACK)
    return Prepared(
        left_order, right_order, bands, Sides(base, targets, on_device(bands), condition)
    )
