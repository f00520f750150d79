"""Straight moves across borders: exact where floats cannot tell, whichever way it is decided."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from coincide.model.borders.crossings import IN
from coincide.model.borders.lines import crossing_offsets, meets

SPANS = [1, 2, 6, 10, 1000, 60_000_000, 2**40, 2**45, 2**50]
MODES = {
    "grid": lambda rng, n: rng.integers(0, 9, n) / 2.0,
    "tenths": lambda rng, n: rng.integers(0, 30, n) * 0.1,
    "far": lambda rng, n: rng.integers(0, 30, n) * 0.1 + 1e6,
    "huge": lambda rng, n: rng.integers(-5, 5, n) * 1e300,
    "tiny": lambda rng, n: rng.integers(-5, 5, n) * 5e-324,
}


@pytest.mark.parametrize("mode", MODES)
def test_offsets_are_those_of_fractions(mode: str) -> None:
    rng, n = np.random.default_rng(1), 4_000
    border, before, after = (MODES[mode](rng, n) for _ in range(3))
    crosses = (before < border) & (border <= after)
    border, before, after = border[crosses], before[crosses], after[crosses]
    span = rng.choice(SPANS, border.size)
    found = crossing_offsets(
        before[:, None], after[:, None], span, border[:, None],
        np.full((border.size, 1), np.inf), np.zeros(border.size, np.uint8),
        np.full(border.size, IN, np.int8),
    )  # fmt: skip
    for k, offset in enumerate(found.tolist()):
        share = (Fraction(border[k]) - Fraction(before[k])) / (
            Fraction(after[k]) - Fraction(before[k])
        )
        assert offset == share * int(span[k]) // 1
    assert border.size > n / 10


def test_a_move_too_long_for_floats() -> None:
    """It is in the one dimension at 0.83 of its way, when it has left the other at 0.2."""
    before, after = np.array([[-1.5e308, 0.0]]), np.array([[1.5e308, 1.0]])
    for upper, met in ((0.2, False), (0.9, True)):
        lowest, highest = np.array([[1e308, 0.1]]), np.array([[1.2e308, upper]])
        assert meets(before, after, lowest, highest, np.zeros(1, np.uint8)).tolist() == [met]
