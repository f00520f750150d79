"""A short proof that two engines found the same pairs, in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def fingerprint(left_ids: np.ndarray, right_ids: np.ndarray) -> tuple[int, int, int, int]:
    """Number of pairs, and sums over them of the left id, the right id and their product."""
    product = int(np.dot(left_ids, right_ids)) if left_ids.size else 0
    return left_ids.size, int(left_ids.sum()), int(right_ids.sum()), product


def fingerprint_of_table(pairs: pa.Table) -> tuple[int, int, int, int]:
    """As `fingerprint`, of the first two columns."""
    return fingerprint(*(pairs.column(i).to_numpy() for i in range(2)))


def sums(left: str, right: str) -> str:
    """The same in SQL."""
    return f"count(*), sum({left}), sum({right}), sum({left} * {right})"
