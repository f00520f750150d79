"""Clock errors: made ones are found, what has nothing in common is not, and the reference agrees."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.clocks import (
    SECOND,
    UNRELATED,
    Case,
    Truth,
    grid,
    heartbeats,
    made,
    shared_bursts,
    unrelated,
)
from bench.hunt.questions import clock_errors
from coincide import clock_error_tables
from coincide.model.clocks.errors import ClockEstimate, Limits
from coincide.model.clocks.events import ClockEvents
from coincide.model.clocks.pieces import straight_pieces
from cpu_fallback.clocks import clock_error
from cpu_fallback.reference.clocks import best_line

LIMITS = Limits(60 * SECOND, 2.2e-4, 1e-3)


def found_of(case: Case, limits: Limits = LIMITS) -> ClockEstimate:
    return clock_error(ClockEvents.of(case.left, case.right), limits)


def errors_of(case: Case, found: ClockEstimate) -> list[float]:
    """How far segments are off in their middle, seconds."""
    middles = [(s.start + s.end) / 2 for s in found.segments]
    return [
        abs(s.line.at(t) / SECOND - float(case.truth.at(np.array([t / SECOND]))[0]))
        for s, t in zip(found.segments, middles, strict=True)
    ]


def test_a_made_grid_is_found_and_never_wrong() -> None:
    clear, answered, wrong = 0, 0, []
    for case in grid(5, sizes=(30, 100)):
        found = found_of(case)
        if any(error > max(5 * case.truth.noise, 2e-6) for error in errors_of(case, found)):
            wrong.append(case.truth)
        if case.pairs >= 10 and case.clearness >= 8:
            clear += 1
            answered += found.status == "found"
    assert wrong == []
    assert clear >= 20
    assert answered >= 0.95 * clear


@pytest.mark.parametrize("kind", UNRELATED)
def test_what_has_nothing_in_common_is_not_found(kind: str) -> None:
    statuses = [
        clock_error(ClockEvents.of(*pair), replace(LIMITS, max_offset=20 * SECOND)).status
        for pair in unrelated(3, kind, 3)
    ]
    assert "found" not in statuses


BURSTS = int(os.environ.get("COINCIDE_CASES", "16"))


def test_bursts_that_are_shared_are_no_common_events() -> None:
    rng = np.random.default_rng(21)
    statuses = [found_of(shared_bursts(rng)).status for _ in range(BURSTS)]
    assert statuses.count("found") <= BURSTS // 16


def test_common_events_of_shared_bursts_are_found() -> None:
    rng = np.random.default_rng(22)
    cases = [shared_bursts(rng, 0.2) for _ in range(BURSTS)]
    found = [(case, found_of(case)) for case in cases]
    right = [each.status == "found" and max(errors_of(case, each)) < 0.05 for case, each in found]
    assert sum(right) >= 0.9 * BURSTS


def test_short_bursts_hide_no_common_events() -> None:
    """Their peak is too wide for a line; narrower bins show the line of common events."""
    rng = np.random.default_rng(23)
    strangers = [found_of(shared_bursts(rng, length=5.0)) for _ in range(BURSTS)]
    cases = [shared_bursts(rng, 0.3, length=5.0) for _ in range(BURSTS)]
    assert [found.status for found in strangers].count("found") <= BURSTS // 16
    found = [(case, found_of(case)) for case in cases]
    right = [each.status == "found" and max(errors_of(case, each)) < 0.05 for case, each in found]
    assert sum(right) >= 0.9 * BURSTS


def test_a_spread_is_not_cut_off() -> None:
    """A fit begins with the bins of a peak, which may be narrower than the noise."""
    rng = np.random.default_rng(5)
    cases = [made(rng, 180, 300, 300, Truth(12.0, 5e-5, 1.0, 80_000.0)) for _ in range(8)]
    spreads = [s.spread / SECOND for case in cases for s in found_of(case).segments]
    assert len(spreads) >= 6
    assert np.median(spreads) == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("kind", clock_errors.KINDS)
def test_drawn_errors_are_right_or_not_found(kind: str) -> None:
    wrong = [
        clock_errors.wrong(np.random.default_rng([3, seed]), kind=kind)
        for seed in range(2 if kind == "both ends" else 8)
    ]
    assert wrong == [None] * len(wrong)


def test_a_wrong_error_is_told() -> None:
    """The test above can fail: what is off by more than the stated error does not pass."""

    def off(*given: pa.Table, **asked: Any) -> pa.Table:
        found = clock_error_tables(*given, **asked)
        by = pa.scalar(20, found["offset_error"].type)
        moved = pc.add(found["offset"], pc.multiply(found["offset_error"], by))
        return found.set_column(found.column_names.index("offset"), "offset", moved)

    told = clock_errors.wrong(np.random.default_rng(1), off, kind="clear")
    assert told is not None
    assert told.startswith("wrong")


def test_stretches_are_moved_as_a_whole() -> None:
    """By whole steps, no further than allowed; few bursts are torn, and no event changes its code."""
    rng = np.random.default_rng(3)
    bursts = [at + np.arange(9) * 5 for at in range(0, 1_000_000, 20_000)]
    right = np.concatenate(bursts)
    codes = rng.integers(0, 3, right.size)
    coded = ClockEvents.of(right, right, codes, codes)
    moved = coded.shuffled(10_000, 2000, 7).streams
    assert (moved.ends == coded.streams.ends).all()
    for begin, end in pairwise(moved.ends):
        assert (np.diff(moved.right[begin:end]) >= 0).all()
        assert np.abs(moved.right[begin:end] - coded.streams.right[begin:end]).max() <= 2000
    plain = ClockEvents.of(right, right)
    by = (plain.shuffled(10_000, 2000, 7).streams.right - plain.streams.right).reshape(-1, 9)
    assert (by % 5 == 0).all()
    assert (by == by[:, :1]).all(axis=1).mean() > 0.9
    assert np.unique(by[:, 0]).size > 20


def test_a_dense_background_biases_nothing() -> None:
    cases = [
        made(np.random.default_rng(seed), 300, 3000, 3000, Truth(5.0, 5e-5, 0.1, 10_000.0))
        for seed in range(6)
    ]
    found = [found_of(case).segments for case in cases]
    assert [len(segments) for segments in found] == [1] * len(cases)
    lines = [segments[0] for segments in found]
    assert np.mean([s.spread for s in lines]) == pytest.approx(0.1 * SECOND, rel=0.08)
    assert np.mean([s.pairs for s in lines]) == pytest.approx(300, rel=0.08)
    errors = [s.line.offset - float(c.truth.at(np.array([s.start / SECOND]))[0]) * SECOND
              for s, c in zip(lines, cases, strict=True)]  # fmt: skip
    sizes = [abs(e) / s.offset_error for e, s in zip(errors, lines, strict=True)]
    assert max(sizes) < 4
    assert np.median(sizes) < 1.5


def test_jumps_end_segments() -> None:
    rng = np.random.default_rng(8)
    truth = Truth(12.0, 40e-6, 0.002, 40_000.0, ((10_000.0, 3.0), (25_000.0, -7.5)))
    case = made(rng, 2000, 4000, 4000, truth)
    found = found_of(case)
    assert found.status == "found"
    assert len(found.segments) == 3
    assert max(errors_of(case, found)) < 0.001
    covered = sum(s.end - s.start for s in found.segments)
    assert covered > 0.9 * truth.span * SECOND
    for s, (low, high) in zip(found.segments, ((0, 1e4), (1e4, 2.5e4), (2.5e4, 4e4)), strict=True):
        assert low - 1 <= s.start / SECOND < s.end / SECOND <= high + 60


def test_without_jumps_a_key_has_one_line() -> None:
    rng = np.random.default_rng(9)
    case = made(rng, 800, 1000, 1000, Truth(-3.0, -90e-6, 0.01, 20_000.0))
    found = found_of(case, replace(LIMITS, jumps=False))
    assert [s.pairs for s in found.segments] == pytest.approx([800], rel=0.05)


def test_heartbeats_of_two_recorders() -> None:
    rng = np.random.default_rng(4)
    limits = Limits(30 * SECOND, 8e-4, 1e-3)
    cases = [heartbeats(rng, drift) for drift in (181e-6, -420e-6, 676e-6)]
    for case in cases:
        found = found_of(case, limits)
        assert found.status == "found"
        assert max(errors_of(case, found)) < 0.02


def test_a_comb_is_ambiguous() -> None:
    rng = np.random.default_rng(2)
    times = np.arange(4000) * 0.5
    own, others = (times[rng.uniform(0, 1, 4000) < 0.8] for _ in range(2))
    noisy = others + 1.0 + rng.normal(0, 0.002, others.size)
    own, noisy = (np.sort(np.rint(t * SECOND).astype(np.int64)) for t in (own, noisy))
    found = clock_error(ClockEvents.of(own, noisy), replace(LIMITS, max_offset=5 * SECOND))
    assert found.status == "ambiguous"
    assert found.segments == []
    assert abs(found.rival - found.best.offset) > 0.4 * SECOND


def small_cases() -> Iterable[Case]:
    rng = np.random.default_rng(11)
    for k in range(6):
        truth = Truth(rng.uniform(-20, 20), rng.uniform(-2e-4, 2e-4), 0.05, 800.0)
        yield made(rng, 15 + k, 25, 25, truth)


@pytest.mark.parametrize("case", [*small_cases()])
def test_small_streams_have_the_line_of_the_reference(case: Case) -> None:
    ticks = 1000  # a second: the reference multiplies differences of times
    left, right = (np.rint(t / (SECOND // ticks)).astype(np.int64) for t in (case.left, case.right))
    limits = Limits(60 * ticks, 2.2e-4, 1e-3)
    found = clock_error(ClockEvents.of(left, right), limits)
    assert found.status == "found"
    (segment,) = found.segments
    reach = round(3 * segment.spread)
    line = best_line(left.tolist(), right.tolist(), 60 * ticks, Fraction(22, 100_000), reach)
    assert line is not None
    middle = (segment.start + segment.end) // 2
    assert abs(float(line.at(middle)) - segment.line.at(middle)) <= reach
    differences = right[None, :] - left[:, None]
    own = np.abs(differences - segment.line.at(left)[:, None]) <= reach
    assert line.pairs - 2 <= own.sum() <= line.pairs


def base_case() -> Case:
    return made(np.random.default_rng(1), 150, 300, 300, Truth(7.5, 60e-6, 0.01, 8000.0))


def test_swapped_sides_turn_the_sign() -> None:
    case = base_case()
    (one,) = found_of(case).segments
    (other,) = clock_error(ClockEvents.of(case.right, case.left), LIMITS).segments
    middle = (one.start + one.end) / 2
    near = 4 * one.spread / np.sqrt(one.pairs)
    assert one.line.at(middle) == pytest.approx(-other.line.at(middle + 7.5 * SECOND), abs=near)
    assert one.line.drift == pytest.approx(-other.line.drift, abs=4 * one.drift_error)


def test_shifted_times_and_the_order_of_rows_change_nothing() -> None:
    case = base_case()
    rng = np.random.default_rng(0)
    by = 1_700_000_000 * SECOND
    plain = found_of(case)
    moved = ClockEvents.of(rng.permutation(case.left) + by, rng.permutation(case.right) + by)
    (one,), (other,) = plain.segments, clock_error(moved, LIMITS).segments
    assert (other.start, other.end) == (one.start + by, one.end + by)
    assert (other.line.offset, other.line.drift) == (one.line.offset, one.line.drift)
    assert replace(other, start=0, end=0, line=one.line) == replace(one, start=0, end=0)


def test_threads_change_nothing() -> None:
    case = made(np.random.default_rng(3), 900, 3000, 3000, Truth(-7.0, 1e-5, 0.001, 30_000.0))
    events = ClockEvents.of(case.left, case.right)
    assert clock_error(events, LIMITS, 1) == clock_error(events, LIMITS, 3)


def test_codes_make_chance_pairs_fewer() -> None:
    rng = np.random.default_rng(6)
    case = made(rng, 40, 1000, 1000, Truth(5.0, 0.0, 0.05, 4000.0))
    assert found_of(case).status != "found"
    # Common causes have the same one of 40 codes; of the others they are drawn by chance.
    order = np.sort(rng.uniform(0, 4000, 40))
    codes = rng.integers(0, 40, 40)
    own = np.concatenate([order, rng.uniform(0, 4000, 960)])
    others = np.concatenate([order + 5 + rng.normal(0, 0.05, 40), rng.uniform(5, 4005, 960)])
    own_codes = np.concatenate([codes, rng.integers(0, 40, 960)])
    other_codes = np.concatenate([codes, rng.integers(0, 40, 960)])
    ticks = [np.rint(t * SECOND).astype(np.int64) for t in (own, others)]
    found = clock_error(ClockEvents.of(*ticks, own_codes, other_codes), LIMITS)
    assert found.status == "found"
    assert found.segments[0].line.at(2000 * SECOND) == pytest.approx(5 * SECOND, abs=0.05 * SECOND)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([], [1, 2, 3]),
        ([5], [5]),
        ([0] * 50, [0] * 50),
        (range(0, 1000, 250), range(3, 1003, 250)),
    ],
)
def test_too_little_is_said(left: Iterable[int], right: Iterable[int]) -> None:
    events = ClockEvents.of(np.array([*left], np.int64), np.array([*right], np.int64))
    assert clock_error(events, replace(LIMITS, max_offset=100)).status == "too few"


def test_a_stream_is_not_off_from_itself() -> None:
    times = np.sort(np.random.default_rng(7).integers(0, 10**10, 500))
    found = clock_error(ClockEvents.of(times, times), LIMITS)
    (segment,) = found.segments
    assert abs(segment.line.offset) < 1
    assert segment.pairs == pytest.approx(500, abs=2)


def test_time_that_is_too_short_is_said() -> None:
    case = base_case()
    found = found_of(case, replace(LIMITS, max_offset=1100 * SECOND))
    assert (found.status, found.is_short) == ("too few", True)


def test_straight_pieces() -> None:
    times = np.arange(12.0)
    values = np.where(times < 5, 2 * times, 100 - times)
    assert straight_pieces(times, values, np.full(12, 0.01), 25.0) == [(0, 5), (5, 12)]
    assert straight_pieces(times, 3 * times + 1, np.full(12, 0.01), 25.0) == [(0, 12)]
    assert straight_pieces(times[:1], values[:1], np.ones(1), 25.0) == [(0, 1)]
