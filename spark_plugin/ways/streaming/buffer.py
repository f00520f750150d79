"""The stateful operator: it keeps the packs of a slice until the watermark has passed it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from coincide.model.errors import ConditionError, brief
from spark_plugin.tasks.blobs import rows_of
from spark_plugin.tasks.packing import EVENTS, IS_LEFT
from spark_plugin.tasks.streaming import IS_LATE, IS_OWN, ROWS, SETTINGS
from spark_plugin.tasks.wire import LABEL

BUFFERED = (
    f"{LABEL} bigint, {IS_LATE} boolean, {IS_LEFT} boolean, {IS_OWN} boolean, {ROWS} bigint,"
    f" {EVENTS} binary"
)
"""The columns of packs that come out."""
_STORED = StructType([
    StructField(IS_LEFT, BooleanType()), StructField(IS_OWN, BooleanType()),
    StructField(EVENTS, BinaryType()),
])  # fmt: skip
_Stored = tuple[bool, bool, bytes]
"""A row of the state."""


class SliceBuffer(StatefulProcessor):
    """Keeps packs by label. It knows nothing of what is in them, and of joins."""

    def __init__(self, *, keeps_late: bool) -> None:
        self._keeps_late = keeps_late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        self._handle = handle
        self._packs = handle.getListState("packs", _STORED)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep packs of a slice, and let late ones out; or hold the settings against earlier ones."""
        (label,) = key
        if label == SETTINGS:
            self._check(next(rows))
            return
        passed, kept, closes = timerValues.getCurrentWatermarkInMs(), [], 0
        for row in rows:
            pack = row.is_left, row.is_own, bytes(row.events)
            if row.due is None:
                yield _let_out(label, pack)
            elif row.due > passed:
                closes = row.closes
                kept.append(pack)
            elif row.is_own:
                yield self._late(label, pack)
        if kept:
            if not self._packs.exists():
                self._handle.registerTimer(closes)
            self._packs.appendList(kept)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[Row]:
        """Let the packs of a slice out that is closed."""
        (label,) = key
        for pack in self._packs.get():
            yield _let_out(label, pack)
        self._packs.clear()

    def close(self) -> None:
        """Nothing is left to do."""

    def _late(self, label: int, pack: _Stored) -> Row:
        is_left, is_own, events = pack
        kept = pack if self._keeps_late else (is_left, is_own, b"")
        return _let_out(label, kept, late_rows=rows_of(pa.py_buffer(events)))

    def _check(self, row: Row) -> None:
        """Refuse to go on with packs that were made for another join."""
        now = bytes(row.events)
        for _, _, earlier in self._packs.get():
            if bytes(earlier) != now:
                raise ConditionError(_difference(json.loads(bytes(earlier)), json.loads(now)))
            return
        self._packs.appendList([(True, True, now)])


def _let_out(label: int, pack: _Stored, *, late_rows: int = 0) -> Row:
    is_left, is_own, events = pack
    return Row(
        label=label, is_late=late_rows > 0, is_left=is_left, is_own=is_own, late_rows=late_rows,
        events=bytes(events),
    )  # fmt: skip


def _difference(earlier: dict[str, Any], now: dict[str, Any]) -> str:
    changes = [
        f"{name} was {brief(earlier.get(name))} and is {brief(now.get(name))}"
        for name in dict.fromkeys([*earlier, *now])
        if earlier.get(name) != now.get(name)
    ]
    return (
        f"the checkpoint belongs to another join (found: {'; '.join(changes)}). Give the arguments"
        " of the earlier run, or begin with a new checkpoint."
    )
