"""Slices of cells without a planning job: each left event in one, each right one in all it
reaches."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide.engine.events.timestamps import INTERVALS
from coincide.model.units import TIME_LIMIT
from spark_plugin.tasks.blobs import packed, unpacked
from spark_plugin.tasks.exchange import Room, SliceTask, divided
from spark_plugin.tasks.packing import EVENTS, IS_LEFT, PackTask
from spark_plugin.tasks.samples import Reach
from spark_plugin.tasks.slice_plan import CellPlan, Places
from spark_plugin.tasks.wire import CODED, LABEL, TIME, UNMATCHED, wire_layout

FARTHEST = 2 * TIME_LIMIT - 2
REACHES = [(0, 0), (-7, 7), (100, 130), (-1000, -1000), (-(2**62), 2**62), (FARTHEST, FARTHEST)]


def placed(
    plan: CellPlan, is_left: bool, midpoints: np.ndarray, keys: np.ndarray | None = None
) -> list[tuple[int, int]]:
    """Events by their numbers, and the slices that they are in."""
    places = Places(midpoints, hashes=np.empty(0, np.int64) if keys is None else keys)
    rows, slices = plan.slices_of(places, is_left=is_left)
    assert ((slices >= 0) & (slices < plan.count)).all()
    assert np.array_equal(np.lexsort((midpoints[rows], slices)), np.arange(rows.size))
    assert rows.size <= plan.copies_of(places, is_left=is_left).sum()
    return list(zip(rows.tolist(), slices.tolist(), strict=True))


def slices_by_row(found: list[tuple[int, int]]) -> dict[int, set[int]]:
    by_row: dict[int, set[int]] = {}
    for row, slice_ in found:
        assert slice_ not in by_row.setdefault(row, set())
        by_row[row].add(slice_)
    return by_row


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("count", [1, 2, 7, 70_000])
def test_every_pair_within_reach_is_in_one_slice(
    count: int, reach: tuple[int, int], keyed: bool
) -> None:
    random = np.random.default_rng(count)
    plan = CellPlan(count, Reach(*reach), keyed)
    origin = int(random.integers(-(2**40), 2**40))
    span = 3 << min(plan.width, 40)
    left = np.sort(random.integers(origin - span, origin + span, 60))
    # Matches just within reach, where cells end, and anywhere; some rows are alike.
    edges = (left[:20] >> plan.width << plan.width) - random.integers(0, 2, 20)
    left = np.concatenate([left, edges, left[:3], [-FARTHEST, 1 - FARTHEST, FARTHEST]])
    left = np.clip(left, -FARTHEST, FARTHEST)
    right = np.concatenate([
        *(np.clip(left.astype(object) + end, -FARTHEST, FARTHEST).astype(np.int64) for end in reach),
        random.permutation(left),
    ])  # fmt: skip
    random.shuffle(right)
    known = random.integers(-(2**63), 2**63, 3)
    keys = [known[random.integers(0, 3, n)] for n in (left.size, right.size)]
    own, others = (
        slices_by_row(placed(plan, is_left, midpoints, key if keyed else None))
        for is_left, midpoints, key in ((True, left, keys[0]), (False, right, keys[1]))
    )
    assert sorted(own) == list(range(left.size))
    assert sorted(others) == list(range(right.size))
    assert all(len(slices) == 1 for slices in own.values())
    pairs = 0
    for i, m in enumerate(left.tolist()):
        for j, other in enumerate(right.tolist()):
            if reach[0] <= other - m <= reach[1] and (not keyed or keys[0][i] == keys[1][j]):
                pairs += 1
                assert own[i] <= others[j]
    assert pairs > (0 if reach[0] == FARTHEST else 20)


@pytest.mark.parametrize("keyed", [False, True])
def test_slices_are_even_whatever_is_dense(keyed: bool) -> None:
    """A second with a million events a second, and a year with one a minute."""
    random = np.random.default_rng(4)
    plan = CellPlan(8, Reach(-100, 100), keyed)
    times = np.concatenate(
        [random.integers(0, 10**6, 100_000), random.integers(0, 10**12, 100_000)]
    )
    places = Places(times, hashes=random.integers(0, 50, times.size))
    for is_left in (True, False):
        rows, slices = plan.slices_of(places, is_left=is_left)
        counts = np.bincount(slices, minlength=8)
        assert counts.max() < 1.1 * counts.mean()
        assert rows.size <= times.size * (1 if is_left else plan.replication + 0.01)


def test_few_cells_are_spread_evenly() -> None:
    plan = CellPlan(8, Reach(-5, 5), needs_keys=False)
    cells = np.arange(100, 148) << plan.width
    counts = np.bincount(plan.slices_of(Places(cells), is_left=True)[1], minlength=8)
    assert counts.max() <= 8


def test_keys_spread_a_burst() -> None:
    plan = CellPlan(16, Reach(-5, 5), needs_keys=True)
    burst = Places(np.zeros(10_000, np.int64), hashes=np.arange(10_000) * 7919)
    counts = np.bincount(plan.slices_of(burst, is_left=True)[1], minlength=16)
    assert counts.max() < 1.3 * counts.mean()


def test_events_that_match_nothing_are_spread() -> None:
    plan = CellPlan(8, Reach(-5, 5), needs_keys=False)
    n = 8000
    idle = Places(
        np.zeros(n, np.int64), np.arange(n) % 2 == 0, salts=np.random.default_rng(1).integers(0, 2**62, n)
    )  # fmt: skip
    rows, slices = plan.slices_of(idle, is_left=True)
    assert np.array_equal(np.sort(rows), np.arange(n))
    assert len(set(slices[rows % 2 == 0].tolist())) == 1
    counts = np.bincount(slices[rows % 2 == 1], minlength=8)
    assert counts.max() < 1.3 * counts.mean()


def test_a_cell_is_many_times_as_long_as_pairs_reach() -> None:
    for span, keyed in itertools.product(
        (0, 1, 2, 1000, 2**40, 2**58 - 1, 2**58, 2**60, 2**62, 2**63), (False, True)
    ):
        plan = CellPlan(3, Reach(-(span // 2), span - span // 2), keyed)
        reaches = 16 if keyed else 8
        assert min(reaches * span, 2**62) <= 2**plan.width <= max(2 * reaches * span, 16)
        assert plan.replication <= 1 + 1 / reaches or span > 2**58
        assert 1 << plan.finer(2).width >= min(2 * span, 2**62)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_slice_is_divided_by_another_hash(level: int) -> None:
    plan = CellPlan(6, Reach(-50, 50), needs_keys=False)
    times = np.random.default_rng(2).integers(0, 10**9, 60_000)
    for _ in range(level):
        rows, slices = plan.slices_of(Places(times), is_left=True)
        times, plan = times[rows[slices == 2]], plan.finer(6)
    counts = np.bincount(plan.slices_of(Places(times), is_left=True)[1], minlength=6)
    assert counts.max() < 2 * counts.mean() + 20


def events(side: str, n: int, idle: bool) -> pa.Table:
    random = np.random.default_rng(n)
    lengths = random.integers(0, 40, n)
    coded = lengths if side == "left" else -1 - lengths
    if idle:
        coded = np.where(random.random(n) < 0.4, UNMATCHED, coded)
    times = np.where(coded == UNMATCHED, 0, random.integers(0, 10**6, n))
    return pa.table({TIME: times, CODED: coded, "slot0": np.arange(n)})


@pytest.mark.parametrize("most", [(100, 1 << 30), (1 << 30, 4000), (1 << 30, 1 << 30)])
def test_a_slice_that_is_too_large_is_joined_in_parts(most: tuple[int, int]) -> None:
    """Each part has the matches of its left events; each left event is in one."""
    sides = events("left", 700, idle=True), events("right", 900, idle=False)
    room = Room(CellPlan(4, Reach(-100, 100), needs_keys=True), *most)
    packs = tuple([blob for part in cut(side) for blob in packed(part)] for side in sides)
    count = room.parts(packs)  # type: ignore[arg-type]
    assert count == {100: 16, 1 << 30: 1}.get(min(most), count)
    assert (count == 1) == (min(most) == 1 << 30)
    schemas = sides[0].schema, sides[1].schema
    plan, models = room.plan.finer(count), (INTERVALS, INTERVALS)
    tasks = [
        PackTask(side, schemas[i], models[i], plan, np.arange(count))
        for i, side in enumerate(("left", "right"))
    ]
    parts = list(divided(packs, tasks, count))
    assert packs == ([], [])
    assert len(parts) == count
    # However many packs there were, of a side a part has but one.
    assert {len(of_side) for part in parts for of_side in part} <= {0, 1}
    own, others = (
        [unpacked(part[i]) if part[i] else schemas[i].empty_table() for part in parts]
        for i in (0, 1)
    )
    assert sorted(i for part in own for i in part["slot0"].to_pylist()) == list(range(700))
    for i, of_side in ((0, own), (1, others)):
        for part in of_side:
            assert part.equals(sides[i].take(part["slot0"]))
    if len(parts) > 1:
        assert max(part.num_rows for part in own) < 250
    left_keys, right_keys = (2 * t[TIME].to_numpy() - lean for t, lean in leans(sides))
    in_part = [set(part["slot0"].to_pylist()) for part in others]
    for part, near in zip(own, in_part, strict=True):
        for row, coded in zip(part["slot0"].to_pylist(), part[CODED].to_pylist(), strict=True):
            if coded != UNMATCHED:
                apart = np.abs(right_keys - left_keys[row])
                assert set(np.flatnonzero(apart <= 100).tolist()) <= near


@pytest.mark.parametrize(
    ("most", "parts"), [((100, 1 << 30), 16), ((1 << 30, 4000), 0), ((1600, 1 << 30), 1)]
)
def test_a_task_divides_what_it_has_no_room_for(most: tuple[int, int], parts: int) -> None:
    sides = events("left", 700, idle=True), events("right", 900, idle=False)
    labelled = [
        (7, side == "left", blob)
        for side, table in zip(("left", "right"), sides, strict=True)
        for part in cut(table)
        for blob in packed(part)
    ]
    labels, are_left, blobs = zip(*labelled, strict=True)
    batch = pa.record_batch({
        LABEL: pa.array(labels), IS_LEFT: pa.array(are_left),
        EVENTS: pa.array([blob.to_pybytes() for blob in blobs]),
    })  # fmt: skip
    layout = wire_layout(0, [True], [True])
    spec: Any = SimpleNamespace(models=(INTERVALS, INTERVALS))
    room = Room(CellPlan(4, Reach(-100, 100), needs_keys=True), *most)
    schemas = sides[0].schema, sides[1].schema
    task = SliceTask(spec, layout, (), schemas=schemas, shapes=((0, 0), (0, 0)), room=room)
    found = list(task.slices([batch]))
    assert len(found) == parts if parts else len(found) > 1
    assert {label for _, _, label in found} == {7}
    assert sum(len(left) for left, _, _ in found) == 700
    assert sum(len(right) for _, right, _ in found) >= 900


def cut(table: pa.Table) -> list[pa.Table]:
    return [table.slice(start, 90) for start in range(0, table.num_rows, 90)]


def leans(sides: tuple[pa.Table, pa.Table]) -> list[tuple[pa.Table, np.ndarray]]:
    """Lengths of the events of each side."""
    left, right = (side[CODED].to_numpy() for side in sides)
    return [(sides[0], np.where(left == UNMATCHED, 0, left)), (sides[1], -1 - right)]
