"""The stateful operators: they keep the packs of a slice until the watermark has passed it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, BooleanType, StructField, StructType

from coincide.engine.backends import release_gpu
from coincide.model.errors import ConditionError, brief
from spark_plugin.tasks.blobs import rows_of
from spark_plugin.tasks.grid import Grid
from spark_plugin.tasks.monitors import Monitors
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
_PART_BYTES = 16 << 20
"""Packs that are taken at once: a monitor looks at all that it remembers each time."""


class Buffer(StatefulProcessor, ABC):
    """Keeps packs, lets late ones out at once, and refuses those that were made for something else."""

    # Each label has the settings of its own: timers come without the rows that tell them.

    def __init__(self, settings: bytes, *, keeps_late: bool) -> None:
        self._settings, self._keeps_late = settings, keeps_late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        self._handle = handle
        self._packs = handle.getListState("packs", _STORED)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep packs of slices, and let late ones out; or hold the settings against earlier ones."""
        (label,) = key
        if label == SETTINGS:
            if not self._append([]):
                self._kept()
            return
        passed, kept = timerValues.getCurrentWatermarkInMs(), []
        for row in rows:
            pack = row.is_left, row.is_own, bytes(row.events)
            if row.due is None:
                yield _let_out(label, pack)
            elif row.due > passed:
                kept.append((row.closes, pack))
            elif row.is_own:
                yield self._late(label, pack)
        if kept:
            self._keep(kept)

    @abstractmethod
    def _keep(self, packs: list[tuple[int, _Stored]]) -> None:
        """Keep some packs of the label, each until a time."""

    def close(self) -> None:
        """Nothing is left to do."""

    def _late(self, label: int, pack: _Stored) -> Row:
        is_left, is_own, events = pack
        kept = pack if self._keeps_late else (is_left, is_own, b"")
        return _let_out(label, kept, late_rows=rows_of(pa.py_buffer(events)))

    def _append(self, packs: list[_Stored]) -> bool:
        """Keep packs of the label, and first of all the settings; whether it had none."""
        is_new = not self._packs.exists()
        if is_new:
            packs = [(True, True, self._settings), *packs]
        if packs:
            self._packs.appendList(packs)
        return is_new

    def _kept(self) -> Iterator[_Stored]:
        """The packs of the label, which must have been made with the arguments of now."""
        packs: Iterator[_Stored] = self._packs.get()
        earlier = bytes(next(packs)[2])
        if earlier != self._settings:
            raise ConditionError(_difference(json.loads(earlier), json.loads(self._settings)))
        return packs


class SliceBuffer(Buffer):
    """Keeps packs by label, and lets them out. It knows nothing of what is in them, and of joins."""

    def _keep(self, packs: list[tuple[int, _Stored]]) -> None:
        if self._append([pack for _, pack in packs]):
            self._handle.registerTimer(packs[0][0])  # one slice has the label

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let the packs of a slice out that is closed."""
        (label,) = key
        for pack in self._kept():
            yield _let_out(label, pack)
        self._packs.clear()


class MonitorBuffer(Buffer):
    """Keeps packs by label and slice, and gives those of closed slices to the monitor of the label."""

    def __init__(self, monitors: Monitors, grid: Grid, settings: bytes) -> None:
        super().__init__(settings, keeps_late=False)
        self._monitors, self._grid = monitors, grid

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        super().init(handle)
        self._counts = handle.getMapState("counts", "closes bigint", "packs bigint")
        self._waiting = handle.getMapState(
            "waiting", "closes bigint, number bigint", f"{EVENTS} binary"
        )
        self._remembered = handle.getValueState("remembered", "state binary, due bigint")

    def _keep(self, packs: list[tuple[int, _Stored]]) -> None:
        self._append([])
        counts: dict[int, int] = {}
        for closes, (_, _, events) in packs:
            if closes not in counts:
                known = self._counts.getValue((closes,))
                counts[closes] = 0 if known is None else known[0]
                if known is None:
                    self._handle.registerTimer(closes)
            self._waiting.updateValue((closes, counts[closes]), (events,))
            counts[closes] += 1
        for closes, count in counts.items():
            self._counts.updateValue((closes,), (count,))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let out what the monitor finds in all slices that are closed, in order of time."""
        (label,) = key
        passed = timerValues.getCurrentWatermarkInMs()
        slices = self._counts.keys()
        closed = sorted(closes for (closes,) in slices if closes <= passed)
        state, due = self._remembered.get() or (None, None)
        if not closed and (due is None or due > passed):
            return  # all was done with the timer of an earlier slice
        self._kept()
        monitor = self._monitors.monitor(None if state is None else bytes(state))
        last = self._grid.last_closed(passed)
        until = self._grid.begin_after(last)
        for found in self._monitors.found(monitor, self._parts(closed), until):
            yield _let_out(label, (True, True, found))
        due, waits_for = None, monitor.waits_for()
        if waits_for is not None:
            due = self._grid.closes(max(last + 1, self._grid.first_beyond(waits_for)))
            self._handle.registerTimer(due)
        self._remembered.update((monitor.state(), due))

    def close(self) -> None:
        """Give memory of the GPU back, if monitors have used one."""
        release_gpu()

    def _parts(self, closed: list[int]) -> Iterator[list[pa.Buffer]]:
        """The packs of slices in order, of many small ones together."""
        packs: list[pa.Buffer] = []
        size = 0
        for closes in closed:
            for pack in self._taken(closes):
                packs.append(pack)
                size += pack.size
            if size >= _PART_BYTES:
                yield packs
                packs, size = [], 0
        if packs:
            yield packs

    def _taken(self, closes: int) -> Iterator[pa.Buffer]:
        """The packs of a slice, which are no longer kept."""
        for number in range(_value(self._counts, closes)):
            yield pa.py_buffer(bytes(_value(self._waiting, closes, number)))
            self._waiting.removeKey((closes, number))
        self._counts.removeKey((closes,))


def _value(state: Any, *key: int) -> Any:
    found = state.getValue(key)
    assert found is not None, f"the state has no {key}"
    return found[0]


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
        f"the checkpoint was begun with other arguments (found: {'; '.join(changes)}). Give the"
        " earlier ones, or begin with a new checkpoint."
    )
