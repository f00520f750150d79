"""A join sorted on the device, from events that are there already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.gpu.works import Work

if TYPE_CHECKING:
    from gpu_kernels.join.preparation import Prepared


def prepared_join(work: Work) -> Callable[[], Prepared]:
    """Copy both sides to the device now; what is returned sorts them into length classes there."""
    from gpu_kernels.device.arrays import on_device
    from gpu_kernels.join.buffers import by_midpoint
    from gpu_kernels.join.preparation import prepared

    copies = [[on_device(side.min_time), on_device(side.max_time)] for side in work.sides()]

    def prepare() -> Prepared:
        left, right = (by_midpoint(*times) for times in copies)
        return prepared(left, right, work.groups, work.window, work.classes)

    return prepare
