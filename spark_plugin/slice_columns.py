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
    frame = _stepped(frame, "first", midpoint - F.lit(plan.reach.last), plan.cuts, steps)
    frame = _stepped(frame, "last", midpoint - F.lit(plan.reach.first), plan.cuts, steps)
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
    # Two levels: a tree over every 64th cut, then a tree of look-ups among the cuts that follow it.
    block = np.arange(0, cuts.size, _LARGEST_TREE)
    frame = frame.withColumn("stepped", value)
    frame = frame.withColumn("block", _tree(F.col("stepped"), cuts[block[1:]], _literals(block)))
    padded = np.concatenate([cuts, np.full(_LARGEST_TREE, np.iinfo(np.int64).max)])
    inside = [_looked_up(F.col("block") + i, padded) for i in range(_LARGEST_TREE)]
    offsets = _literals(np.arange(_LARGEST_TREE + 1))
    index = F.col("block") + _tree(F.col("stepped"), inside, offsets)
    return frame.withColumn(name, _looked_up(index, values)).drop("stepped", "block")


def _tree(
    value: Column, cuts: Sequence[int | Column] | np.ndarray, leaves: Sequence[Column]
) -> Column:
    """A balanced tree of comparisons: ``leaves[number of cuts <= value]``."""
    if len(leaves) == 1:
        return leaves[0]
    middle = len(leaves) // 2
    cut = cuts[middle - 1]
    bound = cut if isinstance(cut, Column) else F.lit(int(cut))
    upper = _tree(value, cuts[middle:], leaves[middle:])
    return F.when(value >= bound, upper).otherwise(
        _tree(value, cuts[: middle - 1], leaves[:middle])
    )


def _literals(values: np.ndarray) -> list[Column]:
    return [F.lit(int(v)).cast("bigint") for v in values]


def _looked_up(index: Column, values: np.ndarray) -> Column:
    """``values[index]``, by a constant array that Spark folds once."""
    if values.size == 1 or (values == values[0]).all():
        return F.lit(int(values[0])).cast("bigint")
    if np.array_equal(values, np.arange(values.size)):
        return index.cast("bigint")
    return F.element_at(F.array(*_literals(values)), (index + 1).cast("int"))
