"""How kernels are compiled that only kernels call."""

from __future__ import annotations

from functools import partial

from coincide.compiled import compiled

inner = partial(compiled, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Without what calls them from Python: to unbox a window takes longer to compile than they do."""
