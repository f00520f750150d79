"""The stateful operators: they keep the packs of a slice until the watermark has passed it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from coincide.engine.backends import release_gpu
from coincide.model.errors import ConditionError, brief
from spark_plugin.tasks.blobs import packed, rows_of
from spark_plugin.tasks.connection import prepare_task
from spark_plugin.tasks.monitors import Monitors
from spark_plugin.tasks.packing import EVENTS, STREAM
from spark_plugin.tasks.streaming import (
    AHEAD_ROWS,
    FIRST,
    IS_LATE,
    IS_OWN,
    LAST,
    ROWS,
    SETTINGS,
    StreamPackTask,
)
from spark_plugin.tasks.wire import LABEL

BUFFERED = (
    f"{LABEL} bigint, {IS_LATE} boolean, {STREAM} bigint, {IS_OWN} boolean, {ROWS} bigint,"
    f" {AHEAD_ROWS} bigint, {EVENTS} binary"
)
"""The columns of packs that come out."""
_STORED = f"{STREAM} bigint, {IS_OWN} boolean, {FIRST} bigint, {LAST} bigint, {EVENTS} binary"
_NEVER = 2**63
_PART_BYTES = 16 << 20
"""Packs that are taken at once: a monitor looks at all that it remembers each time."""


class _Stored(NamedTuple):
    """A pack in the state."""

    stream: int
    is_own: bool
    first: int  # that is not closed yet
    last: int
    events: bytes


class Buffer(StatefulProcessor, ABC):
    """Keeps packs by label and last slice, lets late rows out, and refuses what has other settings."""

    def __init__(self, tasks: Sequence[StreamPackTask], *, keeps_late: bool) -> None:
        self._tasks, self._keeps_late = tasks, keeps_late
        self._grid, self._settings = tasks[0].grid, tasks[0].settings

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        prepare_task()
        self._handle = handle
        # Each label has the settings of its own: timers come without the rows that tell them.
        self._known = handle.getValueState("known", "settings binary")
        self._counts = handle.getMapState("counts", "slice bigint", f"packs bigint, {FIRST} bigint")
        self._waiting = handle.getMapState("waiting", "slice bigint, number bigint", _STORED)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep packs of slices, and let late ones out; or hold the settings against earlier ones."""
        (label,) = key
        if label == SETTINGS:
            self._begin()
            return
        closed = self._grid.last_closed(timerValues.getCurrentWatermarkInMs())
        kept: list[_Stored] = []
        for row in rows:
            slices = row.first or 0, row.last or 0
            pack = _Stored(row.stream, row.is_own, *slices, bytes(row.events))
            if row.first is None:
                yield _let_out(label, pack)
                continue
            late, early = self._late_and_early(row, pack, closed)
            kept += early
            if pack.is_own:
                for each in late:
                    yield self._late(label, each, is_ahead=row.is_ahead)
        if kept:
            self._begin()
            first = min(pack.first for pack in kept)
            if first < self._keep(kept):  # Spark warns of a timer that is there already
                self._wait(first)

    @abstractmethod
    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let out what closed slices make known."""

    def close(self) -> None:
        """Nothing is left to do."""

    def _begin(self) -> None:
        """Keep the settings of a new label, or hold them against the earlier ones."""
        known = self._known.get()
        if known is None:
            self._known.update((self._settings,))
            return
        earlier = bytes(known[0])
        if earlier != self._settings:
            raise ConditionError(_difference(json.loads(earlier), json.loads(self._settings)))

    def _keep(self, packs: Iterable[_Stored]) -> int:
        """The first slice of packs with the same last slices that have waited before, with a timer."""
        counts: dict[int, tuple[int, int]] = {}
        waited = _NEVER
        for pack in packs:
            last = pack.last
            if last not in counts:
                known = self._counts.getValue((last,))
                counts[last] = known or (0, pack.first)
                if known:
                    waited = min(waited, known[1])
            number, first = counts[last]
            self._waiting.updateValue((last, number), pack)
            counts[last] = number + 1, min(first, pack.first)
        for last, count in counts.items():
            self._counts.updateValue((last,), count)
        return waited

    def _wait(self, number: int) -> None:
        """For a slice that is not closed yet."""
        self._handle.registerTimer(self._grid.closes(number))

    def _slices(self) -> list[tuple[int, int]]:
        """The last and the first slice of packs that wait, in order."""
        found = self._counts.iterator()
        return sorted((last, first) for (last,), (_, first) in found)

    def _taken(self, last: int) -> Iterator[_Stored]:
        """The packs with a last slice, which are no longer kept."""
        number, _ = _known(self._counts.getValue((last,)))
        for i in range(number):
            pack = _Stored._make(_known(self._waiting.getValue((last, i))))
            self._waiting.removeKey((last, i))
            yield pack._replace(events=bytes(pack.events))
        self._counts.removeKey((last,))

    def _late_and_early(
        self, row: Row, pack: _Stored, closed: int
    ) -> tuple[list[_Stored], list[_Stored]]:
        """Packs of what takes no part, late or set aside, and of all else."""
        if row.is_ahead or row.due_last <= closed:
            return [pack], []
        if row.due_first > closed:
            return [], [pack]
        return self._divided(pack, closed)

    def _divided(self, pack: _Stored, closed: int) -> tuple[list[_Stored], list[_Stored]]:
        """Packs of the late rows of a pack, and of the others."""
        late, early = self._task(pack).late_and_early(pa.py_buffer(pack.events), closed)
        open_first = max(pack.first, closed + 1)
        return _repacked(pack, late), _repacked(pack._replace(first=open_first), early)

    def _task(self, pack: _Stored) -> StreamPackTask:
        """What has packed it."""
        return next(task for task in self._tasks if task.number == pack.stream)

    def _late(self, label: int, pack: _Stored, *, is_ahead: bool) -> Row:
        rows = rows_of(pa.py_buffer(pack.events))
        kept = pack if self._keeps_late else pack._replace(events=b"")
        return _let_out(label, kept, **{AHEAD_ROWS if is_ahead else ROWS: rows})


class SliceBuffer(Buffer):
    """Lets out the packs of closed slices. It knows nothing of joins."""

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let the packs of slices out that are closed."""
        (label,) = key
        until = self._grid.last_closed(timerValues.getCurrentWatermarkInMs())
        slices = self._slices()
        due_in = [last for last, first in slices if first <= until]
        if not due_in:
            return  # all was done with the timer of an earlier slice
        self._begin()
        waits = [first for _, first in slices if first > until]
        for last in due_in:
            kept: list[_Stored] = []
            for pack in self._taken(last):
                due, rest = self._parted(pack, until)
                kept += rest
                for each in due:
                    yield _let_out(label, each)
            self._keep(kept)
            waits += [pack.first for pack in kept]
        if waits:
            self._wait(min(waits))
        else:
            self._known.clear()

    def _parted(self, pack: _Stored, until: int) -> tuple[list[_Stored], list[_Stored]]:
        """Packs of what is to be met up to a slice, and of what is to be met later."""
        if pack.last <= until:
            return [pack], []
        if pack.first > until:
            return [], [pack]
        events = pa.py_buffer(pack.events)
        due, pieces = self._task(pack).parted(events, pack.last, until)
        rest = [
            each._replace(first=max(first, until + 1), last=last)
            for first, last, rows in pieces
            for each in _repacked(pack, rows)
        ]
        return _repacked(pack, due), rest


