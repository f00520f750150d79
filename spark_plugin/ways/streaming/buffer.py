"""The stateful operator: it keeps the packs of a slice until the watermark has passed it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
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
            if row.due is None:
                yield _let_out(label, row)
            elif row.due <= passed:
                if row.is_own:
                    yield self._late(label, row)
            else:
                closes = row.closes
                kept.append(Row(is_left=row.is_left, is_own=row.is_own, events=bytes(row.events)))
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

    def _late(self, label: int, row: Row) -> Row:
        count = rows_of(pa.py_buffer(row.events))
        return _let_out(label, row, late_rows=count, has_events=self._keeps_late)

    def _check(self, row: Row) -> None:
        """Refuse to go on with packs that were made for another join."""
        earlier = next(iter(self._packs.get()), None)
        if earlier is None:
            self._packs.appendList([Row(is_left=True, is_own=True, events=bytes(row.events))])
        elif bytes(earlier.events) != bytes(row.events):
            raise ConditionError(_difference(*(json.loads(each.events) for each in (earlier, row))))


def _let_out(label: int, pack: Any, *, late_rows: int = 0, has_events: bool = True) -> Row:
    events = bytes(pack.events) if has_events else b""
    return Row(
        label=label, is_late=late_rows > 0, is_left=pack.is_left, is_own=pack.is_own,
        late_rows=late_rows, events=events,
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
