"""`correlate_tables` on Arrow data: every shape of answer, every type of column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide.engine.events.rows as row_sizes
from coincide import (
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    TimingCondition,
    correlate_tables,
    within,
)
from coincide.engine.events.invalid_rows import SideCounts
from coincide.model.counters import RowValues
from coincide.model.errors import MemoryBudgetError, SchemaError
from tests.helpers.comparison import SHAPES, assert_answer, check_case, condition_of, ticks_of
from tests.helpers.joins import table_join
from tests.helpers.strategies import JoinCase, Row, random_cases

CASES = [
    case for by in ((), ("station",), ("station", "channel"))
    for case in [c for c in random_cases(33, 150, max_size=14) if c.by == by][:8]
]  # fmt: skip


@pytest.mark.parametrize(("how", "emit", "probability"), SHAPES)
def test_every_shape(how: str, emit: str, probability: bool) -> None:
    for case in CASES:
        check_case(case, how, emit, probability, threads=1)


# --- columns of time ---

UNITS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}

LEFT_TIMES: list[tuple[int | None, int | None]] = [(0, 4), (10, 10), (None, 3), (95, 105), (7, 9)]
RIGHT_TIMES: list[tuple[int | None, int | None]] = [
    *((1, 5), (13, 13), (5, None), (100, 120), (97, 107)),
]


def small_case(lo: int = -4, hi: int = 4, confidence: float = 0.5) -> JoinCase:
    left, right = (
        [{"min_time": a, "max_time": b, "id": 100 + i} for i, (a, b) in enumerate(times)]
        for times in (LEFT_TIMES, RIGHT_TIMES)
    )
    return JoinCase(left, right, lo, hi, confidence, ())


def timed(rows: list[Row], kind: pa.DataType, scale: float = 1) -> pa.Table:
    """Rows with times of an Arrow type, multiplied by `scale`."""
    columns = {
        name: pa.array([None if r[name] is None else r[name] * scale for r in rows], kind)
        for name in ("min_time", "max_time")
    }
    return pa.table({**columns, "id": pa.array([r["id"] for r in rows])})


def check_times(left: pa.Table, right: pa.Table, condition: TimingCondition, **extra: Any) -> None:
    case = small_case()
    found = correlate_tables(left, right, condition, how="left", probability=True, **extra)
    assert found.filter(pa.compute.is_valid(found["right_id"])).num_rows >= 3
    assert_answer(found.to_pylist(), case, "left", "pairs", True)


@pytest.mark.parametrize("zones", [(None, None), ("UTC", "UTC"), ("UTC", "Europe/Rome")])
@pytest.mark.parametrize("left_unit", ["s", "ms", "us"])
@pytest.mark.parametrize("right_unit", ["s", "ms", "us"])
def test_timestamps(zones: tuple[str | None, str | None], left_unit: str, right_unit: str) -> None:
    case = small_case()
    left, right = (
        timed(rows, pa.timestamp(unit, zone), 10**9 // UNITS[unit])
        for rows, unit, zone in zip(case[:2], (left_unit, right_unit), zones, strict=True)
    )
    check_times(left, right, TimingCondition(within("-4s", "4s"), 0.5))


@pytest.mark.parametrize("other", ["s", "ms", "us", "ns"])
def test_timestamps_in_nanoseconds(other: str) -> None:
    """Every unit meets nanoseconds, which lose nothing below a microsecond if asked."""
    case = small_case()
    left = timed(case.left, pa.timestamp("ns"), 10**9)
    right = timed(case.right, pa.timestamp(other), 10**9 // UNITS[other])
    condition = TimingCondition(within("-4s", "4s"), 0.5)
    check_times(left, right, condition)
    check_times(left, right, condition, options=CorrelateOptions(unit="ns"))


def test_single_nanoseconds_at_the_epoch_scale() -> None:
    now = 1_700_000_000 * 10**9
    kind = pa.timestamp("ns")
    left, right = (timed(rows, pa.int64()) for rows in small_case()[:2])
    left, right = (
        pa.table({
            **{n: pa.compute.add(t[n], now).cast(kind) for n in ("min_time", "max_time")},
            "id": t["id"],
        })
        for t in (left, right)
    )  # fmt: skip
    condition = TimingCondition(within("-4ns", "4ns"), 0.5)
    check_times(left, right, condition, options=CorrelateOptions(unit="ns"))


SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
INTEGERS = (*SIGNED, pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers(kind: pa.DataType) -> None:
    case = small_case()
    left, right = (timed(rows, kind) for rows in case[:2])
    check_times(left, right, TimingCondition(within(-4, 4), 0.5))
    condition = TimingCondition(within("-4ms", "4ms"), 0.5)
    check_times(left, right, condition, options=CorrelateOptions(unit="ms"))
    check_times(left, timed(case.right, pa.int64()), TimingCondition(within(-4, 4), 0.5))


@pytest.mark.parametrize("unit", [None, "ms"])
@pytest.mark.parametrize("far", [2**61, 2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_numbers_beyond_ticks_are_invalid(far: int, unit: str | None) -> None:
    """From 2^63 on their bits are those of negative numbers."""
    times = pa.array([5, None, far, 2**61 - 1], pa.uint64())
    table = pa.table({"t": times, "id": range(4)})
    given: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": (0, 0)}
    with pytest.raises(DataError, match=rf"times that reach 2\^61 ticks in t in 1 row .*{far}"):
        correlate_tables(table, table, options=CorrelateOptions(unit=unit), **given)
    options = CorrelateOptions(unit=unit, invalid="drop")
    with pytest.warns(DroppedRowsWarning, match="1 out of range"):
        found = correlate_tables(table, table, options=options, right_columns=["t"], **given)
    assert found.to_pydict() == {"left_id": [0, 3], "right_t": [5, 2**61 - 1]}
    assert found.schema.field("right_t").type == pa.uint64()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "min"])
def test_floats(kind: pa.DataType, unit: str) -> None:
    case = small_case()
    left, right = (timed(rows, kind) for rows in case[:2])
    condition = TimingCondition(within(f"-4{unit}", f"4{unit}"), 0.5)
    check_times(left, right, condition, options=CorrelateOptions(unit=unit))
    mixed = timed(case.right, pa.int32())
    check_times(left, mixed, condition, options=CorrelateOptions(unit=unit))


def test_fractions_of_seconds_are_rounded_to_the_tick_that_is_named() -> None:
    case = small_case()
    left, right = (timed(rows, pa.float64(), 1e-6) for rows in case[:2])
    noisy = left.set_column(0, "min_time", pa.compute.add(left["min_time"], pa.scalar(4e-7)))
    options = CorrelateOptions(unit="s", tick="us")
    check_times(noisy, right, TimingCondition(within("-4us", "4us"), 0.5), options=options)
    check_times(noisy, right, TimingCondition(within(-4, 4), 0.5), options=options)


def test_one_column_is_an_exact_instant() -> None:
    left = pa.table({"at": [0, 10, 20], "id": [1, 2, 3]})
    right = pa.table({"when": [5, 14, 99], "id": [7, 8, 9]})
    for left_time, right_time in (("at", "when"), (["at"], ("when", "when"))):
        found = correlate_tables(
            left, right, TimingCondition(within(4, 5), 1.0),
            left_time=left_time, right_time=right_time,
        )  # fmt: skip
        assert sorted(found.to_pylist(), key=str) == [
            {"left_id": 1, "right_id": 7},
            {"left_id": 2, "right_id": 8},
        ]


# --- nulls, keys, chunks ---


@pytest.mark.parametrize("null_side", ["left", "right"])
@pytest.mark.parametrize("where", ["k", "min_time", "max_time"])
@pytest.mark.parametrize("how", ["inner", "left", "anti"])
def test_a_null_in_one_column_only(null_side: str, where: str, how: str) -> None:
    rows = [{"min_time": 10 * i, "max_time": 10 * i, "id": i, "k": "a"} for i in range(4)]
    broken = [{**row, where: None} if row["id"] == 2 else row for row in rows]
    case = JoinCase(rows, rows, 0, 0, 1.0, ("k",))
    case = case._replace(**{null_side: broken})
    left, right = (pa.Table.from_pylist(side) for side in case[:2])
    found = correlate_tables(left, right, condition_of(case), by="k", how=how)
    assert_answer(found.to_pylist(), case, how)
    assert found.num_rows == {"inner": 3, "left": 4, "anti": 1}[how]


def test_nulls_and_invalid_rows_are_counted() -> None:
    left = pa.table({
        "min_time": [0, None, 5, 7, 2**61, None, 20],
        "max_time": [0, 1, None, 6, 2**61, None, 31],
        "k": ["a", "a", "a", "a", "a", "a", None],
        "id": range(7),
    })  # fmt: skip
    right = pa.table({"min_time": [0], "max_time": [0], "k": ["a"], "id": [0]})
    job = table_join(
        left, right, TimingCondition(within(0, 0), 1.0), by=["k"], how="left",
        options=CorrelateOptions(invalid="drop", left_longest=10),
    )  # fmt: skip
    found = pa.Table.from_batches(job.batches(), job.schema).to_pylist()
    assert sorted(row["left_id"] for row in found) == [0, 1, 2, 5]
    summary = job.summary
    assert summary.left.rows == 7
    assert summary.left.invalid == {"order": 1, "range": 1, "length": 1}
    assert summary.left.dropped == 3
    assert summary.right.rows == 1
    assert summary.right.unmatchable == summary.right.dropped == 0
    assert summary.counters.pairs == 1


def test_a_null_key_does_not_excuse_an_invalid_time() -> None:
    left = pa.table({"min_time": [5, 0, 0], "max_time": [0, 0, 0], "k": [None, None, "a"]})
    job = table_join(
        left, left, TimingCondition(within(0, 0), 1.0), by=["k"], how="left",
        left_columns=["k"], right_columns=["k"], options=CorrelateOptions(invalid="drop"),
    )  # fmt: skip
    rows = sum(batch.num_rows for batch in job.batches())
    assert rows == 2
    for counts in (job.summary.left, job.summary.right):
        assert counts == SideCounts(rows=3, unmatchable=1, invalid={"order": 1})


KEYS = {
    pa.string(): ["a", "b", "a", None],
    pa.large_string(): ["a", "b", "a", None],
    pa.string_view(): ["a", "b", "a", None],
    pa.int8(): [1, 2, 1, None],
    pa.uint64(): [2**64 - 1, 2**64 - 2, 2**64 - 1, None],
    pa.bool_(): [True, False, True, None],
    pa.binary(): [b"\0", b"\0\0", b"\0", None],
    pa.date32(): [1, 2, 1, None],
    pa.timestamp("us", "UTC"): [1, 2, 1, None],
    pa.decimal128(20, 2): [Decimal("1.50"), Decimal("1.51"), Decimal("1.50"), None],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b", "a", None],
}


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_types_of_keys(kind: pa.DataType) -> None:
    table = pa.table({
        "min_time": [0] * 4, "max_time": [0] * 4, "id": range(4), "k": pa.array(KEYS[kind], kind)
    })  # fmt: skip
    found = correlate_tables(table, table, TimingCondition(within(0, 0), 1.0), by="k")
    found.validate(full=True)
    pairs = [(row["left_id"], row["right_id"]) for row in found.to_pylist()]
    assert sorted(pairs) == [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)]


def test_a_dictionary_meets_plain_strings() -> None:
    plain = ticks_of([{"min_time": i, "max_time": i, "id": i} for i in range(3)])
    words = pa.array(["x", "y", "x"])
    left = plain.append_column("k", words.dictionary_encode())
    right = plain.append_column("k", words)
    for one, other in ((left, right), (right, left), (left, left)):
        found = correlate_tables(one, other, TimingCondition(within(-5, 5), 1.0), by="k")
        assert found.schema.field("k").type == pa.string()
        assert found.num_rows == 5


def test_chunked_tables_with_different_dictionaries() -> None:
    cases = [case for case in CASES if case.by == ("station",)]
    assert cases
    for case in cases:
        tables = []
        for rows in case[:2]:
            table = ticks_of(rows, case.by)
            parts = [table.slice(i, 3) for i in range(0, max(1, table.num_rows), 3)]
            encoded = [
                part.set_column(3, "station", part["station"].dictionary_encode()) for part in parts
            ]
            tables.append(pa.concat_tables([encoded[0].slice(0, 0), *encoded]))
        found = correlate_tables(*tables, condition_of(case), by=case.by, how="left")
        assert_answer(found.to_pylist(), case, "left")


def test_slices_of_tables() -> None:
    for case in CASES[:12]:
        padding = [{name: -(10**6) if name != "station" else "?" for name in row}
                   for row in case.left[:1]]  # fmt: skip
        padded = ticks_of([*padding, *case.left, *padding], case.by)
        left = padded.slice(len(padding), len(case.left))
        right = ticks_of(case.right, case.by)
        found = correlate_tables(left, right, condition_of(case), by=case.by, emit="lists")
        assert_answer(found.to_pylist(), case, "inner", "lists")


# --- payload ---

PAYLOAD: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", None, "", "é\n"],
    pa.large_string(): ["a", None, "", "é"],
    pa.string_view(): ["a", None, "", "longer than twelve bytes"],
    pa.dictionary(pa.int32(), pa.string()): ["a", None, "b", "a"],
    pa.bool_(): [True, False, None, True],
    pa.int8(): [1, -128, None, 127],
    pa.int64(): [2**53 + 1, -(2**63), None, 0],
    pa.uint64(): [2**64 - 1, 0, None, 1],
    pa.float16(): [np.float16(0.5), None, np.float16(-1), np.float16(2)],
    pa.float64(): [0.1, None, float("inf"), -0.0],
    pa.date32(): [dt.date(2016, 10, 30), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [dt.datetime(2016, 10, 30), None, dt.datetime(1, 1, 1), None],
    pa.timestamp("ms", "UTC"): [dt.datetime(2016, 10, 30, tzinfo=dt.UTC), None, None, None],
    pa.time64("us"): [dt.time(1, 2, 3, 4), None, dt.time(0), None],
    pa.duration("us"): [dt.timedelta(1), None, dt.timedelta(-1), None],
    pa.decimal128(30, 5): [Decimal("1.5"), None, Decimal("-1e20"), Decimal(0)],
    pa.binary(): [b"\0", None, b"", b"\xff"],
    pa.binary(2): [b"ab", None, b"\0\0", b"zz"],
    pa.list_(pa.int32()): [[1, None], None, [], [2]],
    pa.struct({"a": pa.int8(), "b": pa.string()}): [
        {"a": 1, "b": None}, None, {"a": None, "b": "x"}, {"a": 3, "b": "y"},
    ],
    pa.map_(pa.string(), pa.int8()): [[("a", 1)], None, [], [("b", None)]],
    pa.null(): [None] * 4,
}  # fmt: skip


@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
@pytest.mark.parametrize("kind", PAYLOAD, ids=str)
def test_payload_comes_through(kind: pa.DataType, emit: str) -> None:
    values = pa.array(PAYLOAD[kind], kind)
    plain = values.dictionary_decode() if pa.types.is_dictionary(kind) else values
    times = pa.array([0, 100, 200, 300])
    table = pa.table({"min_time": times, "max_time": times, "id": range(4), "v": values})
    shuffled = pa.concat_tables([table.slice(2, 1), table.slice(0, 1), table.slice(3, 1)])
    found = correlate_tables(
        table, shuffled, TimingCondition(within(0, 0), 1.0),
        left_columns=["v", "id"], right_columns=["id", "v"], how="left", emit=emit,
    ).sort_by("left_id")  # fmt: skip
    found.validate(full=True)
    expected = plain.to_pylist()
    assert found["left_v"].to_pylist() == expected
    right = found["right_v"].to_pylist()
    if emit == "lists":
        assert right == [expected[:1], [], expected[2:3], expected[3:]]
    else:
        assert right == [expected[0], None, *expected[2:]]


def test_columns_and_their_order() -> None:
    table = pa.table({
        "min_time": [0], "max_time": [4], "id": [1], "k": ["a"], "x": [1.5], "y": [True]
    })  # fmt: skip
    condition = TimingCondition(within(-9, 9), 0.5)
    found = correlate_tables(
        table, table, condition, by="k", left_columns=("y", "id", "min_time"),
        right_columns="x", probability=True,
    )  # fmt: skip
    assert found.to_pylist() == [{
        "k": "a", "left_y": True, "left_id": 1, "left_min_time": 0, "right_x": 1.5,
        "probability": 1.0,
    }]  # fmt: skip
    assert list(found.to_pylist()[0]) == found.column_names
    counted = correlate_tables(table, table, condition, left_columns=(), emit="counts")
    assert counted.to_pylist() == [{"matches": 1}]
    keyed = correlate_tables(table, table, condition, by="k", left_columns=(), right_columns=())
    assert keyed.to_pylist() == [{"k": "a"}]


# --- nothing there ---


@pytest.mark.parametrize(("how", "emit", "probability"), SHAPES)
@pytest.mark.parametrize("chunks", [0, 1])
def test_tables_without_rows(how: str, emit: str, probability: bool, chunks: int) -> None:
    rows = [{"min_time": 0, "max_time": 1, "id": 5, "station": "AQU"}]
    full = ticks_of(rows, ("station",))
    empty = full.schema.empty_table() if chunks else pa.Table.from_batches([], full.schema)
    whole = correlate_tables(
        full, full, TimingCondition(within(-5, 5), 0.5), by="station",
        how=how, emit=emit, probability=probability,
    )  # fmt: skip
    for left, right in ((empty, empty), (empty, full), (full, empty)):
        found = correlate_tables(
            left, right, TimingCondition(within(-5, 5), 0.5), by="station",
            how=how, emit=emit, probability=probability,
        )  # fmt: skip
        found.validate(full=True)
        assert found.schema == whole.schema
        case = JoinCase(rows * left.num_rows, rows * right.num_rows, -5, 5, 0.5, ("station",))
        assert_answer(found.to_pylist(), case, how, emit, probability)


def test_types_of_the_output() -> None:
    rows = [{"min_time": 0, "max_time": 1, "id": 5}]
    table = ticks_of(rows)
    condition = TimingCondition(within(-5, 5), 0.5)
    schema = correlate_tables(table, table, condition, emit="lists", probability=True).schema
    assert schema.field("right_id").type == pa.list_(pa.int64())
    assert schema.field("probability").type == pa.list_(pa.float64())
    counted = correlate_tables(table, table, condition, emit="counts").schema
    assert counted.field("matches").type == pa.int64()


# --- batches ---


@pytest.mark.parametrize("batch_pairs", [1, 7, 100])
@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_batches_are_bounded(emit: str, batch_pairs: int) -> None:
    times = pa.array(range(0, 300, 3))
    table = pa.table({"min_time": times, "max_time": times, "id": times})
    job = table_join(
        table, table, TimingCondition(within(-6, 6), 1.0), how="left", emit=emit,
        options=CorrelateOptions(batch_pairs=batch_pairs),
    )  # fmt: skip
    batches = list(job.batches())
    assert all(batch.schema == job.schema for batch in batches)
    # One event has at most 5 matches.
    assert max(batch.num_rows for batch in batches) <= max(batch_pairs, 5)
    assert len(batches) >= 100 // batch_pairs


def test_ids_are_put_in_order_only_if_there_are_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    times, sides = pa.array(range(0, 300, 3)), []
    table = pa.table({"min_time": times, "max_time": times, "id": times})
    ordered = RowValues.ordered

    def watched(side: RowValues, order: np.ndarray) -> np.ndarray:
        sides.append(side)
        return ordered(side, order)

    monkeypatch.setattr(RowValues, "ordered", watched)
    for delta, pairs in ((1_000, 0), (3, 99)):
        condition = TimingCondition(within(delta, delta), 1.0)
        assert correlate_tables(table, table, condition).num_rows == pairs
        assert bool(sides) == bool(pairs)


def test_lists_longer_than_an_arrow_list_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 11)
    times = pa.array([5 * (i // 2) for i in range(40)])
    table = pa.table({"min_time": times, "max_time": times, "id": range(40)})
    rows = table.to_pylist()
    for how in ("inner", "left"):
        for probability in (False, True):
            case = JoinCase(rows, rows[:20], -5, 5, 1.0, ())
            shape = (how, "lists", probability)
            check_case(case, *shape)


def test_one_list_that_cannot_be_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 3)
    table = ticks_of([{"min_time": 0, "max_time": 0, "id": i} for i in range(4)])
    with pytest.raises(MemoryBudgetError, match="more than a list can hold"):
        correlate_tables(table, table, TimingCondition(within(0, 0), 1.0), emit="lists")


def test_the_callers_arrays_stay_as_they_are() -> None:
    values = np.array([0, 5, 9])
    keys = pa.array(["a", None, "b"])
    table = pa.table({"min_time": values, "max_time": values, "id": values, "k": keys})
    correlate_tables(table, table, TimingCondition(within(0, 0), 1.0), by="k", how="left")
    assert values.tolist() == table["min_time"].to_pylist() == [0, 5, 9]


def test_uuids_are_keys_and_stay_uuids() -> None:
    stored = pa.array([bytes([i % 3]) * 16 for i in range(9)] + [None], pa.binary(16))
    keys = pa.ExtensionArray.from_storage(pa.uuid(), stored)
    left = pa.table({"min_time": [0] * 10, "max_time": [0] * 10, "key": keys, "id": range(10)})
    condition = TimingCondition(within(0, 0), 1.0)
    found = correlate_tables(left, left, condition, by="key", emit="counts")
    assert found.column("key").type == pa.uuid()
    assert found.column("matches").to_pylist() == [3] * 9
    other = left.set_column(2, "key", stored)
    with pytest.raises(SchemaError, match="key"):
        correlate_tables(left, other, condition, by="key")


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "anti"])
@pytest.mark.parametrize("at", [[7], [dt.datetime(2026, 1, 1)]])
def test_empty_lists_have_the_types_of_the_other_side(how: Any, at: list[Any]) -> None:
    none: dict[str, list[Any]] = {"id": [], "key": [], "at": []}
    some = {"id": ["a"], "key": ["x"], "at": at}
    condition = TimingCondition(within(0, 0), 0.9)
    names: Any = dict(left_time="at", right_time="at", by="key", how=how)
    typed = pa.Table.from_pydict(some).slice(0, 0)
    for left, right in ((some, none), (none, some), (none, none)):
        found = correlate_tables(left, right, condition, **names)
        given = [typed if each is none else pa.Table.from_pydict(each) for each in (left, right)]
        assert found.to_pydict() == correlate_tables(*given, condition, **names).to_pydict()
        where = correlate_tables(left, right, condition, where="left_at <= right_at", **names)
        assert where.to_pydict() == found.to_pydict()
    with pytest.raises(SchemaError, match="at must be a timestamp"):  # nulls are no empty lists
        correlate_tables(some, {"id": [1], "key": ["x"], "at": [None]}, condition, **names)
