"""A join sorted on the device, from events that are there already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.gpu.works import Work
from coincide.model.timestamps import IntervalPairs

if TYPE_CHECKING:
    from gpu_kernels.join import Prepared


def prepared_join(work: Work) -> Callable[[], Prepared]:
    """Copy both sides to the device now; what is returned sorts them into length classes there."""
    from gpu_kernels.device.arrays import tuple_on_device
    from gpu_kernels.join import prepared
    from gpu_kernels.sides import by_key

    copies = [tuple_on_device(side.times) for side in work.sides()]

    def prepare() -> Prepared:
        left, right = (by_key(times) for times in copies)
        return prepared(left, right, work.groups, IntervalPairs(work.window), work.classes)

    return prepare
