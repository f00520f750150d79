"""Ids of queries that come and go, against a dict; and what a small change of many queries costs."""

from __future__ import annotations

import decimal
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import BorderMonitor, BorderOptions
from spark_plugin.worker.borders.query_ids import QueryIds

_OF_TYPE: dict[pa.DataType, Any] = {
    pa.int64(): lambda k: k - 40,
    pa.uint8(): lambda k: k,
    pa.string(): lambda k: "" if k == 7 else f"é{k}" * (k % 3 + 1),
    pa.binary(): lambda k: bytes([k, 0, 255 - k]),
    pa.uuid(): lambda k: bytes([k] * 16),
    pa.decimal128(9, 2): lambda k: decimal.Decimal(k) / 4,
    pa.timestamp("ns", "UTC"): lambda k: (1 << 60) + k,
    pa.month_day_nano_interval(): lambda k: pa.MonthDayNano([-k, 3, k]),
}


@pytest.mark.parametrize("kind", _OF_TYPE, ids=str)
def test_ids_that_come_and_go_are_found(kind: pa.DataType) -> None:
    random = np.random.default_rng(3)
    everything = pa.array([_OF_TYPE[kind](k) for k in range(100)], kind)
    ids, numbers, known = QueryIds(kind), {}, []
    for _ in range(60):
        picked = random.choice(100, random.integers(0, 12), replace=False)
        found = ids.live(everything.take(pa.array(picked)))
        assert found.tolist() == [numbers.get(k, -1) for k in picked.tolist()]
        gone, new = found[found >= 0], picked[found < 0]
        if random.random() < 0.5:
            ids.remove(gone)
            numbers = {k: number for k, number in numbers.items() if number not in gone}
        numbers.update(zip(new.tolist(), range(len(ids), len(ids) + new.size), strict=True))
        ids.add(everything.take(pa.array(new)))
        known += new.tolist()
        asked = random.integers(0, len(ids), 20) if known else np.zeros(0, np.int64)
        assert ids.of(asked).equals(everything.take(pa.array(np.array(known, np.int64)[asked])))
        ids = pickle.loads(pickle.dumps(ids))
    assert ids.live(pa.nulls(2, everything.type)).tolist() == [-1, -1]


@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_a_small_change_of_many_queries_touches_few(margin: float) -> None:
    """Each array by query takes 400 KB or more; a change takes less in all."""
    size = 400_000

    def queries(start: int, stop: int) -> pa.Table:
        lower = np.arange(start, stop) % 1000
        names = pa.array(np.arange(start, stop)).cast(pa.string())
        return pa.table({"query_id": names, "lower": lower, "upper": lower + (lower > 0)})

    options = BorderOptions(hysteresis=margin, threads=1, batch_events=10)
    monitor = BorderMonitor(queries(0, size), options=options)
    at = {"stream_id": [1, 2, 3], "time": [0, 0, 0], "value": [1.0, 500.0, 20.0]}
    monitor.push(pa.table(at))

    def change(k: int) -> None:
        monitor.add(queries(size + 10 * k, size + 10 * k + 10))
        monitor.remove([str(number) for number in range(10 * k, 10 * k + 10)])

    change(0)  # from here on ids are known in order
    tracemalloc.start()
    for k in range(1, 30):
        before = pa.total_allocated_bytes()
        change(k)
        assert pa.total_allocated_bytes() - before < 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300_000
    assert monitor.summary().queries == size
    assert monitor.summary().empty == 400  # one removed, one added
