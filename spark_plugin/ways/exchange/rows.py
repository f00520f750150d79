"""Events exchanged as they are: a row for each, labelled by SQL."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark_plugin.dataframes import columns as frames
from spark_plugin.ways.exchange.partition_labels import partition_labels
from spark_plugin.ways.exchange.plan import SlicePlan
from spark_plugin.ways.exchange.sides import ExchangedSides
from spark_plugin.ways.exchange.slice_columns import label_left, label_right
from spark_plugin.ways.exchange.worker.task import Rows
from spark_plugin.worker.wire.columns import (
    CODED,
    HASHES,
    KEY_HASH,
    LABEL,
    TIME,
    UNMATCHED,
    LabelCode,
    WireLayout,
)


def event_rows(events: ExchangedSides) -> tuple[DataFrame, Rows]:
    """Events of both sides in shared columns, each slice in a partition of its own.

    Returns
    -------
    DataFrame, Rows
        What to hand to a `SliceTask`, and how that reads it.
    """
    plan, layout = events.plan, events.layout
    assert isinstance(plan, SlicePlan)  # cells are cut by who packs
    code = LabelCode.of(
        int(partition_labels(plan.count).max()), (plan.reach.left[1], plan.reach.right[1])
    )
    left, right = (events.rows(side, events.own, ("midpoint", KEY_HASH)) for side in events.sides)
    left = label_left(left, plan, events.salts[0], layout.columns)
    # What sets events apart is asked of left ones alone.
    columns = [f"CAST(NULL AS BIGINT) AS {c}" if c in HASHES else c for c in layout.columns]
    rows = left.unionAll(label_right(right, plan, events.salts[1], columns))
    return in_partitions(rows, plan.count, layout, code), Rows(code)


def in_partitions(rows: DataFrame, count: int, layout: WireLayout, code: LabelCode) -> DataFrame:
    """Rows with labels of slices on the wire, each slice in a partition of its own."""
    others = [name for name in layout.columns if name not in (TIME, CODED)]
    label = [] if code.bits else [LABEL]
    return rows.repartition(count, LABEL).selectExpr(
        TIME, f"{with_label(code)} AS {CODED}", *others, *label
    )


def with_label(code: LabelCode) -> str:
    """SQL of the coded shape with the label in its lowest bits, as `LabelCode.decoded` reads it."""
    left, right = (frames.literal(largest + 1) for largest in code.largest)
    label = LABEL if code.bits else "0L"
    packed = f"{{}} * {frames.literal(1 << code.bits)} + {label}"
    of_left = packed.format(f"least({CODED}, {left})")
    of_right = packed.format(f"least(-1L - {CODED}, {right})")
    return (
        f"CASE WHEN {CODED} >= 0L THEN {of_left}"
        f" WHEN {CODED} = {frames.literal(UNMATCHED)} THEN {CODED}"
        f" ELSE -1L - ({of_right}) END"
    )
