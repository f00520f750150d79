"""The slice plan as Spark expressions: the label of a left row, the labels of a right row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame

from spark_plugin.dataframes.columns import literal
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.worker.wire.columns import LABEL

_TIME_SLICE, _CELL, _SLICE = "time_slice", "cell", "slice"
_LARGEST_TREE = 64
"""Leaves of a tree of comparisons; larger ones would be too much code for the JVM to compile."""


def label_left(frame: DataFrame, plan: SlicePlan, salt: str) -> DataFrame:
    """Copy each left row to the slices that it is in, mostly one, and add their labels.

    Parameters
    ----------
    frame : DataFrame
        With ``midpoint`` (doubled, bigint) and ``key_hash``. Rows of no midpoint match nothing:
        they are spread over the slices with first parts, one each.
    plan : SlicePlan
    salt : str
        SQL of a bigint that spreads the rows of a cell evenly.
    """
    labels = partition_labels(plan.count)
    first_parts = labels[plan.first_parts]
    anywhere = _looked_up(f"pmod({salt}, {literal(first_parts.size)})", first_parts)
    if plan.buckets == 1 and not plan.is_split:
        frame = _stepped(frame, _SLICE, "midpoint", plan.cuts, labels)
        label = f"IF(midpoint IS NULL, {anywhere}, {_SLICE})"
        return frame.selectExpr("*", f"{label} AS {LABEL}").drop(_SLICE)
    steps = np.arange(plan.cuts.size + 1)
    frame = _stepped(frame, _TIME_SLICE, "midpoint", plan.cuts, steps)
    frame = frame.selectExpr("*", f"{_cell(plan)} AS {_CELL}")
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
    return frame.selectExpr("*", f"{label} AS {LABEL}").drop(_TIME_SLICE, _CELL, _SLICE)


def label_right(frame: DataFrame, plan: SlicePlan, salt: str) -> DataFrame:
    """Copy each right row to every slice that it can reach, and add their labels.

    Parameters
    ----------
    frame : DataFrame
        With ``midpoint`` and ``key_hash``, as `label_left`.
    plan : SlicePlan
    salt : str
        As `label_left`.
    """
    labels = partition_labels(plan.count)
    if plan.count == 1:
        return frame.selectExpr("*", f"{literal(labels[0])} AS {LABEL}")
    steps = np.arange(plan.cuts.size + 1)
    for name, cuts in zip(("first_slice", "last_slice"), plan.seen_cuts, strict=True):
        frame = _stepped(frame, name, "midpoint", cuts, steps)
    frame = frame.selectExpr("*", f"explode(sequence(first_slice, last_slice)) AS {_TIME_SLICE}")
    frame = frame.selectExpr("*", f"{_cell(plan)} AS {_CELL}")
    slice_ = _looked_up(_CELL, plan.first_slices)
    if plan.is_split:
        step = _looked_up(_CELL, plan.right_parts)
        first = f"{slice_} + pmod({salt}, {step})"
        last = f"{first} + ({_looked_up(_CELL, plan.left_parts)} - 1L) * {step}"
        frame = frame.selectExpr("*", f"explode(sequence({first}, {last}, {step})) AS {_SLICE}")
        slice_ = _SLICE
    labelled = frame.selectExpr("*", f"{_looked_up(slice_, labels)} AS {LABEL}")
    return labelled.drop("first_slice", "last_slice", _TIME_SLICE, _CELL, _SLICE)


def _cell(plan: SlicePlan) -> str:
    if plan.buckets == 1:
        return _TIME_SLICE
    return f"{_TIME_SLICE} * {plan.buckets} + pmod(key_hash, {literal(plan.buckets)})"


def _stepped(
    frame: DataFrame, name: str, value: str, cuts: np.ndarray, values: np.ndarray
) -> DataFrame:
    """Add the column ``values[number of cuts <= value]``; null counts as below every cut."""
    if cuts.size < _LARGEST_TREE:
        tree = _tree(value, [literal(cut) for cut in cuts], [literal(v) for v in values])
        return frame.selectExpr("*", f"{tree} AS {name}")
    # Two levels: a tree over every 64th cut, then those of the 64 that follow it are counted.
    block = np.arange(0, cuts.size, _LARGEST_TREE)
    tree = _tree(value, [literal(cut) for cut in cuts[block[1:]]], [literal(b) for b in block])
    near = f"slice({_array(cuts)}, CAST(block AS INT) + 1, {_LARGEST_TREE})"
    index = f"(block + size(filter({near}, cut -> cut <= {value})))"
    frame = frame.selectExpr("*", f"{tree} AS block")
    return frame.selectExpr("*", f"{_looked_up(index, values)} AS {name}").drop("block")


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
