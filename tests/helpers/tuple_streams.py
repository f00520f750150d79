"""Sequences and coincidences of streams without Spark's engine of streams: micro-batches and watermarks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession

from coincide.engine.events.timestamp_names import timestamp_names
from coincide.engine.sequences.arguments import (
    checked_least,
    closed_window,
    streams_of,
    windows_between,
    windows_of,
)
from coincide.engine.sequences.coincidences import CoincidenceArguments
from coincide.engine.sequences.tables import SequenceArguments
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.output_columns import wire_schema
from spark_plugin.tasks.blobs import unpacked
from spark_plugin.tasks.sequences import Question
from spark_plugin.tasks.streaming import SETTINGS
from spark_plugin.tasks.wire import TIME
from spark_plugin.ways.streaming.buffer import SliceBuffer
from spark_plugin.ways.streaming.sequences import StreamedTuples, TupleStreamArguments
from tests.helpers.sequence_cases import Case
from tests.helpers.sequence_spark import Asked
from tests.helpers.stream_simulation import Operator

BEGIN = 1_000
"""Milliseconds since 1970 that are added to all times: watermarks begin there."""
_TIMES = ("stamp", "min_time", "max_time")
_NEVER = 10**12


@dataclass(frozen=True)
class Arrivals:
    """The rows of each table in the order in which they come, cut into micro-batches; delays by name."""

    batches: Mapping[int, list[pa.Table]]
    delay: dict[str, int]
    longest: int | None
    slice_length: int | None
    key_buckets: int


def later(case: Case) -> Case:
    """The same streams, all later than 1970; tables at several places stay one."""
    moved = {id(table): _moved(table) for table in case.tables}
    return replace(case, tables=[moved[id(table)] for table in case.tables])


def _moved(table: pa.Table) -> pa.Table:
    for name in _TIMES:
        if name in table.column_names:
            number = table.column_names.index(name)
            table = table.set_column(number, name, pc.add(table[name], BEGIN))
    return table


def drawn_arrivals(rng: random.Random, case: Case, confidence: float) -> Arrivals:
    """Rows that come by their times, some within their delay and some later."""
    own = {id(table): table for table in case.tables}
    late = rng.choice([0.0, 0.2, 0.4])
    delays = {number: rng.choice([0, 0, 3, 40]) for number in own}
    count = rng.choice([1, 6, 12])
    span = max([1, *(_span(table) for table in own.values())])
    cuts = sorted(BEGIN + rng.randint(0, span) for _ in range(count - 1))
    batches = {}
    for number, table in own.items():
        comes = []
        for row in table.to_pylist():
            at = next((row[name] for name in _TIMES[::-1] if row.get(name) is not None), BEGIN)
            comes.append(
                at + rng.randint(0, delays[number]) + rng.randint(0, span) * (rng.random() < late)
            )
        order = sorted(range(len(comes)), key=lambda k, comes=comes: (comes[k], k))
        ends = [sum(each < cut for each in comes) for cut in cuts]
        rows = table.take(pa.array(order, pa.int64()))
        batches[number] = [rows.slice(a, b - a) for a, b in pairwise([0, *ends, len(comes)])]
    named = [timestamp_names("time", time) for time in case.times.values()]
    are_known = all(each.is_exact or each.lengths is not None for each in named)
    are_uniform = all(each.lengths is None for each in named)
    is_declared = not are_known and not (are_uniform and confidence >= 0.5 and rng.random() < 0.5)
    return Arrivals(
        batches, {name: delays[id(t)] for name, t in zip(case.names, case.tables, strict=True)},
        4 if is_declared else None, rng.choice([None, 7, 7, 50]), rng.choice([1, 2, 5]),
    )  # fmt: skip


def _span(table: pa.Table) -> int:
    found = [pc.max(table[name]).as_py() for name in _TIMES if name in table.column_names]
    return max([each - BEGIN for each in found if each is not None], default=0)


def question_of(frames: list[DataFrame], words: dict[str, Any]) -> Question:
    """The question of the words, for DataFrames that stand for streams."""
    words = dict(words)
    names = ("names", "time", "by", "confidence", "options")
    asked = {name: words.pop(name) for name in names}
    streams = streams_of(
        frames, asked["names"], asked["time"], asked["by"], "id", asked["confidence"], "auto",
        asked["options"], words.pop("where", None), check=lambda given, name: None,
    )  # fmt: skip
    if "within" in words:
        within, at_least = words.pop("within"), words.pop("at_least")
        return CoincidenceArguments(
            streams=streams, windows=windows_between(within, streams),
            at_least=checked_least(at_least, streams), **words,
        )  # fmt: skip
    windows, total = words.pop("windows"), words.pop("total", None)
    usual = {
        "how": "inner", "emit": "sequences", "prefer": "probability", "probability": False,
        "link_probability": False,
    }  # fmt: skip
    return SequenceArguments(
        streams=streams, windows=windows_of(windows, streams),
        total=None if total is None else closed_window(total, "total"), **{**usual, **words},
    )  # fmt: skip


def simulated(
    spark: SparkSession, case: Case, asked: Asked, arrivals: Arrivals, together: int = 32
) -> tuple[pa.Table, dict[int, list[int]]]:
    """All rows that come out, and the ids of late rows by table."""
    options = replace(asked.options, unit="ms", slices=None)
    more = TupleStreamArguments(
        operator="sequence_streams", tables="sequences", delay=arrivals.delay,
        longest=arrivals.longest, slice_length=arrivals.slice_length,
        key_buckets=arrivals.key_buckets, name="found",
    )  # fmt: skip
    late: dict[int, list[int]] = {number: [] for number in arrivals.batches}
    operator, watermark, found = None, 0, []
    for batch in range(len(next(iter(arrivals.batches.values()))) + 1):
        is_last = batch == len(next(iter(arrivals.batches.values())))
        parts = {number: of[0 if is_last else batch] for number, of in arrivals.batches.items()}
        frames = {number: spark.createDataFrame(part) for number, part in parts.items()}
        given = [frames[id(table)] for table in case.tables]
        plan = StreamedTuples(question_of(given, {**asked.words, "options": options}), more)
        plan.grids = [
            grid if grid.together == 1 else replace(grid, together=together) for grid in plan.grids
        ]
        if operator is None:
            operator = Operator(SliceBuffer(plan.packers, keeps_late=True))
            seen = [0] * len(plan.packers)
        if is_last:
            watermark = _NEVER
        before, let_out = list(seen), []
        packs = [] if is_last else [pack for i in range(len(seen)) for pack in _packs(plan, i)]
        let_out = operator.batch(packs, watermark)
        for row in let_out:
            if row.is_late:
                own = next(
                    n for n, f in frames.items() if f is given[plan._sent[row.stream].places[0]]
                )
                late[own] += _late(plan, row, before)
        found.append(_answered(plan, let_out))
        for row in packs:
            seen[row.stream] = max(seen[row.stream], row.seen)
        ends = [s // 1000 - plan._delay(i) for i, s in enumerate(seen)]
        watermark = max(watermark, min(ends))
    assert operator is not None
    kept = {label for (_, label), values in operator.state.maps.items() if values}
    assert kept <= {SETTINGS}
    return pa.concat_tables(found), late


def _packs(plan: StreamedTuples, number: int) -> list[Row]:
    rows, task, _ = plan.rows(number)
    return [Row(**row) for each in task(rows.toArrow().to_batches()) for row in each.to_pylist()]


def _late(plan: StreamedTuples, row: Row, seen: list[int]) -> list[int]:
    """The ids of late rows, all of which came later than their delay allows."""
    events = unpacked([pa.py_buffer(row.events)])
    assert len(events) == row.late_rows
    allowed = seen[row.stream] // 1000 - plan._delay(row.stream)
    assert pc.max(events[TIME]).as_py() < allowed
    _, _, layout = plan.rows(row.stream)
    ids: list[int] = events[
        layout.left[plan._sent[row.stream].frame.payload.index("id")]
    ].to_pylist()
    return ids


def _answered(plan: StreamedTuples, let_out: list[Row]) -> pa.Table:
    task = plan.slice_task()
    schema = arrow_schema(wire_schema(plan._columns()))
    if not let_out:
        return schema.empty_table()
    batch = pa.RecordBatch.from_pylist([row.asDict() for row in let_out])
    return pa.Table.from_batches([each.cast(schema) for each in task([batch])], schema)


def timely(case: Case, late: Mapping[int, list[int]]) -> list[pa.Table]:
    """The tables without their late rows; one at several places stays one."""
    kept = {
        number: table.filter(pc.invert(pc.is_in(table["id"], pa.array(late[number], pa.int64()))))
        for number, table in {id(table): table for table in case.tables}.items()
    }
    return [kept[id(table)] for table in case.tables]
