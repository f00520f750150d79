"""Copying between arrays in kernels."""

from __future__ import annotations

from coincide.compiled import compiled


@compiled(forceinline=True)
def copy_into(target, source):
    """Copy an array, or a slice, over another of its length: one dimension.

    ``target[:] = source`` would broadcast, and the message that Numba has for shapes which do not fit
    takes it as long to compile as a whole join.
    """
    for i in range(target.size):
        target[i] = source[i]
