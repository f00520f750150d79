"""Events as Spark rows in the columns of the wire."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from spark_plugin.dataframes import columns as frames
from spark_plugin.dataframes.events import REASONS, EventFrame
from spark_plugin.dataframes.row_numbers import ROW_MASK
from spark_plugin.worker.arrow.time_columns import INVALID_REASONS
from spark_plugin.worker.wire.columns import CODED, HASHES, TIME, UNMATCHED, WireLayout

_ROW_NUMBER = "monotonically_increasing_id() AS number"


def wire_rows(
    side: EventFrame,
    layout: WireLayout,
    keeps_unmatched: bool,
    raise_invalid: bool,
    *,
    place: Sequence[str] = (),
) -> DataFrame:
    """Wire columns of one side.

    Parameters
    ----------
    side : EventFrame
    layout : WireLayout
        Columns that are of the other side alone are null.
    keeps_unmatched : bool
        Whether left events that match nothing, since their time or a key is null, go on.
    raise_invalid : bool
        Whether an invalid row fails the job.
    place : sequence of str
        Further columns, which tell where a row goes: of `midpoint`, `key_hash` and `HASHES`.
    """
    is_left = side.side == "left"
    barrier, above = _barrier(side)
    rows, slots = _with_slots(
        side, layout, [*(side.hashes if HASHES[0] in place else []), *barrier]
    )
    with_null = is_left and keeps_unmatched
    rows = side.counted(rows).where(f"{above}({_kept(side, with_null, raise_invalid)})")
    time, coded, midpoint = "high", _coded(side), side.midpoint
    if with_null:
        time, coded, midpoint = (
            f"CASE WHEN {side.is_ok} THEN {x} END" for x in (time, coded, midpoint)
        )
        time, coded = f"coalesce({time}, 0L)", f"coalesce({coded}, {frames.literal(UNMATCHED)})"
    return rows.selectExpr(
        f"{time} AS {TIME}",
        f"{coded} AS {CODED}",
        *slots,
        *(f"{midpoint} AS midpoint" if name == "midpoint" else name for name in place),
    )


def told_rows(side: EventFrame, layout: WireLayout, most: int | None) -> DataFrame:
    """Wire columns of all rows of one side, and what those are that are no events that can match.

    Of these `CODED` is `UNMATCHED`, and `TIME` is the index in `REASONS`, of right ones above those of left.
    With keys there is ``key_hash`` besides; where times are floats ``rounded``, by how many ticks they are.

    Parameters
    ----------
    side : EventFrame
    layout : WireLayout
        Columns that are of the other side alone are null.
    most : int or None
        Rows of a partition that are handed out at most; None: all.
    """
    told = [_ROW_NUMBER] if side.rounding == "0D" else [_ROW_NUMBER, f"{side.rounding} AS rounded"]
    rows, slots = _with_slots(side, layout, told)
    # A condition on the number also keeps Spark from writing out low and high wherever they are named.
    first = "true" if most is None else f"(number & {ROW_MASK}L) < {most}L"
    reason = f"({side.reason}) + {0 if side.side == 'left' else len(REASONS)}"
    return rows.where(f"number >= 0L AND {first}").selectExpr(
        f"CASE WHEN {side.is_ok} THEN high ELSE CAST({reason} AS BIGINT) END AS {TIME}",
        f"CASE WHEN {side.is_ok} THEN {_coded(side)} ELSE {frames.literal(UNMATCHED)} END AS {CODED}",
        *slots,
        *(["key_hash"] if side.by else []),
        "0D AS rounded" if len(told) == 1 else "rounded",
    )


def _with_slots(
    side: EventFrame, layout: WireLayout, others: Sequence[str]
) -> tuple[DataFrame, list[str]]:
    """Rows with all that wire columns are made of, and what the ones behind time and shape are."""
    payload = _encoded(side, layout.payload(side.side), side.payload)
    tested = _encoded(side, layout.tested(side.side), side.tested)
    columns = {**_encoded(side, layout.keys, side.by), **payload, **tested}
    known = {*columns, *layout.places, *layout.identity}
    rows = side.source.selectExpr(
        *side.columns,
        *(side.identities if layout.identity else []),
        *side.counted_columns,
        *(f"{value} AS {name}" for name, value in columns.items()),
        *others,
    )
    return rows, [name if name in known else f"NULL AS {name}" for name in layout.columns[2:]]


def _coded(side: EventFrame) -> str:
    """SQL of the coded shape of an event that can match."""
    return side.shape if side.side == "left" else f"-1L - ({side.shape})"


def _barrier(side: EventFrame) -> tuple[list[str], str]:
    """A column, and a condition on it that is always met: they keep Spark from moving a test below.

    There it would write out ``low`` and ``high`` wherever the test names them, in methods that are too
    long for Java's compiler. In streams Spark has no such column.
    """
    if side.source.isStreaming:
        return [], ""
    return [_ROW_NUMBER], "number >= 0L AND "


def _kept(side: EventFrame, with_null: bool, raise_invalid: bool) -> str:
    """Which rows go on: events that can match, and with_null those of no time or key."""
    if not raise_invalid:
        return f"{side.is_ok} OR {side.is_null}" if with_null else side.is_ok
    raised = f"CAST(raise_error({_words_of_invalid(side)}) AS BOOLEAN)"
    keep = "true" if with_null else "false"
    return f"CASE WHEN {side.is_ok} THEN true WHEN {side.is_null} THEN {keep} ELSE {raised} END"


def _words_of_invalid(side: EventFrame) -> str:
    """SQL of what to say of an invalid row."""
    names = " and ".join(side.times.names)
    reasons = " ".join(
        f"WHEN {test} THEN {frames.text(INVALID_REASONS[reason])}"
        for reason, test in side.invalid_cases
    )
    found = (
        f" {names} of a row. Mend the data, or leave such rows out with"
        " options=CorrelateOptions(invalid='drop')."
        " If a look at the data found none when the join was planned, the source has changed since, or"
        " gives other rows each time it is computed: compute it once before, as by df.localCheckpoint()"
    )
    return f"concat({frames.text(side.called + ': ')}, CASE {reasons} END, {frames.text(found)})"


def _encoded(side: EventFrame, wire_names: Sequence[str], names: list[str]) -> dict[str, str]:
    return {
        wire: frames.encode(
            frames.quoted(name), frames.field_of(side.source, side.called, name).dataType
        )
        for wire, name in zip(wire_names, names, strict=True)
    }
