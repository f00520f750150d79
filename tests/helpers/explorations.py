"""What an exploration has to count, by trying every pair in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cpu_fallback.reference.decision import (
    decision_is_clear,
    qualifies,
    satisfaction_probability,
)
from tests.helpers.strategies import JoinCase, Row

LEAST = 1e-9
CONFIDENCES = [LEAST, *(i / 100 for i in range(1, 101))]
"""The confidences of the curve, the first for all candidates."""


class TriedPair(NamedTuple):
    left: int
    right: int
    probability: Fraction
    doubled_delay: int


def tried_pairs(case: JoinCase) -> list[TriedPair]:
    """Every pair of rows with times and equal keys, by their places in the lists."""
    return [
        TriedPair(i, j, _probability(a, b, case), sum(_ends(b)) - sum(_ends(a)))
        for i, a in enumerate(case.left)
        for j, b in enumerate(case.right)
        if _can_match(a, b, case.by)
    ]


def is_clear(pairs: Sequence[TriedPair], confidences: Sequence[float]) -> bool:
    return all(decision_is_clear(p.probability, ct) for p in pairs for ct in confidences)


def at(pairs: Sequence[TriedPair], confidence: float) -> Iterator[TriedPair]:
    return (pair for pair in pairs if qualifies(pair.probability, confidence))


def matches(pairs: Sequence[TriedPair], case: JoinCase, side: str, confidence: float) -> Counter:
    """Events by the number of their matches."""
    counts = Counter(getattr(pair, side) for pair in at(pairs, confidence))
    return Counter(counts[i] for i in range(len(getattr(case, side))))


def _can_match(a: Row, b: Row, by: Sequence[str]) -> bool:
    return None not in (*_ends(a), *_ends(b)) and all(
        a[key] is not None and a[key] == b[key] for key in by
    )


def _ends(row: Row) -> tuple[int, int]:
    return row["min_time"], row["max_time"]


def _probability(a: Row, b: Row, case: JoinCase) -> Fraction:
    return satisfaction_probability(*_ends(a), *_ends(b), case.lo, case.hi)


def burst(left: int, right: int) -> tuple[pa.Table, pa.Table]:
    """Events of which each is a candidate for each."""
    rng = np.random.default_rng(5)
    return tuple(
        pa.table({"min_time": (low := rng.integers(0, 100, size)), "max_time": low + 900})
        for size in (left, right)
    )  # type: ignore[return-value]
