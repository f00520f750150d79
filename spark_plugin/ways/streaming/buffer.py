"""The stateful operators: they keep the packs of a slice until the watermark has passed it."""

from __future__ import annotations

import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, BooleanType, LongType, StructField, StructType

from coincide.engine.backends import release_gpu
from coincide.model.errors import ConditionError, brief
from spark_plugin.tasks.blobs import packed, rows_of
from spark_plugin.tasks.monitors import Monitors
from spark_plugin.tasks.packing import EVENTS, IS_LEFT
from spark_plugin.tasks.streaming import (
    DONE,
    FIRST,
    IS_LATE,
    IS_OWN,
    LAST,
    ROWS,
    SETTINGS,
    UNTIL,
    StreamPackTask,
)
from spark_plugin.tasks.wire import LABEL

BUFFERED = (
    f"{LABEL} bigint, {IS_LATE} boolean, {IS_LEFT} boolean, {IS_OWN} boolean, {FIRST} bigint,"
    f" {LAST} bigint, {DONE} bigint, {UNTIL} bigint, {ROWS} bigint, {EVENTS} binary"
)
"""The columns of packs that come out."""
_STORED = StructType([
    StructField(IS_LEFT, BooleanType()), StructField(IS_OWN, BooleanType()),
    StructField(FIRST, LongType()), StructField(LAST, LongType()), StructField(EVENTS, BinaryType()),
])  # fmt: skip


class _Stored(NamedTuple):
    """A row of the state; the first one of a label has the settings, and its last joined slice."""

    is_left: bool
    is_own: bool
    first: int
    last: int
    events: bytes


_NONE_DONE = -(2**63)
_PART_BYTES = 16 << 20
"""Packs that are taken at once: a monitor looks at all that it remembers each time."""


class Buffer(StatefulProcessor, ABC):
    """Keeps packs, lets late ones out at once, and refuses those that were made for something else."""

    # Each label has the settings of its own: timers come without the rows that tell them.

    def __init__(self, tasks: Sequence[StreamPackTask], *, keeps_late: bool) -> None:
        self._tasks, self._keeps_late = tasks, keeps_late
        self._grid, self._settings = tasks[0].grid, tasks[0].settings

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
        closed = self._grid.last_closed(timerValues.getCurrentWatermarkInMs())
        kept: list[_Stored] = []
        for row in rows:
            slices = row.first or 0, row.last or 0
            pack = _Stored(row.is_left, row.is_own, *slices, bytes(row.events))
            if row.first is None:
                yield _let_out(label, pack)
            elif row.due_first > closed:
                kept.append(pack)
            else:
                late, early = self._divided(pack, closed, is_late=row.due_last <= closed)
                kept += early
                if pack.is_own:
                    for each in late:
                        yield self._late(label, each)
        if kept:
            self._keep(kept, closed)

    @abstractmethod
    def _keep(self, packs: list[_Stored], closed: int) -> None:
        """Keep some packs of the label, whose rows come after the slices that are closed."""

    def _divided(
        self, pack: _Stored, closed: int, *, is_late: bool
    ) -> tuple[list[_Stored], list[_Stored]]:
        """Packs of the late rows of a pack, and of the others."""
        if is_late:
            return [pack], []
        task = next(task for task in self._tasks if task.is_left == pack.is_left)
        late, early = (
            [pack._replace(events=blob.to_pybytes()) for blob in packed(rows)]
            for rows in task.late_and_early(pa.py_buffer(pack.events), closed)
        )
        return late, early

    def close(self) -> None:
        """Nothing is left to do."""

    def _late(self, label: int, pack: _Stored) -> Row:
        late_rows = rows_of(pa.py_buffer(pack.events))
        kept = pack if self._keeps_late else pack._replace(events=b"")
        return _let_out(label, kept, late_rows=late_rows)

    def _append(self, packs: list[_Stored], done: int = _NONE_DONE) -> bool:
        """Keep packs of the label, and first of all the settings; whether it had none."""
        is_new = not self._packs.exists()
        told = [_Stored(True, True, done, done, self._settings)] if is_new else []
        rows: list[tuple[Any, ...]] = [*told, *packs]
        if rows:
            self._packs.appendList(rows)
        return is_new

    def _kept(self) -> tuple[int, Iterator[_Stored]]:
        """The last joined slice of a label, and its packs, made with the arguments of now."""
        packs: Iterator[tuple[Any, ...]] = self._packs.get()
        *_, done, earlier = next(packs)
        if bytes(earlier) != self._settings:
            raise ConditionError(_difference(json.loads(earlier), json.loads(self._settings)))
        return done, itertools.starmap(_Stored, packs)


