"""Streams of template histograms and of intervals: the pairs of exact arithmetic."""

from __future__ import annotations

import pickle
from unittest import mock

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS, stream_correlator
from bench.papers.streams import correlator as deferred
from coincide import Window
from coincide.model.templates.template import Template, TemplateTable, template_table
from tests.helpers.histogram_streams import (
    SIDES,
    ShapedCase,
    ShapedStream,
    drawn_case,
    drawn_stream,
    drawn_table,
    feed,
)
from tests.helpers.stream_cases import random_options, sorted_pairs

ANY = tuple(name for name in ALGORITHMS if name != "lookup")


@pytest.mark.parametrize("kinds", ["tt", "ti", "it"])
@pytest.mark.parametrize("block", range(2))
def test_pairs_are_those_of_exact_arithmetic(kinds: str, block: int) -> None:
    """In any batching, arrivals at the largest delay among them."""
    found = 0
    for seed in range(12 * block, 12 * block + 12):
        case = drawn_case(seed, kinds)
        expected = case.pairs()
        found += len(expected)
        for algorithm in ANY:
            rng = np.random.default_rng([seed, 3])
            with mock.patch.object(deferred, "ENOUGH", 12):
                correlator = case.correlator(
                    algorithm, stream_correlator, **random_options(rng, len(case.left))
                )
                np.testing.assert_array_equal(feed(correlator, case, rng), expected, f"{seed}")
            assert correlator.stats.late == (0, 0)
            assert correlator.stats.pairs == len(expected)
    assert found > 500


@pytest.mark.parametrize("algorithm", ANY)
@pytest.mark.parametrize("kinds", ["ti", "it"])
def test_one_bucket_is_an_interval(algorithm: str, kinds: str) -> None:
    """A mixed pair whose templates are intervals too: the answer of intervals alone."""
    for seed in range(6):
        case = drawn_case(seed, kinds, size=80)
        plain, mixed = [], []
        for side, kind in zip(case.sides, kinds, strict=True):
            lengths = np.arange(0, 91, 9)
            number = side.shape % lengths.size
            given = side.max_time, side.arrival, side.delay
            plain.append(ShapedStream(given[0], lengths[number], *given[1:], None))
            table = TemplateTable.of_lengths(lengths)
            one = (
                (number, *given[1:], table) if kind == "t" else (lengths[number], *given[1:], None)
            )
            mixed.append(ShapedStream(given[0], *one))
        found = [
            feed(
                (made := ShapedCase(*sides, case.window)).correlator(
                    algorithm, stream_correlator, block=9
                ),
                made,
                np.random.default_rng(seed),
            )
            for sides in (plain, mixed)
        ]
        np.testing.assert_array_equal(*found)


def stream_of(times: list[int], table: TemplateTable, arrival: list[int]) -> ShapedStream:
    number = np.zeros(len(times), np.int64)
    return ShapedStream(np.array(times), number, np.array(arrival), 0, table)


ONE = template_table({"a": Template([-40, -20, -10, 0], [0.1, 0.3, 0.6])})
OTHER = template_table({"b": Template([-40, -30, -20, -10, 0], [0.15, 0.4, 0.3, 0.15])})


@pytest.mark.parametrize("algorithm", ["simple-sort", "eager", "lazy", "classes"])
@pytest.mark.parametrize(
    "window", [Window(-100, 100, 0.8), Window(-3, 30, 0.4), Window(-12, 2, 0.2)]
)
@pytest.mark.parametrize("base", ["left", "right"])
def test_an_event_as_late_as_may_be_meets_all_its_matches(
    algorithm: str, window: Window, base: str
) -> None:
    """Theorem 4 at its edge: what the latest event can still meet is there, and nothing else."""
    delay, now, name = 50, 10_000, {"left": "right", "right": "left"}[base]
    reached = [
        s for s in range(-300, 300)
        if len(ShapedCase(stream_of([0], ONE, [0]), stream_of([s], OTHER, [s]), window).pairs())
    ]  # fmt: skip
    # max_times of targets from which an event of `base` at now - delay can be reached.
    least = (now - delay) + (reached[0] if base == "left" else -reached[-1])
    made = stream_correlator(
        algorithm, window, **{f"{base}_delay": delay, f"{name}_delay": 0},
        left_templates=ONE, right_templates=OTHER, block=1,
    )  # fmt: skip
    targets = np.array([least - 2, least - 1, least, least + 1])
    made.push(name, (targets, np.zeros(4, int)))
    made.push(base, ([now], [0]))
    made.advance(now)
    gone = made.stats.invalidated[SIDES.index(name)]
    # No match of what can come is let go; on the axis of max_times all else is.
    assert gone == 2 if algorithm in ("eager", "lazy", "classes") else gone <= 2
    found = made.push(base, ([now - delay, now - delay - 1], [0, 0]), arrival=[now, now])
    pairs = sorted_pairs([found, made.flush()])
    assert [2 in pairs[:, side] for side in (SIDES.index(name),)] == [True]
    assert made.take_late(base).max_time.tolist() == [now - delay - 1]


