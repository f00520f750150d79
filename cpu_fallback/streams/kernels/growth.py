"""Room for pairs that turn out to be more than expected."""

from __future__ import annotations

import numpy as np

from coincide.compiled import compiled
from coincide.copying import copy_into


@compiled(allocates=True)
def grown(array, used, needed):
    """An array with room for `needed` entries: the same, or a larger copy of those used."""
    if needed <= array.size:
        return array
    larger = np.empty(needed + needed // 2, np.int64)
    copy_into(larger[:used], array[:used])
    return larger
