"""Which rules apply to which sides, in which order: no Spark, no rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coincide import CorrelateOptions, TimingCondition, around, histograms, within
from coincide.model.options import MOST_SLICES
from spark_plugin.frames.estimates import Estimate
from spark_plugin.ways.choosing import RULES, slices_of
from spark_plugin.ways.limits import PlannerLimits
from tests.helpers.histogram_tables import one_bucket
from tests.helpers.planning import MIB, Known, Session, known, names_of_rules, question

JOB, BOTH = "a planning job", "two small sides"
SMALL, LARGE = "a small side", "two large sides"
WRONG = "not as small as estimated"
BYTE = 1 / MIB


def first(*sides: Known, **words: Any) -> str:
    return names_of_rules(*sides, **words)[0]


def test_rules_have_names_of_their_own_and_the_last_one_always_applies() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.reason for rule in RULES)
    assert names_of_rules(known(1), known(1), options=CorrelateOptions(slices=3)) == [JOB]


@pytest.mark.parametrize(("of_left", "expected"), [(14, BOTH), (14 + BYTE, JOB)])
def test_both_sides_of_28_mib_together_are_collected(of_left: float, expected: str) -> None:
    """As docs/planning.md says; their needed columns may be large, as nothing says that they are not."""
    assert first(replace(known(of_left), needed=None), known(14)) == expected


@pytest.mark.parametrize(("of_left", "expected"), [(6 - BYTE, BOTH), (6, LARGE)])
def test_sides_of_6_mib_each_are_exchanged(of_left: float, expected: str) -> None:
    left = replace(known(6), needed=Estimate(int(of_left * MIB), 700))
    assert first(left, known(6)) == expected
    asked = CorrelateOptions(way="broadcast-both")
    assert first(left, known(6), options=asked) == "both sides are broadcast as asked"


@pytest.mark.parametrize(("of_left", "expected"), [(2 - BYTE, BOTH), (2, SMALL)])
def test_a_side_far_larger_than_the_other_stays_where_it_is(of_left: float, expected: str) -> None:
    """2 MiB and more, though both could be collected."""
    assert first(known(of_left), known(0.5)) == expected
    assert first(known(0.5), known(of_left)) == expected


@pytest.mark.parametrize(("of_left", "expected"), [(4, SMALL), (4 - BYTE, BOTH)])
def test_far_larger_is_four_times_as_large(of_left: float, expected: str) -> None:
    assert first(known(of_left), known(1)) == expected


@pytest.mark.parametrize(("size", "expected"), [(12, SMALL), (12 + BYTE, JOB)])
def test_a_small_side_has_12_mib(size: float, expected: str) -> None:
    large = replace(known(100), needed=None)
    assert first(large, known(size)) == expected


def test_what_may_be_a_product_is_no_large_side() -> None:
    """Spark takes a join for the product of what it reads."""
    product = replace(known(100), needed=None, surely=5 * MIB)
    assert first(product, known(1)) == SMALL
    assert first(replace(product, surely=4 * MIB - 1), known(1)) == JOB


def test_a_side_that_was_not_as_small_is_counted() -> None:
    names = names_of_rules(known(100), known(1))
    assert names[:2] == [SMALL, WRONG]
    computed = names_of_rules(known(100), known(1, is_computed=True))
    assert computed[:2] == [SMALL, f"{WRONG}, computed"]


@pytest.mark.parametrize(
    ("size", "slices", "is_filtered", "is_cells"),
    [(14, 64, True, True), (14 - BYTE, 64, True, False), (14, 68, True, False),
     (14 - BYTE, 68, False, True), (14, 16_384, False, True), (14, 16_388, False, False)],
)  # fmt: skip
def test_filters_may_leave_little_of_much(
    size: float, slices: int, is_filtered: bool, is_cells: bool
) -> None:
    """14 MiB of each at least and 16 slices a core at most; of others 16,384 slices."""
    sides = [
        replace(known(20), needed=Estimate(int(size * MIB), slices // 4, is_filtered))
        for _ in range(2)
    ]
    options = CorrelateOptions(slice_rows=1)
    asked = question(*sides, options=options)
    assert asked.large_slices == (slices if is_cells else None)
    assert (first(*sides, options=options) == LARGE) == is_cells


def test_a_filter_of_one_side_is_no_large_side() -> None:
    assert first(known(20), known(20)) == LARGE
    assert first(known(20, is_filtered=True), known(20)) == JOB
    assert first(known(20, is_filtered=True), known(20, is_filtered=True)) == LARGE


WORDS: dict[str, tuple[dict[str, Any], str]] = {
    "counts": ({"emit": "counts"}, LARGE),
    "mutual": ({"matching": "mutual"}, LARGE),
    "optimal": ({"matching": "optimal"}, "connected groups"),
    "dropped": ({"options": CorrelateOptions(invalid="drop")}, JOB),
    "slices": ({"options": CorrelateOptions(slices=3)}, JOB),
    "exchange": ({"options": CorrelateOptions(way="exchange")}, JOB),
    "broadcast": ({"options": CorrelateOptions(way="broadcast")}, JOB),
    "one length": ({"options": CorrelateOptions(left_longest=5)}, LARGE),
    "RAPIDS": ({"session": Session(is_accelerated=True)}, JOB),
}


@pytest.mark.parametrize("asked", WORDS)
def test_what_is_asked_for(asked: str) -> None:
    words, expected = WORDS[asked]
    assert first(known(40), known(40), **words) == expected


REACHES: dict[str, tuple[float, dict[str, Any], str]] = {
    "as likely as not": (0.5, {}, LARGE),
    "less likely": (0.499, {}, JOB),
    "less likely, one length known": (0.2, {"right_time": "min_time"}, JOB),
    "less likely, both known": (0.2, {"left_time": "max_time", "right_time": "min_time"}, LARGE),
    "less likely, around": (
        0.2, {"left_time": around("min_time", 3), "right_time": around("max_time", 4)}, LARGE
    ),
    "less likely, declared": (
        0.2, {"options": CorrelateOptions(left_longest=9, right_longest=7)}, LARGE
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REACHES)
def test_reach_must_be_known(case: str) -> None:
    confidence, words, expected = REACHES[case]
    condition = TimingCondition(within(-40, 60), confidence)
    assert first(known(40), known(40), condition=condition, **words) == expected
    computed = names_of_rules(known(40, is_computed=True), known(40), condition=condition, **words)
    assert ("computed sides" in computed) == (expected == LARGE)


@pytest.mark.parametrize("of_both", [False, True])
def test_histograms_next_to_intervals_of_any_length_are_counted(of_both: bool) -> None:
    times = histograms("max_time", template="word", templates=one_bucket())
    right = times if of_both else ("min_time", "max_time")
    words: dict[str, Any] = {"left_time": times, "right_time": right}
    assert (first(known(40), known(40), **words) == LARGE) == of_both


SHUFFLED = [("left", "pairs"), ("inner", "lists"), ("left", "lists")]


@pytest.mark.parametrize(
    ("how", "emit", "expected"),
    [*((*shape, JOB) for shape in SHUFFLED),
     *((*shape, SMALL) for shape in (("inner", "pairs"), ("left", "counts"), ("semi", "pairs")))],
)  # fmt: skip
def test_pairs_that_are_shuffled(how: str, emit: str, expected: str) -> None:
    large = replace(known(100), needed=None)
    assert first(known(1), large, how=how, emit=emit) == expected
    assert first(large, known(1), how=how, emit=emit) == SMALL
    computed = known(1, is_computed=True), replace(known(1), bytes=None)
    assert ("a computed side" in names_of_rules(*computed, how=how, emit=emit)) == (
        expected == SMALL
    )


def test_sides_that_are_slow_to_compute() -> None:
    """Small ones are collected once, one next to a large one too; of two large ones cells are cut."""
    slow = known(1, is_computed=True)
    unknown = replace(slow, bytes=None, needed=None)
    expected = ["small sides, of which one is computed", "computed sides"]
    assert names_of_rules(slow, unknown)[:2] == expected
    alone = ["a computed side", "computed sides"]
    assert names_of_rules(unknown, replace(known(40), needed=None))[:2] == alone
    most = CorrelateOptions(broadcast_bytes=MIB - 1)
    assert names_of_rules(unknown, replace(known(1), needed=None), options=most)[:2] == alone
    dropped = CorrelateOptions(invalid="drop")
    assert names_of_rules(unknown, unknown, options=dropped) == [JOB]


@pytest.mark.parametrize("setting", ["broadcast_bytes", "slice_bytes"])
def test_options_bound_what_is_collected(setting: str) -> None:
    for most, expected in ((3 * MIB, BOTH), (3 * MIB - 1, JOB)):
        options = CorrelateOptions(**{setting: most})
        assert first(known(1.5), known(1.5), options=options) == expected
    options = CorrelateOptions(broadcast_bytes=MIB - 1)
    assert first(replace(known(40), needed=None), known(1), options=options) == JOB


@pytest.mark.parametrize(
    ("rows", "size", "tasks", "expected"),
    [(9, 100, 4, 1), (100, 3200, 4, 4), (2_000_000, 64_000_000, 4, 4), (2_100_000, 67_200_000, 4, 8),
     (10**6, 600_000_000, 4, 8), (35, 1000, 8, 7), (10**8, 10**9, 2, 200)],
)  # fmt: skip
def test_slices_follow_from_rows_and_bytes(rows: int, size: int, tasks: int, expected: int) -> None:
    """Which are taken for twice as many as Spark takes files for: these are packed."""
    few = replace(PlannerLimits(), smallest_slice_rows=10)
    assert slices_of(Estimate(size, rows), CorrelateOptions(), few, tasks) == expected
    assert PlannerLimits().most_slices < MOST_SLICES


def test_limits_can_be_others() -> None:
    sides = known(30), known(30)
    assert first(*sides, limits=PlannerLimits(both_bytes=60 * MIB, large_bytes=41 * MIB)) == BOTH
    few = PlannerLimits(small_bytes=40 * MIB, far_larger=1, least_large=0)
    assert first(*sides, limits=few) == SMALL
