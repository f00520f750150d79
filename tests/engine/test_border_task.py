"""A task of border crossings without Spark: any batches, any chunks, one stream in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import BorderOptions, BorderReport, border_crossing_tables
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns, read_queries
from coincide.engine.borders.reports import BorderSummary
from coincide.engine.reports.metrics import with_numbers
from coincide.model.borders.crossings import EVENTS
from spark_plugin.tasks import borders as shipped
from spark_plugin.tasks import borders as task
from spark_plugin.tasks import counting
from spark_plugin.tasks.borders import STREAM, TIME
from spark_plugin.tasks.wire import Shipment, as_stream
from tests.helpers.border_tables import (
    NAMES,
    counts_of,
    least_last,
    random_queries,
    random_readings,
)
from tests.helpers.rows import in_order

READINGS = random_readings(1, 400, pa.array([f"s{k}" for k in range(23)]), pa.int64())
QUERIES = random_queries(2, pa.array(range(30)))
OPTIONS = {
    "plain": BorderOptions(interpolate=True),
    "outside": BorderOptions(interpolate=True, first="outside", batch_events=7),
    "hysteresis": BorderOptions(interpolate=True, hysteresis=1.5),
    "pass through": BorderOptions(interpolate=True, pass_through=True),
}


def task_of(options: BorderOptions, key: str) -> task.CrossingTask:
    arguments = BorderArguments(values="x", options=options, **NAMES)
    queries = read_queries(QUERIES, arguments)
    sent = Shipment(as_stream(shipped.as_table(queries, queries.ids)))
    columns = ReadingColumns.of(READINGS.schema, arguments)
    names = tuple(arguments.made)
    return task.CrossingTask(columns, shipped.ShippedQueries(key, sent), names, "told")


def on_the_wire() -> pa.Table:
    """The readings as Spark hands them over."""
    values = pc.fill_null(READINGS["x"], np.nan)
    table = pa.table({STREAM: READINGS["stream"], TIME: READINGS["at"], "value0": values})
    return table.sort_by([(name, "ascending") for name in table.column_names])


def batches(table: pa.Table, sizes: Any) -> Iterator[pa.RecordBatch]:
    start = 0
    while start < table.num_rows:
        size = int(next(sizes))
        yield from table.slice(start, size).combine_chunks().to_batches()
        start += size


def answered(of: task.CrossingTask, sizes: Any) -> tuple[pa.Table, BorderSummary]:
    found = pa.Table.from_batches(of(batches(on_the_wire(), sizes)))
    told = found.column("told")
    numbers = dict(zip(of.counted, told.drop_null()[0].as_py()[:-1], strict=True))
    rows = found.filter(pc.is_null(told)).drop("told")
    events = pa.array(EVENTS).take(rows["event"].combine_chunks())
    return rows.set_column(2, "event", events), with_numbers(BorderSummary(), numbers)


@pytest.mark.parametrize("options", OPTIONS)
def test_any_batches_and_chunks_give_the_crossings_of_tables(
    options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = BorderReport()
    wanted = border_crossing_tables(
        least_last(READINGS), QUERIES, values="x", options=OPTIONS[options], report=report, **NAMES
    )
    random = np.random.default_rng(3)
    for chunk_rows in (1, 5, 1000):
        monkeypatch.setattr(counting, "CHUNK_ROWS", chunk_rows)
        sizes = iter(lambda: random.integers(0, 9), None)
        found, summary = answered(task_of(OPTIONS[options], options), sizes)
        assert in_order(found) == in_order(wanted)
        counts = counts_of(report.summary()) | {
            "queries": 0,
            "empty": 0,
            "tick": None,
            "time_kind": None,
        }
        assert counts_of(summary) == counts
    assert wanted.num_rows > 100


def test_a_stream_is_forgotten_when_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "CHUNK_ROWS", 10)
    of = task_of(OPTIONS["hysteresis"], "forgotten")
    seen = []
    watch = of.queries.watch(OPTIONS["hysteresis"])
    monkeypatch.setattr(shipped.ShippedQueries, "watch", lambda *_: watch)
    for batch in of(batches(on_the_wire(), iter(lambda: 5, None))):
        seen.append(len(watch.monitor.streams))
        assert batch.num_columns == 7
    assert len(READINGS["stream"].unique()) == 23
    assert 1 < max(seen) <= 12
    assert watch.monitor.streams.known.sum() == 1


def test_an_index_is_made_once_for_the_tasks_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    table = Shipment.table
    monkeypatch.setattr(Shipment, "table", lambda self: opened.append(self) or table(self))
    for key in ("first", "first", "second", "second"):
        of = task_of(OPTIONS["plain"], key)
        assert answered(of, iter(lambda: 50, None))[0].num_rows
    assert len(opened) == 2


def test_a_task_without_batches_yields_nothing() -> None:
    assert list(task_of(OPTIONS["plain"], "nothing")([])) == []
