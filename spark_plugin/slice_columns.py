"""The slice plan as Spark expressions: the label of a left row, the labels of a right row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_plugin.partition_labels import partition_labels
from spark_plugin.slices import SlicePlan

LABEL = "label"
_TIME_SLICE, _CELL, _SLICE = "time_slice", "cell", "slice"
_LARGEST_TREE = 64
"""Leaves of a tree of comparisons; larger ones would be too much code for the JVM to compile."""
_BEYOND = np.iinfo(np.int64).max


def label_left(
    frame: DataFrame, plan: SlicePlan, midpoint: Column, key_hash: Column, salt: Column
) -> DataFrame:
    """Add the label of the one slice of each left row.

    Parameters
    ----------
    frame : DataFrame
    plan : SlicePlan
    midpoint : Column
        Doubled midpoint; null goes to the first slice.
    key_hash : Column
        Hash of the keys.
    salt : Column
        bigint that spreads the rows of a cell evenly.
    """
    labels = partition_labels(plan.count)
    if plan.buckets == 1 and not plan.is_split:
        return _stepped(frame, LABEL, midpoint, plan.cuts, labels)
    frame = _stepped(frame, _TIME_SLICE, midpoint, plan.cuts, np.arange(plan.cuts.size + 1))
    frame = frame.withColumn(_CELL, _cell(plan, key_hash))
    first = _looked_up(F.col(_CELL), plan.first_slices)
    if plan.is_split:
        first += F.pmod(salt, _looked_up(F.col(_CELL), plan.splits))
    return frame.withColumn(LABEL, _looked_up(first, labels)).drop(_TIME_SLICE, _CELL)


def label_right(frame: DataFrame, plan: SlicePlan, midpoint: Column, key_hash: Column) -> DataFrame:
    """Copy each right row to every slice that it can reach, and add their labels."""
    labels = partition_labels(plan.count)
    if plan.count == 1:
        return frame.withColumn(LABEL, F.lit(int(labels[0])))
    steps = np.arange(plan.cuts.size + 1)
    first_cuts, last_cuts = plan.seen_cuts
    frame = _stepped(frame, "first", midpoint, first_cuts, steps)
    frame = _stepped(frame, "last", midpoint, last_cuts, steps)
    frame = frame.withColumn(_TIME_SLICE, F.explode(F.sequence("first", "last"))).drop(
        "first", "last"
    )
    frame = frame.withColumn(_CELL, _cell(plan, key_hash)).drop(_TIME_SLICE)
    first = _looked_up(F.col(_CELL), plan.first_slices)
    if plan.is_split:
        past = first + _looked_up(F.col(_CELL), plan.splits)
        frame = frame.withColumn(_SLICE, F.explode(F.sequence(first, past - 1)))
        first = F.col(_SLICE)
    return frame.withColumn(LABEL, _looked_up(first, labels)).drop(_CELL, _SLICE)


def _cell(plan: SlicePlan, key_hash: Column) -> Column:
    if plan.buckets == 1:
        return F.col(_TIME_SLICE)
    return F.col(_TIME_SLICE) * plan.buckets + F.pmod(key_hash, F.lit(plan.buckets))


def _stepped(
    frame: DataFrame, name: str, value: Column, cuts: np.ndarray, values: np.ndarray
) -> DataFrame:
    """Add the column ``values[number of cuts <= value]``; null counts as below every cut."""
    if cuts.size < _LARGEST_TREE:
        return frame.withColumn(name, _tree(value, cuts, _literals(values)))
    # Binary search, one projection a step: little code and small plans, whatever the number of cuts.
    depth = int(cuts.size).bit_length()
    bounds = np.concatenate([cuts, np.full(2**depth - 1 - cuts.size, _BEYOND)])
    frame = frame.withColumn("below", F.lit(0).cast("bigint"))
    for step in (2**k for k in reversed(range(depth))):
        bound = _looked_up(F.col("below") + (step - 1), bounds)
        found = F.when(value >= bound, step).otherwise(0)
        frame = frame.withColumn("below", F.col("below") + found)
    return frame.withColumn(name, _looked_up(F.col("below"), values)).drop("below")


def _tree(value: Column, cuts: np.ndarray, leaves: Sequence[Column]) -> Column:
    """A balanced tree of comparisons: ``leaves[number of cuts <= value]``."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    upper = _tree(value, cuts[middle:], leaves[middle:])
    lower = _tree(value, cuts[: middle - 1], leaves[:middle])
    return F.when(value >= F.lit(int(cuts[middle - 1])), upper).otherwise(lower)


def _literals(values: np.ndarray) -> list[Column]:
    return [F.lit(int(v)).cast("bigint") for v in values]


def _looked_up(index: Column, values: np.ndarray) -> Column:
    """``values[index]``, by a constant array that Spark folds once."""
    if values.size == 1 or (values == values[0]).all():
        return F.lit(int(values[0])).cast("bigint")
    if np.array_equal(values, np.arange(values.size)):
        return index.cast("bigint")
    # Spelled out in one string: thousands of literals would each be a call into the JVM.
    spelled = F.split(F.lit(",".join(map(str, values.tolist()))), ",")
    return F.element_at(spelled.cast("array<bigint>"), (index + 1).cast("int"))
