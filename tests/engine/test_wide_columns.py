"""Columns of texts and lists larger than an array or a batch: with limits of some hundred bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from coincide.engine.events import rows as row_sizes
from coincide.engine.events.schemas import decoded, narrow_type, one_array, wide_type
from coincide.engine.events.sides import grouped_events
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.files.result_rows import ParquetRows
from coincide.engine.join.timing import JoinSpec
from coincide.model.condition import Window
from coincide.model.errors import MemoryBudgetError
from coincide.model.sides import SIDES
from spark_plugin.tasks.broadcast import (
    BroadcastTask,
    PartialTask,
    sorted_table,
)
from spark_plugin.tasks.exchange import SliceTask
from spark_plugin.tasks.joins import partial_spec
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slice_plan import CellPlan
from spark_plugin.tasks.wire import CODED, TIME, Shipment, WireLayout
from tests.helpers.comparison import SHAPES
from tests.helpers.interval_sides import interval_side
from tests.helpers.joins import local_files_join, table_join

TEXTS = ["", "a", "bb" * 7, None, "c" * 40, "d" * 300, "é" * 20]


def some(kind: pa.DataType, n: int = 60) -> pa.Array:
    """Values of many sizes, of a type that has some."""
    texts = [TEXTS[(7 * i + i // 5) % len(TEXTS)] for i in range(n)]
    rows: dict[str, list[Any]] = {
        "text": texts,
        "bytes": [None if t is None else t.encode() for t in texts],
        "lists": [None if i % 7 == 3 else texts[i : i + i % 4] for i in range(n)],
        "numbers": [None if i % 9 == 3 else list(range(i % 30)) for i in range(n)],
        "struct": [{"id": i, "text": t} for i, t in enumerate(texts)],
        "map": [[(f"key {j}", texts[i - j]) for j in range(i % 3)] for i in range(n)],
        "pairs": [[texts[i], texts[-i]] for i in range(n)],
        "hash": [bytes([i]) * 64 for i in range(n)],
    }
    return pa.array(rows[NAMES[kind]], kind)


NAMES = {
    pa.string(): "text", pa.binary(): "bytes", pa.large_string(): "text",
    pa.list_(pa.string()): "lists", pa.list_(pa.int64()): "numbers",
    pa.struct([("id", pa.int64()), ("text", pa.string())]): "struct",
    pa.map_(pa.string(), pa.string()): "map", pa.list_(pa.string(), 2): "pairs",
    pa.binary(64): "hash",
}  # fmt: skip
KINDS = list(NAMES)
CHUNKS = 7


def chunked(array: pa.Array) -> pa.ChunkedArray:
    """In chunks of some rows, which do not begin where their buffers do."""
    return pa.chunked_array([array.slice(i, CHUNKS) for i in range(0, len(array), CHUNKS)])


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays that end at 1,000 bytes, and batches at 800."""
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 1000)
    monkeypatch.setattr(row_sizes, "BATCH_BYTES", 800)


def events(kind: pa.DataType, null_keys: bool = False) -> pa.Table:
    times = np.arange(60) * 3 % 50
    key = some(pa.string())
    return pa.table({
        "min_time": chunked(pa.array(times)), "max_time": chunked(pa.array(times + 4)),
        "id": chunked(pa.array(np.arange(60))), "key": chunked(key if null_keys else key.fill_null("")),
        "wide": chunked(some(kind)),
    })  # fmt: skip


CONDITION = TimingCondition(within(-5, 6), 0.4)
COLUMNS = {"left_columns": ["id", "wide"], "right_columns": ["wide", "id"]}


def in_order(batches: list[pa.RecordBatch]) -> list[str]:
    """Rows, the elements of lists too in an order."""
    rows = (row for batch in batches for row in batch.to_pylist())
    return sorted(
        str({k: sorted(map(str, v)) if isinstance(v, list) else v for k, v in r.items()})
        for r in rows
    )


def check_size(batches: list[pa.RecordBatch], schema: pa.Schema, most: int = 800) -> None:
    """Bounded, but for rows that alone are too large, and of the promised types."""
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.types == schema.types
        # Ids are bounded by the pairs of a batch.
        sizes = [row_sizes.row_bytes(batch[n].drop_null()) for n in schema.names if n in WIDE]
        assert batch.num_rows == 1 or sum(map(np.sum, sizes)) <= most