def test_theorem_3_bounds_are_of_the_template() -> None:
    """With one template a side nothing is probed but by the simple algorithms."""
    rng = np.random.default_rng(2)
    sides = []
    for table in (ONE, OTHER):
        times = np.sort(rng.integers(0, 20_000, 500))
        sides.append(ShapedStream(times, np.zeros(500, np.int64), times, 0, table))
    case = ShapedCase(*sides, Window(-100, 100, 0.8))
    for algorithm in ("eager", "lazy", "classes"):
        made = case.correlator(algorithm, stream_correlator)
        assert len(feed(made, case, rng)) == made.stats.sure > 1000
        assert made.stats.evaluations == 0


@pytest.mark.parametrize("kinds", ["tt", "ti", "it"])
@pytest.mark.parametrize("algorithm", ANY)
def test_obsolete_events_go(algorithm: str, kinds: str) -> None:
    rng = np.random.default_rng(4)
    sides = [drawn_stream(rng, 3000, 200_000, 90, kind == "t", 300) for kind in kinds]
    case = ShapedCase(*sides, Window(-200, 200, 0.5))
    made = case.correlator(algorithm, stream_correlator, emit="counts", block=50)
    for start in range(0, 3000, 100):
        rows = slice(start, start + 100)
        for name, side in zip(("left", "right"), sides, strict=True):
            made.push(name, side.pushed(rows), arrival=side.arrival[rows])
    # 15 events in 1,000 ticks: those of the window, the supports and the delay, and a block or a push.
    assert max(made.stats.buffer_max) < 3 * 15 + 200
    assert made.advance(10**6).count + made.flush().count >= 0
    assert made.stats.invalidated == made.stats.arrived == (3000, 3000)


@pytest.mark.parametrize("kinds", ["tt", "ti", "it"])
@pytest.mark.parametrize("algorithm", ANY)
def test_a_pickle_goes_on(algorithm: str, kinds: str) -> None:
    case = drawn_case(7, kinds, size=60)
    made = case.correlator(algorithm, stream_correlator, block=9)
    results = []
    for start in range(0, 60, 20):
        rows = slice(start, start + 20)
        for name, side in zip(("left", "right"), case.sides, strict=True):
            made = pickle.loads(pickle.dumps(made))
            results.append(made.push(name, side.pushed(rows), arrival=side.arrival[rows]))
    results.append(made.flush())
    expected = case.pairs()
    assert len(expected) > 20
    np.testing.assert_array_equal(sorted_pairs(results), expected)


def test_another_order_of_lengths_gives_the_same_rule() -> None:
    """New lengths are put next to the old ones: gaps of narrow windows keep to their pairs."""
    table = template_table({"far": Template([-90, -89, -2, 0], [0.5, 0.0, 0.5])})
    case_window = Window(-3, 3, 0.2)
    for side in ("left", "right"):
        other = {"left": "right", "right": "left"}[side]
        given = {f"{side}_longest": 9, f"{other}_templates": table}
        lengths, times = np.array([9, 2, 5, 0, 7]), np.array([0, 40, 300, 340, 400])
        made = stream_correlator("eager", case_window, left_delay=900, right_delay=900, **given)
        made.push(other, (np.arange(-100, 500), np.zeros(600, int)))
        found = [
            made.push(side, ([time - length], [time]))
            for time, length in zip(times.tolist(), lengths.tolist(), strict=True)
        ]
        streams = {
            side: ShapedStream(times, lengths, times, 900, None),
            other: ShapedStream(np.arange(-100, 500), np.zeros(600, np.int64), times, 900, table),
        }
        expected = ShapedCase(streams["left"], streams["right"], case_window).pairs()
        np.testing.assert_array_equal(sorted_pairs(found), expected)


def test_drawn_templates_have_all_kinds_of_buckets() -> None:
    rng = np.random.default_rng(0)
    tables = [drawn_table(rng, 8, 40) for _ in range(20)]
    empty = [(table.given == 0).sum() > len(table) for table in tables]
    instants = [(np.diff(table.edges) == 0).any() for table in tables]
    assert sum(empty) > 5
    assert sum(instants) > 5


@pytest.mark.parametrize("algorithm", ["eager", "lazy", "classes"])
def test_where_no_pair_can_qualify_nothing_is_kept(algorithm: str) -> None:
    """A window narrower than the timestamps, and certainty asked for."""
    rng = np.random.default_rng(3)
    sides = [stream_of(np.sort(rng.integers(0, 500, 200)).tolist(), ONE, []) for _ in range(2)]
    case = ShapedCase(*sides, Window(-3, 3, 0.9))
    made = case.correlator(algorithm, stream_correlator, block=10)
    for start in range(0, 200, 20):
        for name, side in zip(SIDES, sides, strict=True):
            assert made.push(name, side.pushed(slice(start, start + 20))).count == 0
    assert made.flush().count == 0
    assert max(made.stats.buffer_max) <= 20
    assert made.stats.evaluations == 0
