"""The slice plan as Spark expressions: labels of rows, and the partitions that they are sent to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from pyspark.sql import DataFrame

from spark_plugin.frames.columns import literal
from spark_plugin.tasks.samples import FARTHEST, Reach
from spark_plugin.tasks.slices import SlicePlan
from spark_plugin.tasks.wire import CODED, LABEL

_TIME_SLICE, _CELL, _SLICE = "time_slice", "cell", "slice"
_FIRST, _LAST = (literal(sign * (2**63 - 1)) for sign in (-1, 1))
"""Before and after all midpoints."""
_LARGEST_TREE = 64
"""Leaves of a tree of comparisons; larger ones would be too much code for the JVM to compile."""


def label_left(frame: DataFrame, plan: SlicePlan, salt: str, columns: Sequence[str]) -> DataFrame:
    """Copy each left row to the slices that it is in, mostly one, with their labels."""
    labels = partition_labels(plan.count)
    first_parts = labels[plan.first_parts]
    anywhere = _looked_up(f"pmod({salt}, {literal(first_parts.size)})", first_parts)
    if plan.buckets == 1 and not plan.is_split:
        frame, step = _stepped(frame, "midpoint", plan.cuts, labels)
        label = f"IF(midpoint IS NULL, {anywhere}, {step})"
        return frame.selectExpr(f"{label} AS {LABEL}", *columns)
    frame, step = _stepped(frame, "midpoint", plan.cuts, np.arange(plan.cuts.size + 1))
    frame = frame.selectExpr("*", f"{_cell(plan, step)} AS {_CELL}")
    slice_ = _looked_up(_CELL, plan.first_slices)
    if plan.is_split:
        part = f"pmod({salt}, {_looked_up(_CELL, plan.left_parts)})"
        slice_ += f" + {part} * {_looked_up(_CELL, plan.right_parts)}"
    if plan.deals_right:
        last = f"{slice_} + {_looked_up(_CELL, plan.right_parts)} - 1L"
        slices = f"IF(midpoint IS NULL, array(0L), sequence({slice_}, {last}))"
        frame = frame.selectExpr("*", f"explode({slices}) AS {_SLICE}")
        slice_ = _SLICE
    label = f"IF(midpoint IS NULL, {anywhere}, {_looked_up(slice_, labels)})"
    return frame.selectExpr(f"{label} AS {LABEL}", *columns)


def label_right(frame: DataFrame, plan: SlicePlan, salt: str, columns: Sequence[str]) -> DataFrame:
    """Copy each right row to every slice that it can reach, with their labels."""
    labels = partition_labels(plan.count)
    if plan.count == 1:
        return frame.selectExpr(f"{literal(labels[0])} AS {LABEL}", *columns)
    steps, reached = np.arange(plan.cuts.size + 1), []
    cuts, ends = plan.seen_cuts, ("midpoint", "midpoint")
    if plan.reach.steps:
        cuts, ends = (plan.cuts, plan.cuts), ("earliest", "latest")
        frame = frame.selectExpr("*", *_by_shape(plan.reach))
    for name, end, seen in zip(("first", "last"), ends, cuts, strict=True):
        frame, step = _stepped(frame, end, seen, steps, f"{name}_block")
        reached.append(f"{step} AS {name}_slice")
    frame = frame.selectExpr("*", *reached)
    if plan.reach.steps:
        frame = frame.where("first_slice <= last_slice")
    frame = frame.selectExpr("*", f"explode(sequence(first_slice, last_slice)) AS {_TIME_SLICE}")
    frame = frame.selectExpr("*", f"{_cell(plan, _TIME_SLICE)} AS {_CELL}")
    slice_ = _looked_up(_CELL, plan.first_slices)
    if plan.is_split:
        step = _looked_up(_CELL, plan.right_parts)
        first = f"{slice_} + pmod({salt}, {step})"
        last = f"{first} + ({_looked_up(_CELL, plan.left_parts)} - 1L) * {step}"
        frame = frame.selectExpr("*", f"explode(sequence({first}, {last}, {step})) AS {_SLICE}")
        slice_ = _SLICE
    return frame.selectExpr(f"{_looked_up(slice_, labels)} AS {LABEL}", *columns)


def _by_shape(reach: Reach) -> list[str]:
    """SQL of `Reach.of_right`."""
    shape, ends = f"(-1L - {CODED})", []
    for name, of_nothing, by in (
        ("earliest", _LAST, lambda step: -step.last), ("latest", _FIRST, lambda step: -step.first),
    ):  # fmt: skip
        cases = [
            f"WHEN {shape} BETWEEN {literal(step.lowest)} AND {literal(step.highest)} THEN"
            f" {of_nothing if step.first > step.last else _moved(by(step))}"
            for step in reach.steps
        ]
        ends.append(f"CASE {' '.join(cases)} ELSE {_moved(-reach.middle)} END AS {name}")
    return ends


def _moved(by: int) -> str:
    """SQL of a midpoint that is so much later; further than any left one where sums could overflow."""
    if abs(by) > FARTHEST:
        return _LAST if by > 0 else _FIRST
    return f"midpoint + {literal(by)}"


def _cell(plan: SlicePlan, time_slice: str) -> str:
    if plan.buckets == 1:
        return time_slice
    return f"{time_slice} * {plan.buckets} + pmod(key_hash, {literal(plan.buckets)})"


def _stepped(
    frame: DataFrame, value: str, cuts: np.ndarray, values: np.ndarray, block: str = "block"
) -> tuple[DataFrame, str]:
    """SQL of ``values[number of cuts <= value]``, and the frame with the column that it may need.

    Null counts as below every cut.
    """
    if cuts.size < _LARGEST_TREE:
        return frame, _tree(value, [literal(cut) for cut in cuts], [literal(v) for v in values])
    # Two levels: a tree over every 64th cut, then those of the 64 that follow it are counted.
    firsts = np.arange(0, cuts.size, _LARGEST_TREE)
    tree = _tree(value, [literal(cut) for cut in cuts[firsts[1:]]], [literal(b) for b in firsts])
    near = f"slice({_array(cuts)}, CAST({block} AS INT) + 1, {_LARGEST_TREE})"
    index = f"({block} + size(filter({near}, cut -> cut <= {value})))"
    return frame.selectExpr("*", f"{tree} AS {block}"), _looked_up(index, values)


def _tree(value: str, cuts: Sequence[str], leaves: Sequence[str]) -> str:
    """A balanced tree of comparisons: ``leaves[number of cuts <= value]``."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    upper = _tree(value, cuts[middle:], leaves[middle:])
    lower = _tree(value, cuts[: middle - 1], leaves[:middle])
    return f"IF({value} >= {cuts[middle - 1]}, {upper}, {lower})"


