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
from coincide.engine.borders.ids import QueryIds

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
    ids, numbers, next_one = QueryIds(kind), {}, 0
    for _ in range(60):
        picked = random.choice(100, random.integers(0, 12), replace=False)
        found = ids.live(everything.take(pa.array(picked)))
        assert found.tolist() == [numbers.get(k, -1) for k in picked.tolist()]
        gone, new = found[found >= 0], picked[found < 0]
        if random.random() < 0.5:
            ids.remove(ids.removals(gone))
            numbers = {k: number for k, number in numbers.items() if number not in gone}
        next_one += int(random.integers(0, 2))  # a change that failed leaves a gap
        numbers.update(zip(new.tolist(), range(next_one, next_one + new.size), strict=True))
        ids.runs = ids.runs_with(everything.take(pa.array(new)), next_one)
        next_one += new.size
        known = np.array(list(numbers.items()), np.int64).reshape(-1, 2)
        asked = known[random.integers(0, len(known), 20)] if numbers else known
        assert ids.of(asked[:, 1]).equals(everything.take(pa.array(asked[:, 0])))
        ids = pickle.loads(pickle.dumps(ids))
    assert ids.live(pa.nulls(2, everything.type)).tolist() == [-1, -1]


def test_ids_of_removed_queries_are_let_go() -> None:
    ids = QueryIds(pa.int64())
    for k in range(200):
        ids.runs = ids.runs_with(pa.array(range(10)), 10 * k)
        if k >= 3:
            ids.remove(ids.removals(np.arange(10 * (k - 3), 10 * (k - 2))))
        assert len(ids) <= 2 * 40
    assert ids.live(pa.array([4])).tolist() == [1994]
    assert ids.of(np.array([1973, 1999])).to_pylist() == [3, 9]


def test_what_is_made_of_ids_is_not_pickled() -> None:
    ids = QueryIds(pa.string())
    ids.runs = ids.runs_with(pa.array([str(k) for k in range(1000)]), 0)
    before = len(pickle.dumps(ids))
    assert ids.of(ids.live(pa.array(["7", "no"]))[:1]).to_pylist() == ["7"]
    assert len(pickle.dumps(ids)) == before


def test_ids_of_one_run_are_found_without_a_sort() -> None:
    """Each number has its row and its id, and no order and places."""
    ids, numbers = QueryIds(pa.int64()), np.arange(100_000)
    ids.runs = ids.runs_with(pa.array(numbers), 0)
    ids.runs = ids.runs_with(pa.array([-1]), numbers.size)
    ids.of(numbers[:2])
    tracemalloc.start()
    ids.of(numbers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * numbers.size
    assert ids.of(np.array([100_000, 5, 100_000, 3])).to_pylist() == [-1, 5, -1, 3]


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
