"""The join of two streams without Spark's engine of streams: micro-batches, watermarks, state, timers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from coincide.engine.join.arguments import JoinArguments
from spark_plugin.tasks.wire import LABEL
from spark_plugin.ways.streaming.arguments import StreamArguments
from spark_plugin.ways.streaming.buffer import SliceBuffer
from spark_plugin.ways.streaming.join import StreamPlan, plan_streams
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import Streams


class State:
    """What Spark gives an operator: lists of rows by key, and timers."""

    def __init__(self) -> None:
        self.key = 0
        self.rows: dict[int, list[Any]] = {}
        self.timers: list[tuple[int, int]] = []

    def getListState(self, name: str, schema: Any) -> State:
        return self

    def registerTimer(self, milliseconds: int) -> None:
        self.timers.append((milliseconds, self.key))

    def exists(self) -> bool:
        return self.key in self.rows

    def get(self) -> Iterator[Any]:
        return iter(self.rows.get(self.key, []))

    def appendList(self, rows: list[Any]) -> None:
        self.rows.setdefault(self.key, []).extend(rows)

    def clear(self) -> None:
        self.rows.pop(self.key, None)


class Watermark:
    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def getCurrentWatermarkInMs(self) -> int:
        return self.milliseconds


class Operator:
    def __init__(self, *, keeps_late: bool = True) -> None:
        self.state, self.buffer = State(), SliceBuffer(keeps_late=keeps_late)
        self.buffer.init(self.state)

    def push(self, label: int, watermark: int, *rows: Row) -> list[Row]:
        self.state.key = label
        return list(self.buffer.handleInputRows((label,), iter(rows), Watermark(watermark)))

    def batch(self, packs: Sequence[Row], watermark: int) -> list[Row]:
        """A micro-batch: the packs of each label, then the timers that the watermark has passed."""
        found: list[Row] = []
        for label in dict.fromkeys(pack[LABEL] for pack in packs):
            found += self.push(label, watermark, *(p for p in packs if p[LABEL] == label))
        expired = [timer for timer in self.state.timers if timer[0] <= watermark]
        self.state.timers = [timer for timer in self.state.timers if timer[0] > watermark]
        for _, label in expired:
            found += self.expire(label)
        return found

    def expire(self, label: int) -> list[Row]:
        self.state.key = label
        return list(self.buffer.handleExpiredTimer((label,), Watermark(0), None))


def simulated(
    spark: SparkSession, case: Streams, shape: tuple[str, str, bool]
) -> list[dict[str, Any]]:
    """All rows, late ones among them."""
    asked = StreamArguments(
        left_delay=case.delays[0], right_delay=None if case.is_one_stream else case.delays[1],
        late="rows", idle_after=None, left_clock=None, right_clock=None, key_buckets=None,
        name="coincide", **{"slice_length": None, **case.more},
    )  # fmt: skip
    arguments = JoinArguments(**case.asked(shape), is_one_stream=case.is_one_stream)
    operator, seen, watermark = Operator(), [0, 0], 0
    found: list[dict[str, Any]] = []
    for tables in [*zip(*case.files, strict=True), None]:
        packs: list[Row] = []
        if tables is not None:
            sides = [frame(spark, table) for table in tables[: case.sides]]
            plan = plan_streams(sides[0], *([*sides[1:], None][:1]), arguments, asked)
            for number in (0, 1):
                packs += _packs(plan, number)
        let_out = operator.batch(packs, watermark)
        found += _joined(plan, let_out)
        for row in packs:
            seen[not row.is_left] = max(seen[not row.is_left], row.seen)
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
