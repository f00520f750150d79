"""Events as Spark rows in the columns of the wire."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.time_columns import INVALID_REASONS, range_hint
from coincide.engine.events.timestamps import words_of_blamed
from coincide.model.errors import option
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames import columns as frames
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.wire import CODED, TIME, UNMATCHED, WireLayout

_SHOWN_TYPES = (
    T.IntegralType, T.FloatType, T.DoubleType, T.DateType, T.TimestampType, T.TimestampNTZType,
)  # fmt: skip
"""Columns that an error shows of a row: those that cost valid rows nothing to have ready."""
_MOST_SHOWN = 4


def wire_rows(
    side: EventFrame,
    layout: WireLayout,
    keeps_unmatched: bool,
    raise_invalid: bool,
    *,
    place: Sequence[str] = (),
    near: Column | None = None,
    keeps_right: bool = False,
) -> DataFrame:
    """Wire columns of one side, with those of its rows that match nothing if they are kept."""
    is_left = side.side == "left"
    payload = _encoded(side, layout.payload(side.side), side.payload)
    tested = _encoded(side, layout.tested(side.side), side.tested)
    columns = {**_encoded(side, layout.keys, side.by), **payload, **tested}
    known = {*columns, *layout.places, *layout.identity}
    barrier, above = _barrier(side)
    shown = _shown(side) if raise_invalid else {}
    rows = side.source.selectExpr(
        *side.columns,
        *(side.identities if layout.identity else []),
        *side.counted_columns,
        *(f"{value} AS {name}" for name, value in columns.items()),
        *(f"{frames.quoted(name)} AS {slot}" for slot, name in shown.items()),
        *barrier,
    )
    keeps = keeps_unmatched if is_left else keeps_right
    with_null = keeps and side.longer_than is None
    kept = F.expr(f"{above}({_kept(side, with_null, raise_invalid, shown)})")
    if side.is_in_part is not None:
        part = F.expr(side.is_in_part)
        near = part if near is None else near & part
    if near is not None:
        # Spark may look at it before the other test, which then is never asked of a row without matches.
        kept &= F.when(F.expr(side.is_ok), near).otherwise(F.lit(True))
    rows = side.counted(rows).where(kept)
    time, coded = "high", side.shape if is_left else f"-1L - ({side.shape})"
    midpoint = side.midpoint
    if with_null:
        time, coded, midpoint = (
            f"CASE WHEN {side.is_ok} THEN {x} END" for x in (time, coded, midpoint)
        )
        time, coded = f"coalesce({time}, 0L)", f"coalesce({coded}, {frames.literal(UNMATCHED)})"
    slots = [name if name in known else f"NULL AS {name}" for name in layout.columns[2:]]
    return rows.selectExpr(
        f"{time} AS {TIME}",
        f"{coded} AS {CODED}",
        *slots,
        *(f"{midpoint} AS midpoint" if name == "midpoint" else name for name in place),
    )


def _barrier(side: EventFrame) -> tuple[list[str], str]:
    """A column, and a condition that is always met: they keep Spark from moving a test below."""
    # There it would write out ``low`` and ``high`` wherever they are named, too much for Java's compiler.
    if side.source.isStreaming:
        return [], ""
    return ["monotonically_increasing_id() AS number"], "number >= 0L AND "


def _shown(side: EventFrame) -> dict[str, str]:
    """Columns by which the owner finds a row that is invalid, and what they are called on the way."""
    # With RAPIDS, one that it does not know would bring the whole test back to the CPU.
    if is_accelerated(side.spark):
        return {}
    names = dict.fromkeys([*side.times.columns, *side.by, *side.payload])
    shown = (name for name in names if isinstance(side.kind_of(name), _SHOWN_TYPES))
    return {f"shown_{i}": name for i, name in enumerate(islice(shown, _MOST_SHOWN))}


def _kept(side: EventFrame, with_null: bool, raise_invalid: bool, shown: dict[str, str]) -> str:
    """Which rows go on: events that can match, and with_null those of no time or key."""
    if not raise_invalid:
        return f"{side.is_ok} OR {side.is_null}" if with_null else side.is_ok
    raised = f"CAST(raise_error({_words_of_invalid(side, shown)}) AS BOOLEAN)"
    keep = "true" if with_null else "false"
    return f"CASE WHEN {side.is_ok} THEN true WHEN {side.is_null} THEN {keep} ELSE {raised} END"


def _words_of_invalid(side: EventFrame, shown: dict[str, str]) -> str:
    """SQL of what to say of an invalid row, with its values in `shown` columns."""
    hint = range_hint(side.times.scales[0].tick, side.times.scales)
    words = dict(INVALID_REASONS)
    if hint:
        words["range"] = f"times that reach 2^61 ticks ({hint}) in"
    reasons = " ".join(
        f"WHEN {test} THEN {frames.text(f'{words[reason]} {words_of_blamed(side.times, reason)}')}"
        for reason, test in side.invalid_cases
    )
    cells = [
        f"concat({frames.text(f'{name}=')}, coalesce(CAST({slot} AS STRING), 'null'))"
        for slot, name in shown.items()
    ]
    row = [frames.text(" (found "), f"concat_ws(', ', {', '.join(cells)})", frames.text(")")]
    cure = (
        f". Fix the data, or skip such rows with {option('invalid', 'drop')}. Other rows may be"
        " invalid, too. If a planning job read all rows and found none, the source has changed"
        " since, or gives other rows each time. Compute it once before, for example with"
        " df.localCheckpoint()."
    )
    parts = [
        frames.text(side.called + ": "), f"CASE {reasons} END", frames.text(" of a row"),
        *(row if cells else []), frames.text(cure),
    ]  # fmt: skip
    return f"concat({', '.join(parts)})"


def _encoded(side: EventFrame, wire_names: Sequence[str], names: list[str]) -> dict[str, str]:
    return {
        wire: frames.encode(frames.quoted(name), side.kind_of(name))
        for wire, name in zip(wire_names, names, strict=True)
    }
