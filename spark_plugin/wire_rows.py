"""Events as Spark rows in the columns of the wire."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from spark_plugin import dataframes as frames
from spark_plugin.events import REASONS, EventFrame
from spark_plugin.wire import CODED, TIME, UNMATCHED, WireLayout


def wire_rows(
    side: EventFrame, layout: WireLayout, keeps_unmatched: bool, raise_invalid: bool
) -> DataFrame:
    """Wire columns of one side, with `midpoint` and `key_hash`, which tell where it goes.

    Parameters
    ----------
    side : EventFrame
    layout : WireLayout
        Columns that are of the other side alone are null.
    keeps_unmatched : bool
        Whether left events that match nothing, since their time or a key is null, go on.
    raise_invalid : bool
        Whether an invalid row fails the job: where nobody has looked for them before.
    """
    is_left = side.side == "left"
    payload = _encoded(side, layout.payload(side.side), side.payload)
    columns = {**_encoded(side, layout.keys, side.by), **payload}
    rows = side.source.selectExpr(
        *side.columns, *(f"{value} AS {name}" for name, value in columns.items())
    )
    with_null = is_left and keeps_unmatched
    rows = rows.where(_kept(side, with_null, raise_invalid))
    time, coded = "high", "high - low" if is_left else "low - high - 1L"
    midpoint = "low + high"
    if with_null:
        time, coded, midpoint = (
            f"CASE WHEN {side.is_ok} THEN {x} END" for x in (time, coded, midpoint)
        )
        time, coded = f"coalesce({time}, 0L)", f"coalesce({coded}, {frames.literal(UNMATCHED)})"
    slots = [name if name in columns else f"NULL AS {name}" for name in layout.columns[2:]]
    return rows.selectExpr(
        f"{time} AS {TIME}", f"{coded} AS {CODED}", *slots, f"{midpoint} AS midpoint", "key_hash"
    )


def _kept(side: EventFrame, with_null: bool, raise_invalid: bool) -> str:
    """Which rows go on: events that can match, and with_null those of no time or key."""
    if not with_null and not raise_invalid:
        return side.is_ok
    last = REASONS.index("null" if with_null else "ok")
    keep = f"{side.reason} <= {last}"
    if not raise_invalid:
        return keep
    text = f"{side.side}: invalid times in a row; run without declared statistics to see which"
    raised = f"CAST(raise_error('{text}') AS BOOLEAN)"
    return f"CASE WHEN {side.reason} > {REASONS.index('null')} THEN {raised} ELSE {keep} END"


def _encoded(side: EventFrame, wire_names: Sequence[str], names: list[str]) -> dict[str, str]:
    return {
        wire: frames.encode(
            frames.quoted(name), frames.field_of(side.source, side.side, name).dataType
        )
        for wire, name in zip(wire_names, names, strict=True)
    }
