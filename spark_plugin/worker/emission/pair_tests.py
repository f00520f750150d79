"""What pairs must pass besides the timing condition."""

from __future__ import annotations

from coincide.condition import Window
from cpu_fallback.join.filtering import in_order_of_time
from spark_plugin.worker.arrow.sides import PairTest, Side
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.one_stream import window_in_order


def pairs_sought(spec: JoinSpec, left: Side, right: Side) -> tuple[Window, PairTest | None]:
    """In which part of the window pairs are looked for, and what test they must pass; None: all pass."""
    window, tests = spec.window, []
    if spec.is_one_stream:
        window, is_enough = window_in_order(window, left, right, spec.shift)
        if not is_enough:
            tests.append(_earlier_first(left, right, spec.shift))
    if spec.where is not None:
        tests.append(spec.where.between(left, right))
    if len(tests) < 2:
        return window, tests[0] if tests else None
    return window, lambda own, others: tests[0](own, others) & tests[1](own, others)


def _earlier_first(left: Side, right: Side, shift: int) -> PairTest:
    """Of two events of one stream the left one is earlier: by its later end, then by its rank."""
    assert left.ranks is not None
    assert right.ranks is not None
    times, ranks = (left.max_time, right.max_time), (left.ranks, right.ranks)
    return lambda *rows: in_order_of_time(times, ranks, rows, shift)