class SliceBuffer(Buffer):
    """Keeps packs by label, and lets out those of closed slices. It knows nothing of joins."""

    def _keep(self, packs: list[_Stored], closed: int) -> None:
        self._append(packs)
        self._wait(packs, closed)

    def _wait(self, packs: list[_Stored], closed: int) -> None:
        """For the first slice that is not closed yet, and that some packs have rows of."""
        first = min(pack.first for pack in packs)
        self._handle.registerTimer(self._grid.closes(max(first, closed + 1)))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let the packs of slices out that are closed."""
        (label,) = key
        until = self._grid.last_closed(timerValues.getCurrentWatermarkInMs())
        if not self._packs.exists():
            return  # all was done with the timer of an earlier slice
        done, packs = self._kept()
        if done >= until:
            return
        kept = []
        for pack in packs:
            if pack.first <= until:
                yield _let_out(label, pack, done=done, until=until)
            if pack.last > until:
                kept.append(pack)
        self._packs.clear()
        if kept:
            self._append(kept, until)
            self._wait(kept, until)


class MonitorBuffer(Buffer):
    """Keeps packs by label and slice, and gives those of closed slices to the monitor of the label."""

    def __init__(self, monitors: Monitors, task: StreamPackTask) -> None:
        super().__init__([task], keeps_late=False)
        self._monitors = monitors

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        super().init(handle)
        self._counts = handle.getMapState("counts", "slice bigint", "packs bigint")
        self._waiting = handle.getMapState(
            "waiting", "slice bigint, number bigint", f"{EVENTS} binary"
        )
        self._remembered = handle.getValueState("remembered", "state binary, due bigint")

    def _keep(self, packs: list[_Stored], closed: int) -> None:
        self._append([])
        counts: dict[int, int] = {}
        for pack in packs:
            number = pack.last
            if number not in counts:
                known = self._counts.getValue((number,))
                counts[number] = 0 if known is None else known[0]
                if known is None:
                    self._handle.registerTimer(self._grid.closes(number))
            self._waiting.updateValue((number, counts[number]), (pack.events,))
            counts[number] += 1
        for number, count in counts.items():
            self._counts.updateValue((number,), (count,))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let out what the monitor finds in all slices that are closed, in order of time."""
        (label,) = key
        passed = timerValues.getCurrentWatermarkInMs()
        last = self._grid.last_closed(passed)
        slices = self._counts.keys()
        closed = sorted(number for (number,) in slices if number <= last)
        state, due = self._remembered.get() or (None, None)
        if not closed and (due is None or due > passed):
            return  # all was done with the timer of an earlier slice
        self._kept()
        monitor = self._monitors.monitor(None if state is None else bytes(state))
        until = self._grid.begin_after(last)
        for found in self._monitors.found(monitor, self._parts(closed), until):
            yield _let_out(label, _Stored(True, True, 0, 0, bytes(found)))
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
        for number in closed:
            for pack in self._taken(number):
                packs.append(pack)
                size += pack.size
            if size >= _PART_BYTES:
                yield packs
                packs, size = [], 0
        if packs:
            yield packs

    def _taken(self, number: int) -> Iterator[pa.Buffer]:
        """The packs of a slice, which are no longer kept."""
        for i in range(_value(self._counts, number)):
            yield pa.py_buffer(bytes(_value(self._waiting, number, i)))
            self._waiting.removeKey((number, i))
        self._counts.removeKey((number,))


def _value(state: Any, *key: int) -> Any:
    found = state.getValue(key)
    assert found is not None, f"the state has no {key}"
    return found[0]


def _let_out(
    label: int, pack: _Stored, *, done: int = _NONE_DONE, until: int = 0, late_rows: int = 0
) -> Row:
    return Row(
        label=label, is_late=late_rows > 0, is_left=pack.is_left, is_own=pack.is_own,
        first=pack.first, last=pack.last, done=done, until=until, late_rows=late_rows,
        events=bytes(pack.events),
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
