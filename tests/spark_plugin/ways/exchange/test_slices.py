"""The slice planner: every pair in one slice, even work, few copies. Plans are played in NumPy."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from coincide.model.errors import CopiedRowsWarning, LargeSlicesWarning, MemoryBudgetError
from coincide.model.options import OUTPUT_ROWS, CorrelateOptions
from spark_plugin.tasks.samples import Reach, Sample, shifted
from spark_plugin.tasks.slice_plan import SlicePlan
from spark_plugin.ways.exchange import planning as planner
from spark_plugin.ways.exchange.planning import plan_slices

PAIRS = OUTPUT_ROWS["pairs"].pair_work
EVENTS = 1000.0
"""The number of events that each sample of these tests represents: much work, small arrays."""


def sample(midpoints: Any, hashes: Any = 0, weight: float = EVENTS, shapes: Any = 0) -> Sample:
    midpoints = np.asarray(midpoints, np.int64)
    hashes, shapes = (
        np.broadcast_to(np.asarray(each, np.int64), midpoints.shape) for each in (hashes, shapes)
    )
    order = np.argsort(midpoints, kind="stable")
    weights = np.full(midpoints.shape, weight)
    return Sample(
        midpoints[order], weights, hashes[order].copy(), int(weights.sum()), shapes[order].copy()
    )


def plan_for(left: Sample, right: Sample, reach: Reach, **changes: Any) -> SlicePlan:
    keyed = bool(np.any(left.hashes) or np.any(right.hashes))
    settings = {"parallelism": 4, "pair_work": PAIRS, "keyed": keyed} | changes
    of_options = {field.name for field in fields(CorrelateOptions)} & settings.keys()
    options = CorrelateOptions(**{name: settings.pop(name) for name in of_options})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner, "MOST_COPIES", settings.pop("copies", planner.MOST_COPIES))
        return plan_slices(left, right, reach, options, **settings)


# --- playing a plan, by its definition and with Python's integers ---


def left_slice(plan: SlicePlan, midpoint: int, key_hash: int, salt: int) -> int:
    """The slice of a left event."""
    time_slice = sum(int(cut) <= midpoint for cut in plan.cuts)
    cell = time_slice * plan.buckets + key_hash % plan.buckets
    return int(plan.left_parts[:cell].sum()) + salt % int(plan.left_parts[cell])


def right_slices(plan: SlicePlan, midpoint: int, key_hash: int, shape: int = 0) -> list[int]:
    """All slices of a right event: of the time slices that its reach touches."""
    found = []
    edges = [-math.inf, *(int(cut) for cut in plan.cuts), math.inf]
    first, last = plan.reach.first, plan.reach.last
    if plan.reach.own:
        # An event whose shape is not planned comes to one slice, which refuses it.
        first = last = plan.reach.middle
    for step in plan.reach.own:
        if step.lowest <= shape <= step.highest:
            first, last = step.first, step.last
    if first > last and len(edges) > 2:
        return []
    lowest, highest = midpoint - last, midpoint - first
    for time_slice in range(len(edges) - 1):
        if lowest < edges[time_slice + 1] and highest >= edges[time_slice]:
            cell = time_slice * plan.buckets + key_hash % plan.buckets
            first = int(plan.left_parts[:cell].sum())
            found += range(first, first + int(plan.left_parts[cell]))
    return found


def work_of(plan: SlicePlan, left: Sample, right: Sample, pair_work: float = PAIRS) -> np.ndarray:
    """True work of each slice: rows that come in and pairs that are found."""
    work = np.zeros(plan.count)
    right_cells: dict[int, list[int]] = {s: [] for s in range(plan.count)}
    for j, (midpoint, key_hash) in enumerate(zip(right.midpoints, right.hashes, strict=True)):
        for s in right_slices(plan, int(midpoint), int(key_hash)):
            right_cells[s].append(j)
            work[s] += right.weights[j]
    for i, (midpoint, key_hash) in enumerate(zip(left.midpoints, left.hashes, strict=True)):
        mine = right.hashes == key_hash
        near = right.midpoints[mine] - midpoint
        matches = right.weights[mine][(near >= plan.reach.first) & (near <= plan.reach.last)].sum()
        cell = left_slice(plan, int(midpoint), int(key_hash), 0)
        count = int(plan.left_parts[plan.first_slices == cell][0])
        # The salt deals the events that a sample represents evenly.
        work[cell : cell + count] += left.weights[i] * (1 + pair_work * matches) / count
    return work


def check_pairs(plan: SlicePlan, left: Sample, right: Sample) -> None:
    """Each left event meets all that it can reach, in one slice each."""
    rng = np.random.default_rng(0)
    for midpoint, key_hash in zip(left.midpoints[::7], left.hashes[::7], strict=True):
        mine = left_slice(plan, int(midpoint), int(key_hash), int(rng.integers(-(2**63), 2**63)))
        assert 0 <= mine < plan.count
        for other, other_hash in zip(right.midpoints[::5], right.hashes[::5], strict=True):
            near = plan.reach.first <= int(other) - int(midpoint) <= plan.reach.last
            if near and key_hash == other_hash:
                theirs = right_slices(plan, int(other), int(other_hash))
                assert theirs.count(mine) == 1


def copies(plan: SlicePlan, right: Sample) -> float:
    """True copies per right event."""
    found = [
        len(right_slices(plan, int(m), int(h)))
        for m, h in zip(right.midpoints, right.hashes, strict=True)
    ]
    return float(np.average(found, weights=right.weights))


def check(plan: SlicePlan, left: Sample, right: Sample) -> np.ndarray:
    """All that must hold of any plan. Returns the work of the slices."""
    assert np.all(np.diff(plan.cuts) > 0)
    assert plan.left_parts.shape == ((plan.cuts.size + 1) * plan.buckets,)
    assert plan.left_parts.min() >= 1
    assert plan.count == plan.left_parts.sum()
    assert plan.replication == pytest.approx(copies(plan, right))
    check_pairs(plan, left, right)
    return work_of(plan, left, right)


# --- shapes of data ---


def skewed(n: int, seed: int) -> np.ndarray:
    """Times that come a hundred times as dense at the end as at the start."""
    u = np.random.default_rng(seed).random(n)
    return (10**9 * np.log1p(99 * u) / np.log(100)).astype(np.int64)


@pytest.mark.parametrize("slices", [2, 8, 16])
def test_skew_in_time_is_cut_to_even_work(slices: int) -> None:
    left, right = sample(skewed(1500, 1), weight=10**4), sample(skewed(1500, 2), weight=10**4)
    plan = plan_for(left, right, Reach(-(10**5), 10**5), slices=slices)
    work = check(plan, left, right)
    assert plan.count == slices
    assert plan.replication < 1.05
    assert work.max() < 1.25 * work.mean()
    whole, cuts = np.ones(slices, np.int64), np.linspace(0, 10**9, slices + 1).astype(np.int64)
    even = SlicePlan(cuts[1:-1], 1, whole, plan.reach, 1.0)
    if slices > 2:
        assert work.max() < 0.6 * work_of(even, left, right).max()


def test_dense_pairs_weigh_more_than_rows() -> None:
    """Half of the left events have matches, the others none: the busy half gets most slices."""
    rng = np.random.default_rng(3)
    left = sample(rng.integers(0, 2 * 10**6, 1000))
    right = sample(rng.integers(0, 10**6, 1000))
    plan = plan_for(left, right, Reach(-2000, 2000), slices=10)
    work = check(plan, left, right)
    assert (plan.cuts < 10**6).sum() >= 8
    assert work.max() < 1.5 * work.mean()


def test_the_window_may_lie_far_off() -> None:
    """Right events follow after an hour: their cuts are where their matches are."""
    rng = np.random.default_rng(4)
    left = sample(rng.integers(0, 10**6, 800))
    right = sample(rng.integers(0, 10**6, 800) + 10**9)
    plan = plan_for(left, right, Reach(10**9 - 500, 10**9 + 500), slices=6)
    work = check(plan, left, right)
    assert plan.count == 6
    assert plan.replication < 1.1
    assert work.max() < 1.3 * work.mean()


def test_sparse_data_stay_whole() -> None:
    left, right = sample([0, 10**15], weight=1), sample([5, 10**12, 10**18], weight=1)
    plan = plan_for(left, right, Reach(-10, 10))
    check(plan, left, right)
    assert plan.count == 1
    assert plan.replication == 1


def test_more_slices_than_events() -> None:
    left, right = sample([0, 10, 20], weight=1), sample([5, 15], weight=1)
    plan = plan_for(left, right, Reach(-5, 5), slices=50)
    check(plan, left, right)
    assert plan.count <= 6


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("slices", [None, 1, 7])
def test_empty_sides(slices: int | None, keyed: bool) -> None:
    some = sample([1, 2, 3], 5 if keyed else 0)
    for left, right in ((sample([]), sample([])), (sample([]), some), (some, sample([]))):
        plan = plan_for(left, right, Reach(-5, 5), slices=slices, keyed=keyed)
        assert 1 <= plan.count <= (slices or 1)
        assert plan.cuts.size + 1 <= plan.count


def test_an_empty_reach() -> None:
    """No pair can qualify, but every event still has its slice."""
    left, right = sample(range(0, 4000, 4)), sample(range(2, 4000, 4))
    plan = plan_for(left, right, Reach(4, 3), slices=5)
    assert plan.count == 5
    assert {left_slice(plan, m, 0, 0) for m in range(0, 4000, 4)} == set(range(5))


def test_a_burst_at_one_instant_is_split_and_little_is_copied() -> None:
    rng = np.random.default_rng(5)
    calm = rng.integers(0, 10**8, 600)
    left = sample(np.concatenate([calm, np.full(600, 5 * 10**7)]))
    right = sample(np.concatenate([calm + 1, np.full(60, 5 * 10**7)]))
    plan = plan_for(left, right, Reach(-100, 100), slices=12)
    work = check(plan, left, right)
    assert plan.is_split
    assert plan.left_parts.max() >= 8
    assert work.max() < 0.25 * work.sum()
    assert plan.replication <= 4
    assert "heavy" in plan.describe()


def test_all_events_at_one_instant() -> None:
    left, right = sample(np.full(500, 10**6)), sample(np.full(40, 10**6))
    plan = plan_for(left, right, Reach(-10, 10), slices=8, copies=8)
    work = check(plan, left, right)
    assert plan.left_parts.max() == 8
    assert work.max() < 1.2 * work.sum() / 8


def test_a_hot_key() -> None:
    """One key has most events of a window longer than the data: buckets alone cannot help."""
    rng = np.random.default_rng(6)
    keys = rng.integers(1, 2**62, 40)
    hot = np.where(rng.random(1200) < 0.7, keys[0], rng.choice(keys, 1200))
    left = sample(rng.integers(0, 1000, 1200), hot)
    right = sample(rng.integers(0, 1000, 300), rng.choice(hot, 300))
    plan = plan_for(left, right, Reach(-(10**6), 10**6), slices=12)
    work = check(plan, left, right)
    assert plan.buckets > 1
    assert plan.is_split
    assert work.max() < 0.35 * work.sum()
    assert plan.replication <= 4


@pytest.mark.parametrize("given", [{"copies": 1.0}, {"pair_work": 0.0}], ids=str)
def test_a_window_longer_than_the_data_with_keys_copies_nothing(given: dict[str, float]) -> None:
    rng = np.random.default_rng(7)
    keys = rng.integers(-(2**63), 2**63, 500)
    left, right = (sample(rng.integers(0, 1000, 900), rng.choice(keys, 900)) for _ in range(2))
    plan = plan_for(left, right, Reach(-(10**6), 10**6), slices=8, slice_rows=1, **given)
    work = check(plan, left, right)
    assert plan.replication == 1
    assert plan.cuts.size == 0
    assert plan.buckets == plan.count == 8
    assert work.max() < 2 * work.mean()


def test_a_window_longer_than_the_data_without_keys() -> None:
    """Work can then only be shared by copying: as far as allowed and no further."""
    rng = np.random.default_rng(8)
    left, right = (sample(rng.integers(0, 1000, 900)) for _ in range(2))
    for most, slices in ((1.0, 1), (4.0, 4), (64.0, 8)):
        plan = plan_for(left, right, Reach(-(10**6), 10**6), slices=8, copies=most, slice_rows=1)
        check(plan, left, right)
        assert plan.replication <= most
        assert plan.count == slices


@pytest.mark.parametrize("reach", [10, 10**4, 10**5, 10**6, 10**7])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("most", [1.0, 1.5, 4.0])
def test_replication_is_bounded(reach: int, keyed: bool, most: float) -> None:
    rng = np.random.default_rng(9)
    keys = rng.integers(1, 2**62, 30) if keyed else np.zeros(1, np.int64)
    left, right = (sample(rng.integers(0, 10**6, 300), rng.choice(keys, 300)) for _ in range(2))
    plan = plan_for(
        left, right, Reach(-reach, reach), slices=16, copies=most, slice_rows=1000,
        keyed=keyed,
    )  # fmt: skip
    check(plan, left, right)
    assert plan.replication <= most
    if reach == 10 and most > 1:
        assert plan.count >= 12


def test_few_rows_may_be_copied_at_will() -> None:
    left, right = sample(range(1000), weight=1000), sample(range(0, 1000, 100), weight=1)
    plan = plan_for(left, right, Reach(-(10**6), 10**6), slices=8, copies=1.0)
    check(plan, left, right)
    assert plan.count == 8
    assert plan.replication == 8


# --- how many ---


def test_the_number_of_slices_follows_the_work() -> None:
    rng = np.random.default_rng(10)
    reach = Reach(-10, 10)

    def count(rows: int, **changes: Any) -> int:
        weight = rows / 400
        left, right = (sample(rng.integers(0, 10**9, 200), weight=weight) for _ in range(2))
        return plan_for(left, right, reach, **changes).count

    assert count(4000) == 1
    assert count(250_000) == 2
    assert count(4_000_000) == 4
    # Whole waves of 4 tasks of at most 1,000,000 rows.
    assert count(4_500_000) == 8
    assert count(4_500_000, slice_rows=500_000) == 12
    assert count(4_500_000, parallelism=32) == 32


def test_the_number_of_slices_is_bounded() -> None:
    left = right = sample(range(0, 10**7, 1000), weight=10**9)
    plan = plan_for(left, right, Reach(0, 0), parallelism=10**6, slice_rows=10**10)
    assert plan.count <= 2 * planner.MOST_TIME_SLICES
    plan = plan_for(left, right, Reach(0, 0), slice_rows=1000)
    with pytest.raises(
        MemoryBudgetError, match=r"hold [12],[05]00,000.0 times what slice_rows=1000 "
    ):
        planner.check_room(plan, right, CorrelateOptions(slice_rows=1000))
    few = sample(range(0, 10**7, 1000), weight=10)
    with pytest.raises(MemoryBudgetError, match="slice_rows=1000 rows would be"):
        plan_for(left, few, Reach(0, 0), slice_rows=1000)


# --- the room of a slice ---


def fill_of(plan: SlicePlan, left: Sample, right: Sample) -> np.ndarray:
    """Events of both sides in each slice."""
    rows = np.zeros(plan.count)
    salts = range(
        int(plan.left_parts.max())
    )  # they deal the events that a sample stands for evenly
    for place in zip(left.midpoints.tolist(), left.hashes.tolist(), strict=True):
        for salt in salts:
            rows[left_slice(plan, *place, salt)] += EVENTS / len(salts)
    for place in zip(right.midpoints.tolist(), right.hashes.tolist(), strict=True):
        rows[right_slices(plan, *place)] += EVENTS
    return rows


@pytest.mark.parametrize(
    ("left_n", "right_n", "full"), [(3, 4000, 40.03), (4000, 4000, 80), (9000, 3000, 60)]
)
def test_a_burst_on_the_right_is_whole_in_a_slice_and_told_of(
    left_n: int, right_n: int, full: float
) -> None:
    """Left events are dealt where that saves: to parts as large as the burst that each part needs."""
    left, right = sample([500] * left_n), sample([500] * right_n)
    options = CorrelateOptions(slice_rows=100_000)
    plan = plan_for(left, right, Reach(-10, 10), slice_rows=100_000, copies=1.0)
    assert plan.left_parts.tolist() == [max(1, left_n // right_n)]
    check_pairs(plan, left, right)
    assert plan.fill == pytest.approx(full)
    assert fill_of(plan, left, right).max() == pytest.approx(full * 100_000)
    with pytest.warns(LargeSlicesWarning, match=rf"hold {full:.1f} times what slice_rows=100000"):
        planner.check_room(plan, right, options)


def test_a_plan_that_multiplies_rows_says_so_or_is_refused() -> None:
    """A burst on the left that is dealt to a thousand slices, and one on the right that each needs."""
    reach, options = Reach(-10, 10), CorrelateOptions()
    right = sample([500] * 90, weight=10**4)
    warned = pytest.warns(CopiedRowsWarning, match=r"900,000 .* 100[12]\.0 slices")
    refused = pytest.raises(MemoryBudgetError, match=r"up to 4 slices pay\).* Narrow the window")
    for weight, told in ((10**5, warned), (2 * 10**5, refused)):
        left = sample([500] * 9000, weight=weight)
        with told:
            planner.check_room(plan_for(left, right, reach), right, options)


@pytest.mark.parametrize(("left_n", "right_n"), [(600, 90), (900, 30), (2000, 60)])
@pytest.mark.parametrize("keyed", [False, True])
def test_slices_hold_what_they_should(left_n: int, right_n: int, keyed: bool) -> None:
    rng = np.random.default_rng(left_n)
    calm = rng.integers(0, 10**8, 300)
    hot = 77 if keyed else 0
    left, right = (
        sample([*calm, *[10**7] * n], [*(calm % 50 if keyed else calm * 0), *[hot] * n])
        for n in (left_n, right_n)
    )
    plan = plan_for(left, right, Reach(-1000, 1000), slice_rows=100_000, copies=2.0)
    check_pairs(plan, left, right)
    assert fill_of(plan, left, right).max() <= 200_000


def test_a_window_as_long_as_the_data() -> None:
    """All right events are needed everywhere, and no slice holds more left ones than it has room for."""
    left, right = sample(range(0, 10**6, 1000)), sample(range(0, 10**6, 10_000))
    plan = plan_for(left, right, Reach(-(10**6), 10**6), slice_rows=200_000)
    check_pairs(plan, left, right)
    assert fill_of(plan, left, right).max() <= 320_000


def test_wide_rows_need_more_slices() -> None:
    left = right = sample(range(0, 10**6, 1000))
    narrow, wide = (
        plan_for(left, right, Reach(-10, 10), row_bytes=(24.0, size), slice_bytes=2**26)
        for size in (24.0, 10_000.0)
    )
    assert narrow.count <= 4
    assert wide.count >= 10_000 * 10**6 / 2**26


def test_few_rows_of_many_pairs_do_not_leave_all_others_to_one_slice() -> None:
    calm = list(range(0, 10**9, 250_000))
    left = right = sample([*calm, *[5 * 10**8] * 400])
    plan = plan_for(left, right, Reach(-100, 100), slice_rows=500_000)
    assert fill_of(plan, left, right).max() <= 1_000_000


def test_as_many_slices_as_were_asked_for() -> None:
    left = right = sample(range(1000), range(1000))
    plan = plan_for(left, right, Reach(-10, 10), slices=150_000)
    assert plan.count >= 150_000


def test_slices_that_were_asked_for_may_be_of_any_size() -> None:
    left, right = sample([500] * 4000), sample([500] * 30)
    plan = plan_for(left, right, Reach(-10, 10), slice_rows=1000, slices=2)
    check_pairs(plan, left, right)
    assert plan.count <= 3
    assert plan.fill == 0


# --- the ends of int64 ---

FAR = 2**62 - 2
"""Doubled midpoints reach this far."""


@pytest.mark.parametrize(
    "reach",
    [
        Reach(-(2**63) + 2, 2**63 - 2), Reach(2**62, 2**63 - 2), Reach(-(2**63) + 2, -(2**62)),
        Reach(-FAR, FAR), Reach(2**62 - 10, 2**62 + 10), Reach(-1, 1), Reach(2**63 - 10, 2**63 - 2),
    ],
)  # fmt: skip
def test_far_midpoints_and_reaches(reach: Reach) -> None:
    """The plan's own arithmetic must not overflow: neither its estimate nor what Spark gets."""
    spots = np.array([-FAR, -(2**61), -5, 0, 5, 2**61, FAR])
    left = right = sample(np.repeat(spots, 12))
    plan = plan_for(left, right, reach, slices=6)
    check(plan, left, right)
    first_cuts, last_cuts = plan.seen_cuts
    for m in spots.tolist():
        first, last = ((cuts <= m).sum() for cuts in (first_cuts, last_cuts))
        cells = right_slices(plan, m, 0)
        assert plan.first_slices[first] == cells[0]
        assert plan.first_slices[last] + plan.left_parts[last] - 1 == cells[-1]


def test_shifted() -> None:
    values = np.array([-(2**63), -5, 0, 5, 2**63 - 1])
    assert shifted(values, 3).tolist() == [-(2**63) + 3, -2, 3, 8, 2**63 - 1]
    assert shifted(values, -3).tolist() == [-(2**63), -8, -3, 2, 2**63 - 4]
    assert shifted(values, 2**63 - 1)[1:].tolist() == [2**63 - 6] + [2**63 - 1] * 3


@pytest.mark.parametrize("by", [2**63, 2**63 + 7, 2**64, -(2**63) - 1, -(2**64) - 3])
def test_shifted_further_than_int64_tells(by: int) -> None:
    values = [-(2**63), -5, 0, 5, 2**63 - 1]
    expected = [min(max(value + by, -(2**63)), 2**63 - 1) for value in values]
    assert shifted(np.array(values), by).tolist() == expected
