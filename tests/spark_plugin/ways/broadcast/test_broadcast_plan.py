"""Which side goes to every worker, if any. No Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coincide import CorrelateOptions
from coincide.engine.join.timing import JoinSpec
from coincide.model.condition import Window
from spark_plugin.tasks.broadcast import is_two_step
from spark_plugin.tasks.samples import Reach, Sample, expected_matches
from spark_plugin.ways.broadcast.join import BroadcastPlan
from spark_plugin.ways.limits import PlannerLimits
from spark_plugin.ways.planning_job import Candidate, choose_small_side

SPEC = JoinSpec(Window(-10, 10, 0.5))
REACH = Reach(-20, 20)
MB = 1_000_000


def side(name: str, rows: int, size: int | None, *, partitions: int = 8, apart: int = 100):
    """A side with this number of rows and bytes, its events evenly apart and over its
    partitions."""
    n = min(rows, 1000)
    midpoints = np.arange(n) * apart
    sample = Sample(midpoints, np.full(n, rows / max(n, 1)), np.zeros(n, np.int64), rows)
    return Candidate(name, sample, np.arange(n) * partitions // max(n, 1), size)


def chosen(left: Candidate, right: Candidate, spec: JoinSpec = SPEC, **options) -> str | None:
    plan = choose_small_side(
        left, right, REACH, spec, CorrelateOptions(**options), PlannerLimits(), 8
    )
    assert plan is None or isinstance(plan, BroadcastPlan)
    return None if plan is None else plan.small


SMALL, LARGE = (100_000, 3 * MB), (10**8, 3000 * MB)


def test_a_small_side_goes_to_every_worker() -> None:
    assert chosen(side("left", *LARGE), side("right", *SMALL)) == "right"
    assert chosen(side("left", *SMALL), side("right", *LARGE)) == "left"
    assert chosen(side("left", *LARGE), side("right", *LARGE)) is None


@pytest.mark.parametrize(("most", "expected"), [(3 * MB, "right"), (3 * MB - 1, None), (0, None)])
def test_the_threshold_is_in_bytes(most: int, expected: str | None) -> None:
    found = chosen(side("left", *LARGE), side("right", *SMALL), broadcast_bytes=most)
    assert found == expected


def test_a_side_of_unknown_bytes_is_no_small_one() -> None:
    left, right = side("left", *LARGE), side("right", 10, None)
    assert chosen(left, right) is None
    assert chosen(left, right, way="broadcast-right") == "right"
    assert chosen(left, right, way="broadcast") == "right"


@pytest.mark.parametrize("asked", ["left", "right"])
def test_what_is_asked_for_is_done(asked: str) -> None:
    for sides in ((SMALL, LARGE), (LARGE, SMALL)):
        left, right = (side(n, *given) for n, given in zip(("left", "right"), sides, strict=True))
        assert chosen(left, right, way=f"broadcast-{asked}", slices=4, broadcast_bytes=0) == asked
        assert chosen(left, right, way="exchange") is None


def test_who_asks_for_slices_gets_slices() -> None:
    assert chosen(side("left", *LARGE), side("right", *SMALL), slices=4) is None


def test_of_two_small_sides_one_step_comes_first() -> None:
    left, right = side("left", 1000, 24_000), side("right", 2000, 48_000)
    assert chosen(left, right) == "left"
    assert chosen(left, right, replace(SPEC, emit="counts")) == "right"
    assert chosen(left, right, replace(SPEC, how="left")) == "right"
    assert chosen(side("left", 3000, 72_000), right) == "right"


@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best", "aggregates"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_two_steps_move_what_was_found(how: str, emit: str) -> None:
    """Not worth it where there are more pairs than events to shuffle; numbers are always few."""
    spec = replace(SPEC, how=how, emit=emit)
    left, right = side("left", *SMALL), side("right", *LARGE)
    far = replace(left.sample, midpoints=left.sample.midpoints + 10**9)
    assert chosen(replace(left, sample=far), right, spec) == "left"
    moves_pairs = is_two_step("left", spec) and emit in ("pairs", "lists")
    assert chosen(left, right, spec) == (None if moves_pairs else "left")


def test_uneven_partitions_are_shuffled() -> None:
    small = side("right", *SMALL)
    for partitions, expected in ((8, "right"), (5, "right"), (2, None), (1, None)):
        assert chosen(side("left", *LARGE, partitions=partitions), small) == expected
    # Little work is done before an exchange would be.
    spec = replace(SPEC, emit="counts")
    assert chosen(side("left", 10**6, 240 * MB, partitions=1), small, spec) == "right"
    assert chosen(side("left", 10**6, 240 * MB, partitions=1), small) is None


@pytest.mark.parametrize(
    ("large", "small", "expected"),
    [
        (1 << 18, 1 << 18, "right"), ((1 << 18) + 1, (1 << 18) + 1, None),
        (6 * MB - 1, 3 * MB, None), (6 * MB, 3 * MB, "right"),
    ],
)  # fmt: skip
def test_many_rows_are_exchanged_unless_others_are_many_more(
    large: int, small: int, expected: str | None
) -> None:
    sides = side("left", large, 10**9), side("right", small, 48 * MB)
    assert chosen(*sides, replace(SPEC, emit="counts")) == expected


def test_many_partitions_without_order_are_shuffled() -> None:
    """Each would prepare the small side anew; of partitions in order, the few rows that are near."""
    small, large = side("right", 2 * MB, 48 * MB), side("left", *LARGE)
    assert chosen(large, small) == "right"
    for partitions, expected in ((50, "right"), (250, None)):
        many = side("left", *LARGE, partitions=partitions)
        assert chosen(many, small) == "right"
        mixed = np.arange(1000) * 7919 % 1000 * partitions // 1000
        assert chosen(replace(many, partitions=mixed), small) == expected
    # So do many chunks of one partition.
    assert chosen(large, small, slice_rows=1000) is None


def test_matches_of_very_many_keys() -> None:
    """Against a count of all pairs."""
    rng = np.random.default_rng(5)

    def sample(n: int, span: int = 10**6) -> Sample:
        midpoints = np.sort(rng.integers(-span, span, n))
        return Sample(midpoints, rng.random(n), rng.integers(0, 500, n), n)

    reaches = (
        Reach(-200_000, 300_000),
        Reach(5, 5),
        Reach(-3, 7),
        Reach(10, -10),
        Reach(-(2**63) + 1, 2**63 - 1),
    )
    # Crowded times make ends that are met exactly.
    for base, targets in ((sample(300), sample(2000)), (sample(300, 50), sample(2000, 50))):
        for reach in reaches:
            apart = targets.midpoints[None, :] - base.midpoints[:, None]
            near = (apart >= reach.first) & (apart <= reach.last)
            same = targets.hashes[None, :] == base.hashes[:, None]
            exact = (near & same) @ targets.weights
            assert np.allclose(expected_matches(base, targets, reach), exact, atol=1e-9)


@pytest.mark.parametrize(("reach", "expected"), [(Reach(0, 40), None), (Reach(-40, 0), "left")])
def test_matches_lie_on_their_own_side(reach: Reach, expected: str | None) -> None:
    """Right events 30 after the left ones: they are matches, or would be if the sides were swapped."""
    left, right = side("left", *SMALL), side("right", *LARGE)
    later = replace(right.sample, midpoints=right.sample.midpoints + 30)
    spec = replace(SPEC, emit="lists")
    right = replace(right, sample=later)
    plan = choose_small_side(left, right, reach, spec, CorrelateOptions(), PlannerLimits(), 8)
    assert (plan and plan.small) == expected


def test_a_burst_makes_a_partition_heavy() -> None:
    left, right = side("left", *LARGE), side("right", 2 * MB, 48 * MB, apart=1)
    crowded = replace(left.sample, midpoints=np.arange(1000) * 100 + 10**6)
    crowded.midpoints[:100] = np.arange(100)
    assert chosen(replace(left, sample=crowded), right) is None
    assert chosen(replace(left, sample=crowded), right, replace(SPEC, emit="counts")) is None
    quiet = replace(left.sample, midpoints=np.arange(1000) * 100 + 10**6)
    assert chosen(replace(left, sample=quiet), right) == "right"


def test_nothing_to_join() -> None:
    empty, some = side("left", 0, 0), side("right", *SMALL)
    assert chosen(empty, some) == "left"
    assert chosen(empty, side("right", 0, 0)) == "right"
