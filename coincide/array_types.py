"""How a named tuple that kernels take annotates its arrays."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numba.core import types

Int64s = Annotated[np.ndarray, types.Array(types.int64, 1, "C")]
"""A C-contiguous array of one dimension; others likewise."""

Float64s = Annotated[np.ndarray, types.Array(types.float64, 1, "C")]
