"""The sides of a join of one stream with itself, as its pairs are looked for."""

from __future__ import annotations

from dataclasses import replace

from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.one_stream import numbered


def of_stream(left: Side, right: Side, spec: JoinSpec) -> tuple[Side, Side, JoinSpec]:
    """Sides with ranks, and what is computed: right times are moved instead of the window.

    Who is the earlier is told by times. Two sides stay as they are.
    """
    if not spec.is_one_stream:
        return left, right, spec
    left, right = numbered(left, right)
    if spec.shift:
        right = replace(right, max_time=right.max_time + spec.shift)
        spec = spec.but(window=spec.window.moved(spec.shift))
    return left, right, spec
