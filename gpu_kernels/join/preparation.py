"""From two sides sorted by key to the buffers of a join, all in device memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coincide.shape_classes import checked
from coincide.sides import LEFT
from coincide.timestamps.protocol import PairModel
from gpu_kernels.device.arrays import on_device, tuple_on_device
from gpu_kernels.join.blocks import BandedSides
from gpu_kernels.join.buffers import OrderedEvents, base_buffer, target_buffer
from gpu_kernels.kernels.layout import Sides


class Prepared(NamedTuple):
    """A join ready to be counted and filled.

    Parameters
    ----------
    left_order, right_order : int64 arrays, shape (n,), in device memory
        Row at each base and at each target position.
    bands : int64 array, shape (K1, K2, 4), in host memory
    banded : BandedSides
    """

    left_order: Any
    right_order: Any
    bands: np.ndarray
    banded: BandedSides


def prepared(
    left: OrderedEvents, right: OrderedEvents, groups: int, model: PairModel, classes: int | None
) -> Prepared:
    """Choose classes, and sort both sides into them.

    Parameters
    ----------
    left, right : OrderedEvents
    groups : int
        Number of groups, of both sides.
    model : PairModel
    classes : int or None
        Of each side; None: chosen.

    Raises
    ------
    ConditionError
        If the model cuts a side into more classes than a join takes.
    """
    k1, k2 = checked(model.choose_classes(left, right, groups, classes))
    bands = model.bands(LEFT, k1, k2)
    left_order, base = base_buffer(left, groups, k1)
    right_order, targets = target_buffer(right, groups, k2)
    sides = Sides(base, targets, tuple_on_device(model.rule))
    return Prepared(left_order, right_order, bands, BandedSides(sides, on_device(bands)))