WIDE = ("key", "left_wide", "right_wide")


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(("how", "emit", "probability"), SHAPES)
def test_every_shape_in_batches_of_bounded_bytes(
    kind: pa.DataType, how: str, emit: str, probability: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = events(kind, null_keys=True)
    arguments = dict(how=how, emit=emit, probability=probability, by="key", **COLUMNS)
    want = correlate_tables(table, table, CONDITION, **arguments).to_batches()
    monkeypatch.setattr(row_sizes, "BATCH_BYTES", 800)
    if emit != "lists":  # a single list may be too long
        monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 1000)
    for threads in (1, 3):
        job = table_join(
            table, table, CONDITION, **arguments, options=CorrelateOptions(threads=threads)
        )
        found = list(job.batches())
        assert len(found) > len(want) or how == "anti"  # whose texts are null
        assert in_order(found) == in_order(want)
        check_size(found, job.schema)
        assert job.summary.counters.pairs >= 60


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bytes_of_rows(kind: pa.DataType) -> None:
    """Against each value alone, also where an array does not begin where its buffers do."""
    whole = some(kind)
    for array in (whole, whole[11:48], whole.cast(wide_type(kind)), whole[:0]):
        sizes = row_sizes.row_bytes(array)
        assert sizes.tolist() == [int(np.sum(leaf_bytes(value))) for value in array]


def leaf_bytes(value: pa.Scalar) -> list[int]:
    """Bytes of the texts and numbers in a value."""
    kind, held = value.type, value.as_py()
    if pa.types.is_struct(kind):
        return [n for name in kind.names for n in leaf_bytes(value[name])]
    if pa.types.is_map(kind):
        return [len((text or "").encode()) for entry in held for text in entry] + [len(held)]
    if pa.types.is_nested(kind):
        elements = value.values if value.is_valid else []
        # A byte more for each element of no fixed size.
        more = kind.value_type != pa.int64()
        return [n + more * (i == 0) for each in elements for i, n in enumerate(leaf_bytes(each))]
    if isinstance(held, str | bytes):
        return [len(held.encode() if isinstance(held, str) else held)]
    return [0 if row_sizes.is_text(kind) else 8]


def test_rows_that_are_small_and_alike_need_no_sizes() -> None:
    for kind in (pa.int64(), pa.bool_(), pa.float32(), pa.timestamp("us"), pa.decimal128(38)):
        assert row_sizes.row_bytes(pa.nulls(3, kind)) is None


def test_cuts() -> None:
    sizes = np.array([3, 0, 4, 9, 1, 1, 1, 0, 12, 0])
    assert list(row_sizes.cuts(sizes, 10, 7)) == [(0, 3), (3, 4), (4, 8), (8, 9), (9, 10)]
    assert list(row_sizes.cuts(None, 10, 7)) == [(0, 10)]
    assert not list(row_sizes.cuts(None, 0, 7))
    assert not list(row_sizes.cuts(sizes[:0], 0, 7))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_an_array_of_a_column_that_short_offsets_cannot_count(
    kind: pa.DataType, tight: None
) -> None:
    column = chunked(some(kind))
    one = one_array(column)
    assert one.to_pylist() == column.to_pylist()
    # A map counts its entries by 32 bits whatever they hold; numbers in lists are counted one by one.
    assert one.type == (wide_type(kind) if kind != pa.list_(pa.int64()) else kind)
    assert narrow_type(wide_type(kind)) == narrow_type(kind)
    assert one_array(column.slice(0, 5)).type == kind


def test_lists_are_counted_by_element(monkeypatch: pytest.MonkeyPatch) -> None:
    column = chunked(pa.array([[None] * 10] * 40, pa.list_(pa.null())))
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 399)
    assert one_array(column).type == pa.large_list(pa.null())
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 400)
    assert one_array(column).type == column.type


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
def test_encodings_are_decoded_in_chunks(kind: pa.DataType, tight: None) -> None:
    plain = some(kind)
    view = pa.string_view() if kind == pa.string() else pa.binary_view()
    empty = pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int8()), pa.array([], kind))
    for encoded in (plain.dictionary_encode(), plain.cast(view), plain.cast(view)[11:], empty):
        column = decoded(pa.chunked_array([encoded]), kind)
        assert column.to_pylist() == encoded.to_pylist()
        assert column.num_chunks > 1 or len(encoded) == 3
        assert all(sum(map(len, filter(None, c.to_pylist()))) <= 1000 for c in column.chunks)


def test_encoded_columns(tight: None) -> None:
    plain = events(pa.string()).combine_chunks()
    view = plain.set_column(4, "wide", plain["wide"].cast(pa.string_view()))
    encoded = plain.set_column(4, "wide", plain["wide"].dictionary_encode())
    want = correlate_tables(plain, plain, CONDITION, **COLUMNS)
    assert correlate_tables(view, encoded, CONDITION, **COLUMNS).equals(want)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()], ids=str)
