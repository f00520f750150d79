"""Keys of streams: of any type, one or several, looked for among live events by their marks."""

from __future__ import annotations

import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import TimingCondition, correlate_tables, stream_tables, within
from coincide.engine.streams import live as marks
from tests.helpers.rows import in_order

KEYS = {
    "text": pa.array([f"é{i}" for i in range(40)]),
    "empty and long": pa.array(["", "a", "aa", *("x" * i for i in range(250, 287))]),
    "integer": pa.array(range(-20, 20), pa.int16()),
    "unsigned": pa.array(range(2**64 - 40, 2**64), pa.uint64()),
    "boolean": pa.array([True, False] * 20),
    "date": pa.array([date(2024, 1, 1 + i % 28) for i in range(40)]),
    "timestamp": pa.array([datetime(2024, 1, 1, 0, i) for i in range(40)], pa.timestamp("ns")),
    "decimal": pa.array([Decimal(f"{i}.25") for i in range(40)]),
    "bytes": pa.array([bytes([i]) for i in range(40)]),
    "fixed bytes": pa.array([bytes([i, 0]) for i in range(40)], pa.binary(2)),
    "duration": pa.array(range(40), pa.duration("s")),
    "uuid": pa.array([uuid.UUID(int=i).bytes for i in range(40)], pa.uuid()),
    "category": pa.array([f"c{i % 7}" for i in range(40)]).dictionary_encode(),
}
CONDITION = TimingCondition(within(-50, 200), 0.5)


def side(keys: pa.Array, seed: int, rows: int = 400) -> pa.Table:
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 1000, rows))
    return pa.table({
        "id": np.arange(rows), "min_time": times - random.integers(0, 20, rows), "max_time": times,
        "key": keys.take(pa.array(random.integers(0, len(keys), rows))),
        "number": random.integers(0, 3, rows),
    })  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_any_type(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for, are_marked = [], marks.are_marked
    monkeypatch.setattr(
        "coincide.engine.streams.live.are_marked",
        lambda *given: asked_for.append(1) or are_marked(*given),
    )
    left, right = side(KEYS[name], 1), side(KEYS[name], 2)
    asked: dict[str, Any] = {"by": ["key", "number"], "probability": True}
    stream = stream_tables(CONDITION, left_delay=0, right_delay=0, **asked)
    found = []
    for start in range(0, 400, 8):
        found += [
            stream.push(name, table.slice(start, 8))
            for name, table in (("left", left), ("right", right))
        ]
    want = correlate_tables(left, right, CONDITION, **asked)
    got = pa.concat_tables(part for part in found if part.num_columns)
    assert got.schema == want.schema
    assert in_order(got) == in_order(want)
    assert want.num_rows > 100
    assert len(asked_for) > 20


def test_marks_tell_most_keys_apart() -> None:
    for name in set(KEYS) - {"boolean", "category", "duration", "uuid"}:
        values = KEYS[name].unique()
        found = marks.marks_of([values], len(values))
        assert len(set(found.tolist())) >= len(values) - 1, name
    texts = pa.array([f"device-{i:05d}" for i in range(20_000)])
    # Some 17,240 of 20,000 at random among 65,536 differ.
    assert len(set(marks.marks_of([texts], 20_000).tolist())) > 15_000


def test_marks_do_not_depend_on_the_push() -> None:
    keys = [KEYS["text"], KEYS["integer"]]
    whole = marks.marks_of(keys, 40)
    parts = [marks.marks_of([key.slice(start, 7) for key in keys], len(keys[0].slice(start, 7)))
             for start in range(0, 40, 7)]  # fmt: skip
    assert whole.tolist() == np.concatenate(parts).tolist()
    assert marks.marks_of([pa.array(["a", "b"])], 2).tolist() == [10949, 44543]
