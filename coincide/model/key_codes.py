"""Dense codes of whole numbers, in the order in which they are first met."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled


def codes_of(numbers: np.ndarray) -> tuple[np.ndarray, int] | None:
    """The code of each number, and how many there are; None where numbers are too far apart for a table."""
    if not numbers.size:
        return None
    least = int(numbers.min())
    spread = int(numbers.max()) - least + 1
    if spread > numbers.size:
        return None
    codes, known = np.empty(numbers.size, np.int64), np.full(spread, -1, np.int64)
    return codes, int(_code(numbers, least, known, codes))


@compiled
def _code(numbers, least, known, codes):
    found = np.int64(0)
    for i in range(numbers.size):
        place = numbers[i] - least
        if known[place] < 0:
            known[place] = found
            found += 1
        codes[i] = known[place]
    return found
