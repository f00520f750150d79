"""What is packed before the exchange: each event where the plan has it, and as it was when unpacked."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from coincide.engine.events.timestamps import INTERVALS
from spark_plugin.tasks import blobs, packing
from spark_plugin.tasks.blobs import blob_of, packed, unpacked
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.samples import Reach, Step
from spark_plugin.tasks.slice_plan import CellPlan, Places, SlicePlan
from spark_plugin.tasks.wire import (
    CODED,
    KEY_HASH,
    SALT,
    TIME,
    UNMATCHED,
    wire_layout,
)
from tests.spark_plugin.ways.exchange.test_slices import left_slice, right_slices


class Shape(NamedTuple):
    """A plan to try: time slices, key buckets, most parts of a cell, reach."""

    time_slices: int
    buckets: int = 1
    left_parts: int = 1
    reach: Reach = Reach(-300, 500)


OWN = Reach(
    -300, 500, right=(2, 2**61),
    own=(
        Step(2, 5, -3, 4), Step(6, 99, -300, 500), Step(100, 100, 1, 0),
        Step(101, 2**61, -(2**62), 2**62 + 9),
    ),
)  # fmt: skip
FAR = Reach(-(2**63) + 2, 2**63 - 2)

SHAPES = [
    *(Shape(1), Shape(2), Shape(63), Shape(64), Shape(65), Shape(66), Shape(128), Shape(200)),
    *(Shape(1, 5), Shape(1, 1, 4), Shape(1, 3, 3), Shape(7, 1, 3), Shape(9, 4), Shape(70, 3, 3)),
    *(Shape(7, 1, 1, Reach(10**6, 10**6)), Shape(5, 2, 2, FAR), Shape(80, 1, 1, FAR)),
    *(Shape(6, 1, 1, Reach(2**62, 2**63 - 2)), Shape(7, 1, 3), Shape(5, 3, 2)),
    *(Shape(9, 1, 1, OWN), Shape(80, 2, 1, OWN), Shape(7, 1, 3, OWN)),
]


def plan_of(shape: Shape, rng: np.random.Generator) -> SlicePlan:
    spread = rng.choice(np.arange(-9000, 9000), shape.time_slices - 1, replace=False)
    if shape.reach is FAR:
        spread = spread * 2**48
    cells = shape.time_slices * shape.buckets
    parts = rng.integers(1, shape.left_parts, cells, endpoint=True)
    return SlicePlan(np.sort(spread), shape.buckets, parts, shape.reach, 1.0)


def events(plan: SlicePlan, rng: np.random.Generator) -> pa.Table:
    """Midpoints on, next to and between the cuts as either side sees them, and far away."""
    ends = np.array([-(2**62) + 2, 2**62 - 2, 0])
    cuts = rng.permutation(plan.cuts)[:20]
    near = np.concatenate([cuts, *(np.clip(c, -(2**61), 2**61) for c in plan.seen_cuts)])
    midpoints = np.concatenate([ends, near, near - 1, near + 1, rng.integers(-9999, 9999, 40)])
    n = midpoints.size
    return pa.table({
        "id": np.arange(n + 3),
        "midpoint": pa.array([*midpoints.tolist(), None, None, None], pa.int64()),
        "key_hash": rng.integers(-(2**63), 2**63 - 1, n + 3),
        "salt": rng.integers(-(2**63), 2**63 - 1, n + 3),
        CODED: -1 - rng.choice([0, 2, 5, 6, 50, 99, 100, 101, 2**60], n + 3),
    })  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_events_are_in_the_slices_of_the_plan(shape: Shape) -> None:
    rng = np.random.default_rng(shape.time_slices)
    plan = plan_of(shape, rng)
    rows = events(plan, rng).to_pylist()
    given = {
        name: np.array([row[name] or 0 for row in rows])
        for name in ("midpoint", KEY_HASH, SALT, CODED)
    }
    matchable = np.array([row["midpoint"] is not None for row in rows])
    places = Places(given["midpoint"], matchable, given[KEY_HASH], given[SALT])
    left = plan.slices_of(places, is_left=True)
    can = {name: values[matchable] for name, values in given.items()}
    places = Places(can["midpoint"], None, can[KEY_HASH], can[SALT], -1 - can[CODED])
    right = plan.slices_of(places, is_left=False)
    copies = np.bincount(right[0], minlength=len(places.midpoints))
    assert np.array_equal(plan.copies_of(places, is_left=False), copies)

    mine, theirs = [], []
    for i, row in enumerate(rows):
        place = row["midpoint"], row[KEY_HASH]
        if row["midpoint"] is None:
            mine.append((row[SALT] % plan.count, i))
        else:
            mine.append((left_slice(plan, *place, row[SALT]), i))
            shape = -1 - row[CODED]
            theirs += [(slice_, i) for slice_ in right_slices(plan, *place, shape)]
    assert sorted(zip(left[1].tolist(), left[0].tolist(), strict=True)) == sorted(mine)
    known = np.flatnonzero(matchable)
    assert sorted(zip(right[1].tolist(), known[right[0]].tolist(), strict=True)) == sorted(theirs)
    for (order, slices), midpoints in ((left, given["midpoint"]), (right, can["midpoint"])):
        ahead = np.lexsort((midpoints[order], slices))
        assert np.array_equal(midpoints[order][ahead], midpoints[order])
        assert (np.diff(slices) >= 0).all()


def side_of(side: Literal["left", "right"], n: int) -> pa.Table:
    rng = np.random.default_rng(n)
    shapes = rng.integers(0, 50, n)
    coded = np.where(rng.random(n) < 0.1, UNMATCHED, shapes) if side == "left" else -1 - shapes
    return pa.table({
        TIME: np.where(coded == UNMATCHED, 0, rng.integers(-5000, 5000, n)), CODED: coded,
        "slot0": np.arange(n), KEY_HASH: rng.integers(-9, 9, n), SALT: rng.integers(-99, 99, n),
    })  # fmt: skip


PLANS: dict[str, SlicePlan | CellPlan] = {
    "cuts": plan_of(Shape(7, 2, 3), np.random.default_rng(1)),
    "cells": CellPlan(5, Reach(-90, 90), needs_keys=False),
    "cells of keys": CellPlan(5, Reach(-90, 90), needs_keys=True),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch", [1, 7, 1000])
@pytest.mark.parametrize("as_numbers", [False, True])
def test_a_task_packs_the_same_whatever_its_batches(
    monkeypatch: pytest.MonkeyPatch,
    side: Literal["left", "right"],
    batch: int,
    plan: SlicePlan | CellPlan,
    as_numbers: bool,
) -> None:
    monkeypatch.setattr(packing, "_ROWS", 100)
    monkeypatch.setattr(packing, "_COPIES", 30)
    monkeypatch.setattr(packing, "_BATCH_BYTES", 2000)
    table = side_of(side, 400)
    layout = wire_layout(0, [True], [True]).only(side)
    schema = table.select(layout.columns).schema
    task = PackTask(
        side, schema, INTERVALS, plan, np.arange(plan.count) * 10, as_numbers=as_numbers
    )
    found = []
    for packs in task(table.to_batches(max_chunksize=batch)):
        for label, is_left, events_of_slice in zip(*packs.columns, strict=True):
            assert is_left.as_py() == (side == "left")
            part = unpacked([blob_of(events_of_slice)])
            assert part.schema == schema
            found += [(label.as_py(), i) for i in part["slot0"].to_pylist()]
            assert table.select(layout.columns).take(part["slot0"]).equals(part)

    coded, latest = table[CODED].to_numpy(), table[TIME].to_numpy()
    shapes = -1 - coded if side == "right" else np.where(coded == UNMATCHED, 0, coded)
    matchable = coded != UNMATCHED if side == "left" else None
    places = Places(
        2 * latest - shapes, matchable, table[KEY_HASH].to_numpy(), table[SALT].to_numpy()
    )
    rows, slices = plan.slices_of(places, is_left=side == "left")
    assert len(set(slices.tolist())) == plan.count
    assert sorted(found) == sorted(zip((slices * 10).tolist(), rows.tolist(), strict=True))


ENDS = [-(2**63), 2**63 - 1]
COLUMNS = {
    "one value": pa.array([7, 7, 7, 7]),
    "8 bits": pa.array([-100, 155, 0, 1]),
    "16 bits": pa.array([2**60, 2**60 + 2**16 - 1, 2**60, 2**60]),
    "32 bits": pa.array([-(2**63), -(2**63) + 2**32 - 1, -(2**63), -(2**63)]),
    "33 bits": pa.array([0, 2**32, 1, 2]),
    "8 bits of steps": pa.array([5, 2**40 + 5, 2**41 + 9, 3 * 2**40 + 250]),
    "16 bits of steps": pa.array([2**62, 2**61, 1, -(2**61) + 60_000]),
    "steps of all bits": pa.array([0, 2**62, -(2**62), 2**62 - 1]),
    "all bits": pa.array([*ENDS, 0, -1]),
    "nulls": pa.array([1, None, 3, None]),
    "nulls at the end": pa.array([1, 2, None, None]),
    "texts": pa.array(["", "é" * 99, None, "b"]),
    "lists": pa.array([[1], [], None, [2, 3]]),
    "structs": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 2, "b": None}]),
    "instants": pa.array([1, 2, None, 4], pa.timestamp("us", "UTC")),
    "floats": pa.array([float("nan"), -0.0, None, 1e300]),
}


@pytest.mark.parametrize(("columns", "parts"), [(2, 5), (50, 15), (5000, 10)])
def test_packs_are_light_unless_rows_are_wide(columns: int, parts: int) -> None:
    """256 KiB, or 4,096 rows where those are more, and 4 MiB at most."""
    rows = {2: (1 << 16) + 1, 50: 15 * 4096 + 9, 5000: 1000}[columns]
    table = pa.table({f"c{i}": np.arange(rows) for i in range(columns)})
    assert len(list(packed(table))) == parts


@pytest.mark.parametrize("most", [1, 60, 1 << 20])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_come_back_as_they_were(
    monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    monkeypatch.setattr(blobs, "_BYTES", most)
    table = pa.table({"value": COLUMNS[name]})
    found = [*packed(table), *packed(table.slice(1, 2))]
    assert len(found) == {1: 6, 1 << 20: 2}.get(most, len(found))
    back = unpacked(found).column(0)
    assert back.type == table.column(0).type
    expected = pa.concat_tables([table, table.slice(1, 2)]).column(0)
    assert back.to_pylist()[1:] == expected.to_pylist()[1:]
    assert repr(back[0].as_py()) == repr(expected[0].as_py())
    assert all(blob.size < 2000 for blob in found)


KINDS = {
    "one value": pa.uint8(), "16 bits": pa.uint16(), "32 bits": pa.uint32(), "33 bits": pa.int64(),
    "8 bits of steps": pa.uint8(), "16 bits of steps": pa.uint16(), "steps of all bits": pa.int64(),
    "nulls": pa.int64(),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_numbers_take_no_more_bits_than_they_need(name: str) -> None:
    """Values, or the steps between them where these are fewer."""
    (blob,) = packed(pa.table({"value": COLUMNS[name]}))
    assert pa.ipc.open_stream(blob).read_next_batch().schema.field(0).type == KINDS[name]