def test_keys(kind: pa.DataType, tight: None) -> None:
    """One side's keys fit short offsets and the other's, or both together, do not."""
    long, short = some(kind), some(kind)[:8]
    sides = [
        interval_side([0] * len(key), [0] * len(key), keys=[array])
        for key in (long, short)
        for array in [one_array(chunked(key))]
    ]
    assert len({side.keys[0].type for side in sides}) == (1 if kind == pa.large_string() else 2)
    left, right = grouped_events(*sides)
    equal = [[a == b for b in short.to_pylist()] for a in long.to_pylist()]
    assert (left.group[:, None] == right.group).tolist() == equal


def lists_of_one_event(kind: pa.DataType, n: int) -> pa.Table:
    left = pa.table({"min_time": [0], "max_time": [0], "id": [1]})
    right = pa.table({
        "min_time": np.zeros(n, np.int64), "max_time": np.zeros(n, np.int64),
        "id": np.arange(n), "wide": some(kind, n),
    })  # fmt: skip
    return correlate_tables(
        left, right, TimingCondition(within(0, 0), 1.0), emit="lists", right_columns=["id", "wide"]
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_list_that_no_array_can_hold(kind: pa.DataType, tight: None) -> None:
    assert lists_of_one_event(kind, 4).num_rows == 1
    if row_sizes.has_short_offsets(kind):
        with pytest.raises(MemoryBudgetError, match=r"one left event.*emit='pairs'"):
            lists_of_one_event(kind, 60)
    else:  # long ones can, and so can a list of what needs none
        assert len(lists_of_one_event(kind, 60)["right_wide"][0]) == 60


# --- on Spark: what tasks do, in this process, where limits can be lowered ---

LAYOUT = WireLayout(("key0",), ("slot0", "left1"), ("slot0", "right1"))
NAMES_OUT = ("key", "left_id", "left_wide", "right_id", "right_wide")


def on_the_wire(kind: pa.DataType, layout: WireLayout, sides: tuple[str, ...]) -> pa.Table:
    """The events of both sides, or of one alone, as they cross."""
    tables = []
    for side in sides:
        table = events(kind)
        ends = table["max_time"].to_numpy(), table["min_time"].to_numpy()
        lengths = ends[0] - ends[1] if side == "left" else ends[1] - ends[0] - 1
        own = {
            TIME: table["max_time"], CODED: pa.chunked_array([lengths]), "key0": table["key"],
            "slot0": table["id"], f"{side}1": table["wide"],
        }  # fmt: skip
        columns = {
            name: own[name] if name in own else pa.chunked_array([pa.nulls(60, kind)])
            for name in layout.columns
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def check_task(
    task: Any, batches: Iterator[pa.RecordBatch], kind: pa.DataType, emit: str = "pairs"
) -> list[pa.RecordBatch]:
    found = list(task(batches))
    assert len(found) > 3
    # All have one schema, as one Arrow stream needs, which Spark takes in any case.
    assert {str(batch.schema) for batch in found} == {str(found[0].schema)}
    for batch in found:
        batch.validate(full=True)
    kind = narrow_type(kind)
    assert found[0].schema.field("right_wide").type == (pa.list_(kind) if emit == "lists" else kind)
    return found


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
def test_slices_and_broadcasts(
    kind: pa.DataType, emit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = events(kind)
    ids = ["id", "wide"]
    want = correlate_tables(
        table, table, CONDITION, by="key", left_columns=ids, right_columns=ids, emit=emit
    )
    monkeypatch.setattr(row_sizes, "BATCH_BYTES", 800)
    monkeypatch.setattr(row_sizes, "ARRAY_BYTES", 10_000 if emit == "lists" else 1000)
    spec = JoinSpec(Window(-5, 6, 0.4), emit=emit)
    plan, packs, schemas = CellPlan(1, Reach(-200, 200), needs_keys=False), [], []
    for side in SIDES:
        rows = on_the_wire(kind, LAYOUT.only(side), (side,))
        packing = PackTask(side, rows.schema, INTERVALS, plan, np.array([7]))
        packs += packing(rows.to_batches())
        schemas.append(rows.schema)
    both, shapes = (schemas[0], schemas[1]), ((0, 100), (0, 100))
    task = SliceTask(spec, LAYOUT, NAMES_OUT, schemas=both, shapes=shapes)
    assert in_order(check_task(task, iter(packs), kind, emit)) == in_order(want.to_batches())
    small = sorted_table(
        on_the_wire(kind, LAYOUT.only("right"), ("right",)), LAYOUT, "right", INTERVALS
    )
    broadcast = BroadcastTask(
        spec, LAYOUT, NAMES_OUT, side="right",
        small=Shipment(as_stream(small)), slice_rows=25, slice_bytes=1 << 20,
    )  # fmt: skip
    streamed = on_the_wire(kind, LAYOUT.only("left"), ("left",)).to_batches()
    assert in_order(check_task(broadcast, iter(streamed), kind, emit)) == in_order(
        want.to_batches()
    )


def as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_small_left_side(kind: pa.DataType, tight: None) -> None:
    layout = WireLayout(("key0",), (), LAYOUT.right)
    given = on_the_wire(kind, LAYOUT.only("left"), ("left",))
    small = sorted_table(given, LAYOUT.only("left"), "left", INTERVALS)
    assert small.schema == given.schema
    own = small.select(layout.only("left").columns)
    task = PartialTask(
        partial_spec(JoinSpec(Window(-5, 6, 0.4), how="left")), layout,
        ("row", "right_id", "right_wide"), side="left",
        small=Shipment(as_stream(own)), slice_rows=25, slice_bytes=1 << 20,
    )  # fmt: skip
    streamed = on_the_wire(kind, LAYOUT.only("right"), ("right",)).to_batches()
    found = pa.Table.from_batches(check_task(task, iter(streamed), kind))
    pairs = zip(small["slot0"].take(found["row"].combine_chunks()).to_pylist(),
                found["right_id"].to_pylist(), strict=True)  # fmt: skip
    want = correlate_tables(events(kind), events(kind), CONDITION, by="key")
    wanted = zip(want["left_id"].to_pylist(), want["right_id"].to_pylist(), strict=True)
    assert sorted(pairs) == sorted(wanted)


# --- files ---


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files(kind: pa.DataType, tight: None, tmp_path: Any) -> None:
    table = events(kind).sort_by("min_time")
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=20)
    path = str(tmp_path / "events.parquet")
    arguments = dict(by="key", options=CorrelateOptions(slices=3), **COLUMNS)
    job = local_files_join(path, path, CONDITION, **arguments)
    found = list(job.batches())
    check_size(found, job.schema)
    assert in_order(found) == in_order(
        correlate_tables(table, table, CONDITION, by="key", **COLUMNS).to_batches()
    )
    with ParquetRows(
        "out", lambda: pa.OSFile(str(tmp_path / "out.parquet"), "wb"), job.schema
    ) as rows:
        for batch in found:
            rows.write(batch)
    assert in_order(pq.read_table(tmp_path / "out.parquet").to_batches()) == in_order(found)


# --- without lower limits ---


def test_more_than_two_gibibytes_of_pairs() -> None:
    """A million pairs of 2,200 bytes, none of which need be in memory together."""
    n, text = 1000, "x" * 2200
    left = pa.table({"min_time": np.zeros(n, int), "max_time": np.zeros(n, int), "id": [text] * n})
    right = left.set_column(2, "id", pa.array(np.arange(n)))
    job = table_join(left, right, TimingCondition(within(0, 0), 1.0))
    pairs = size = 0
    for batch in job.batches():
        assert batch.nbytes <= 2 * row_sizes.BATCH_BYTES
        pairs, size = pairs + batch.num_rows, size + batch["left_id"].nbytes
    assert pairs == n * n
    assert size > 2**31


@pytest.mark.slow
def test_more_than_two_gibibytes_of_input() -> None:
    text = "x" * (1 << 20)
    chunk = pa.array([text + str(i) for i in range(64)])
    column = pa.chunked_array([chunk] * 33)
    times = np.arange(len(column))
    events = pa.table({"min_time": times, "max_time": times, "id": times, "text": column})
    few = events.slice(2000).drop("text")
    job = table_join(
        events, few, TimingCondition(within(0, 0), 1.0), left_columns=["id", "text"], how="left"
    )  # fmt: skip
    rows = 0
    for batch in job.batches():
        assert batch["left_text"].type == pa.string()
        assert batch["left_text"].nbytes <= 2 * row_sizes.BATCH_BYTES
        ends = pa.compute.utf8_slice_codeunits(batch["left_text"], len(text))
        assert (
            ends.cast(pa.int64()).to_numpy().tolist() == (batch["left_id"].to_numpy() % 64).tolist()
        )
        rows += batch.num_rows
    assert rows == len(column)
