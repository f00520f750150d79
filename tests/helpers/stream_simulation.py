"""The join of two streams without Spark's engine of streams: micro-batches, watermarks, state, timers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from coincide.engine.join.arguments import JoinArguments
from spark_plugin.tasks.blobs import unpacked
from spark_plugin.tasks.monitors import CheckedPackTask, Monitors
from spark_plugin.tasks.wire import LABEL
from spark_plugin.ways.streaming.arguments import StreamArguments
from spark_plugin.ways.streaming.buffer import Buffer, MonitorBuffer, SliceBuffer
from spark_plugin.ways.streaming.join import StreamPlan, plan_streams
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import Streams


class State:
    """What Spark gives an operator: maps and values by key, and timers."""

    def __init__(self) -> None:
        self.key, self.watermark = 0, 0
        self.timers: list[tuple[int, int]] = []
        self.maps: dict[tuple[str, int], dict[Any, Any]] = {}
        self.written = 0

    @property
    def is_empty(self) -> bool:
        return not any(self.maps.values())

    def getMapState(self, name: str, key: Any, value: Any) -> Map:
        return Map(self, name)

    def getValueState(self, name: str, schema: Any) -> Map:
        return Map(self, name)

    def registerTimer(self, milliseconds: int) -> None:
        assert milliseconds > self.watermark, "a timer of the past"
        self.timers.append((milliseconds, self.key))


class Map:
    """A map of the state, or a value, which is that of no key."""

    def __init__(self, state: State, name: str) -> None:
        self._state, self._name = state, name

    @property
    def _of_key(self) -> dict[Any, Any]:
        found: dict[Any, Any] = self._state.maps.setdefault((self._name, self._state.key), {})
        return found

    def getValue(self, key: Any) -> Any:
        return self._of_key.get(key)

    def iterator(self) -> Iterator[Any]:
        return iter(self._of_key.items())

    def updateValue(self, key: Any, value: Any) -> None:
        self._state.written += sum(len(each) for each in value if isinstance(each, bytes))
        self._of_key[key] = value

    def removeKey(self, key: Any) -> None:
        del self._of_key[key]

    def get(self) -> Any:
        return self.getValue(())

    def update(self, value: Any) -> None:
        self.updateValue((), value)

    def clear(self) -> None:
        self._of_key.clear()


class Watermark:
    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def getCurrentWatermarkInMs(self) -> int:
        return self.milliseconds


class Operator:
    def __init__(
        self,
        buffer: Buffer,
        state: State | None = None,
    ) -> None:
        self.state, self.buffer = state or State(), buffer
        self.buffer.init(self.state)

    def push(self, label: int, watermark: int, *rows: Row) -> list[Row]:
        self.state.key, self.state.watermark = label, watermark
        return list(self.buffer.handleInputRows((label,), iter(rows), Watermark(watermark)))

    def batch(self, packs: Sequence[Row], watermark: int) -> list[Row]:
        """A micro-batch: the packs of each label, then the timers that the watermark has passed."""
        found: list[Row] = []
        for label in dict.fromkeys(pack[LABEL] for pack in packs):
            found += self.push(label, watermark, *(p for p in packs if p[LABEL] == label))
        expired = [timer for timer in self.state.timers if timer[0] <= watermark]
        self.state.timers = [timer for timer in self.state.timers if timer[0] > watermark]
        for _, label in expired:
            found += self.expire(label, watermark)
        return found

    def expire(self, label: int, watermark: int = 0) -> list[Row]:
        self.state.key, self.state.watermark = label, watermark
        return list(self.buffer.handleExpiredTimer((label,), Watermark(watermark), None))


def simulated(
    spark: SparkSession, case: Streams, shape: tuple[str, str, bool], together: int = 16
) -> list[dict[str, Any]]:
    """All rows, late ones among them."""
    delays = case.delays[0], None if case.is_one_stream else case.delays[1]
    asked = StreamArguments(delays=delays, late="rows", name="coincide", **case.more)
    arguments = JoinArguments(**case.asked(shape), is_one_stream=case.is_one_stream)
    operator, seen, watermark = None, [0, 0], 0
    found: list[dict[str, Any]] = []
    for tables in [*zip(*case.files, strict=True), None]:
        packs: list[Row] = []
        if tables is not None:
            sides = [frame(spark, table) for table in tables[: case.sides]]
            plan = plan_streams(sides[0], *([*sides[1:], None][:1]), arguments, asked)
            if not arguments.keeps_right:
                plan = replace(plan, grid=replace(plan.grid, together=together))
            for number in (0, 1):
                packs += _packs(plan, number)
        if operator is None:
            operator = Operator(SliceBuffer(plan.packers, keeps_late=True))
        let_out = operator.batch(packs, watermark)
        found += _joined(plan, let_out)
        for row in packs:
            seen[row.stream] = max(seen[row.stream], row.seen)
        watermark = max(
            watermark, min(s // 1000 - d for s, d in zip(seen, case.delays, strict=True))
        )
    return found


def _packs(plan: StreamPlan, number: int) -> list[Row]:
    rows, schema = plan.rows(number)
    batches = plan.pack_task(number, schema)(rows.toArrow().to_batches())
    return [Row(**row) for batch in batches for row in batch.to_pylist()]


def _joined(plan: StreamPlan, let_out: Sequence[Row]) -> list[dict[str, Any]]:
    if not let_out:
        return []
    batch = pa.RecordBatch.from_pylist([row.asDict() for row in let_out])
    return [row for found in plan.slice_task()([batch]) for row in found.to_pylist()]


def buffer_of(task: CheckedPackTask, monitors: Monitors) -> MonitorBuffer:
    """The operator that keeps what a task packs."""
    return MonitorBuffer(monitors, task)


def monitored(
    task: CheckedPackTask, monitors: Monitors, batches: Sequence[pa.Table], delay: int
) -> tuple[pa.Table, int]:
    """What monitors find in rows on the wire, micro-batch by micro-batch, and how many rows are late."""
    operator, seen, watermark, late = Operator(buffer_of(task, monitors)), 0, 0, 0
    found: list[pa.Table] = []
    for table in [*batches, None]:
        packed = [] if table is None else task(table.to_batches())
        packs = [Row(**row) for batch in packed for row in batch.to_pylist()]
        for row in operator.batch(packs, watermark):
            late += row.late_rows
            if not row.is_late:
                found.append(unpacked([pa.py_buffer(row.events)]))
        seen = max([seen, *(row.seen for row in packs)])
        watermark = max(watermark, seen // 1000 - delay)
    return pa.concat_tables(found), late