class MonitorBuffer(Buffer):
    """Gives the packs of closed slices to the monitor of the label."""

    def __init__(self, monitors: Monitors, task: StreamPackTask) -> None:
        super().__init__([task], keeps_late=False)
        self._monitors = monitors

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the state."""
        super().init(handle)
        self._remembered = handle.getValueState("remembered", "state binary, due bigint")

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Row]:
        """Let out what the monitor finds in all slices that are closed, in order of time."""
        (label,) = key
        passed = timerValues.getCurrentWatermarkInMs()
        until = self._grid.last_closed(passed)
        slices = [last for last, _ in self._slices()]
        closed = [last for last in slices if last <= until]
        state, due = self._remembered.get() or (None, None)
        if not closed and (due is None or due > passed):
            return  # all was done with the timer of an earlier slice
        self._begin()
        monitor = self._monitors.monitor(None if state is None else bytes(state))
        before = self._grid.begin_after(until)
        for found in self._monitors.found(monitor, self._parts(closed), before):
            yield _let_out(label, _Stored(0, True, 0, 0, bytes(found)))
        due, waits_for = None, monitor.waits_for()
        if waits_for is not None:
            due = self._grid.closes(max(until + 1, self._grid.first_beyond(waits_for)))
            self._handle.registerTimer(due)
        if len(closed) < len(slices):
            self._wait(slices[len(closed)])
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
                packs.append(pa.py_buffer(pack.events))
                size += len(pack.events)
            if size >= _PART_BYTES:
                yield packs
                packs, size = [], 0
        if packs:
            yield packs


def _known(found: Any) -> Any:
    assert found is not None, "the state has lost a pack"
    return found


def _repacked(pack: _Stored, rows: pa.Table) -> list[_Stored]:
    """Packs of some of the rows of a pack."""
    return [pack._replace(events=blob.to_pybytes()) for blob in packed(rows)]


def _let_out(label: int, pack: _Stored, *, late_rows: int = 0, ahead_rows: int = 0) -> Row:
    return Row(
        label=label, is_late=late_rows + ahead_rows > 0, stream=pack.stream, is_own=pack.is_own,
        late_rows=late_rows, ahead_rows=ahead_rows, events=pack.events,
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
