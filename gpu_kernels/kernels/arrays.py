"""Kernels of events that are in a GPU's memory already: checks."""

from __future__ import annotations

from numba import cuda, types

from gpu_kernels.kernels.compilation import kernel
from gpu_kernels.kernels.join import I64_ARRAY


@kernel(I64_ARRAY, I64_ARRAY, types.int64, I64_ARRAY)
def first_invalid(min_time, max_time, limit, first):
    """Find the first event that ends before it begins, or whose times reach a limit."""
    i = cuda.grid(1)
    if i < min_time.size:
        low, high = min_time[i], max_time[i]
        # Few invalid events come before the first that was found so far.
        if (low > high or low <= -limit or high >= limit) and i < first[0]:
            cuda.atomic.min(first, 0, i)