def _looked_up(index: str, values: np.ndarray) -> str:
    """``values[index]``, by a constant array that Spark folds once."""
    if (values == values[0]).all():
        return literal(values[0])
    if np.array_equal(values, np.arange(values.size)):
        return index
    return f"element_at({_array(values)}, CAST({index} + 1 AS INT))"


def _array(values: np.ndarray) -> str:
    return f"array({', '.join(literal(value) for value in values)})"


_SEED = np.uint32(42)
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


@lru_cache(maxsize=16)
def partition_labels(partitions: int) -> np.ndarray:
    """One label for each partition."""
    labels = np.full(partitions, -1, np.int64)
    start, step = 0, 16 * partitions
    while (labels < 0).any():
        candidates = np.arange(start, start + step)
        homes = spark_hash(candidates).astype(np.int64) % partitions
        free, first = np.unique(homes, return_index=True)
        unset = labels[free] < 0
        labels[free[unset]] = candidates[first[unset]]
        start += step
    labels.flags.writeable = False
    return labels


def spark_hash(values: np.ndarray) -> np.ndarray:
    """Spark SQL's ``hash`` of a bigint: Murmur3 (x86, 32 bit) over its two halves, seed 42."""
    bits = values.astype(np.int64).view(np.uint64)
    low, high = bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)
    state = _mix(_mix(np.full(values.shape, _SEED), low), high) ^ np.uint32(8)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ (state >> np.uint32(shift))) * np.uint32(factor)
    return (state ^ (state >> np.uint32(16))).view(np.int32)


def _mix(state: np.ndarray, half: np.ndarray) -> np.ndarray:
    mixed = state ^ (_rotated(half * _C1, 15) * _C2)
    return _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotated(bits: np.ndarray, by: int) -> np.ndarray:
    return (bits << np.uint32(by)) | (bits >> np.uint32(32 - by))
