"""What pairs must pass besides the timing condition."""

from __future__ import annotations

import numpy as np

from spark_plugin.worker.arrow.sides import PairTest, Side
from spark_plugin.worker.emission.spec import JoinSpec


def pair_test(spec: JoinSpec, left: Side, right: Side) -> PairTest | None:
    """The test of pairs of two sides; None if all pass."""
    tests = []
    if spec.is_one_stream:
        tests.append(_earlier_first(left, right, spec.shift))
    if spec.where is not None:
        tests.append(spec.where.between(left, right))
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda own, others: tests[0](own, others) & tests[1](own, others)


def _earlier_first(left: Side, right: Side, shift: int) -> PairTest:
    """Of two events of one stream the left one is earlier: by its later end, then by its rank."""
    own, others = left.ranks, right.ranks
    assert own is not None
    assert others is not None

    def test(left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        apart = right.max_time[right_rows] + shift - left.max_time[left_rows]
        return (apart > 0) | ((apart == 0) & (own[left_rows] < others[right_rows]))

    return test
