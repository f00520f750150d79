"""Histogram timestamps in the join, against the sum over all pairs of buckets in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide.model.classes import MOST_CLASSES, ShapeClasses
from coincide.model.condition import Window
from coincide.model.errors import ConditionError
from coincide.model.sides import SIDES
from coincide.model.templates.satisfaction import satisfaction_times
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.timestamps import (
    HistogramEvents,
    HistogramPairs,
    IntervalEvents,
    IntervalPairs,
    pairs_model,
)
from cpu_fallback import EventJoin, event_probabilities
from cpu_fallback.reference.decision import qualifies
from cpu_fallback.reference.join import histogram_pairs, histogram_probability
from tests.helpers.histogram_cases import Case, cases, histograms_of, tables, template_histogram
from tests.helpers.integer_histograms import probability, reaches, whole

SECOND = Template([0, 10, 20, 30, 40], [0.15, 0.3, 0.4, 0.15])
"""Phi of the paper's second sensor; `THIRD` is that of the first: Example 3."""
THIRD = Template([0, 20, 30, 40], [0.1, 0.3, 0.6])


def joined(case: Case, classes: int | None = None) -> EventJoin:
    tables = (getattr(side, "table", None) for side in (case.left, case.right))
    model, left, right = pairs_model(case.window, *tables).for_events(case.left, case.right)
    return EventJoin(left, right, model, classes=classes)


def pairs_of(join: EventJoin) -> list[tuple[int, int]]:
    found = join.pairs(0, join.left_order.size, join.left_order, join.right_order)
    return sorted(zip(*(side.tolist() for side in found), strict=True))


def check(case: Case, classes: int | None) -> None:
    join = joined(case, classes)
    window = case.window
    sides = histograms_of(case.left), histograms_of(case.right)
    expected = histogram_pairs(*sides, window.lo, window.hi, window.confidence)
    assert pairs_of(join) == expected
    assert join.counters.pairs == len(expected) == int(join.counts.sum())


@given(cases(), st.sampled_from([None, 1, 2]))
@settings(max_examples=100, deadline=None)
def test_pairs_are_the_references(case: Case, classes: int | None) -> None:
    check(case, classes)


@pytest.mark.slow
@given(cases(), st.sampled_from([None, 1, 2]))
@settings(max_examples=500, deadline=None)
def test_pairs_are_the_references_at_length(case: Case, classes: int | None) -> None:
    check(case, classes)


@pytest.mark.parametrize("classes", [None, 1, 8])
def test_every_gap_between_ranges_counts(classes: int | None) -> None:
    """Combs of instants in a narrow window, at each s from before the first range to past the last."""
    combs = {
        str(teeth): Template(np.repeat(np.arange(teeth) * 20, 2), ([1.0 / teeth, 0.0] * teeth)[:-1])
        for teeth in (2, 4, 5)
    }
    table = template_table(combs)
    own, apart = np.indices((3, 301)).reshape(2, -1)
    left = HistogramEvents(np.array([0, 0, 0]), np.arange(3), table)
    case = Case(left, HistogramEvents(apart - 150, own, table), Window(-2, 3, 0.1))
    assert HistogramPairs(case.window, table, table).table.gap_first.size > 20
    check(case, classes)


@given(cases())
@settings(max_examples=80, deadline=None)
def test_probabilities_and_best_matches(case: Case) -> None:
    tables = (getattr(side, "table", None) for side in (case.left, case.right))
    model, left, right = pairs_model(case.window, *tables).for_events(case.left, case.right)
    sides = histograms_of(case.left), histograms_of(case.right)
    rows = np.indices((len(left), len(right))).reshape(2, -1)
    found = event_probabilities(left, rows[0], right, rows[1], model)
    for i, j, p in zip(*rows.tolist(), found.tolist(), strict=True):
        exact = histogram_probability(sides[0][i], sides[1][j], case.window.lo, case.window.hi)
        assert abs(p - float(exact)) < 1e-14
    join = EventJoin(left, right, model)
    ranks = np.arange(len(right))[join.right_order]
    best, probabilities, _ = join.best(0, len(left), ranks)
    pairs = pairs_of(join)
    for at, i in enumerate(join.left_order.tolist()):
        rivals = [j for k, j in pairs if k == i]
        assert (best[at] >= 0) == bool(rivals)
        if rivals:
            merits = np.floor(found.reshape(len(left), -1)[i] * 2.0**40 + 0.5) / 2.0**40
            assert probabilities[at] == merits[rivals].max()
            assert merits[join.right_order[best[at]]] == probabilities[at]


def test_equally_probable_matches_are_ranked() -> None:
    """A template and its mirror, as far before an event as after it: P is equal, the sums are not."""
    rng = np.random.default_rng(5)
    own = template_table({"": Template([0, 5, 9, 14], [0.3, 0.4, 0.3])})
    left = HistogramEvents(np.array([7]), np.array([0]), own)
    parted = 0
    for apart in np.repeat(np.arange(2, 30, 3), 12).tolist():
        masses, inner = rng.dirichlet(np.ones(7)), rng.integers(1, 40, 7).cumsum()
        edges, end = np.array([0, *inner]), int(inner[-1])
        mirrored = Template((end - edges)[::-1].tolist(), masses[::-1].tolist())
        table = template_table({"a": Template(edges.tolist(), masses.tolist()), "b": mirrored})
        # Doubled, the middle of the left event's support is 0.
        times = (np.array([-1, 1]) * (2 * apart + end % 2) + end) // 2
        right = HistogramEvents(times, table.numbered(["a", "b"]), table)
        model = HistogramPairs(Window(-40, 40, 0.001), own, table)
        p = event_probabilities(left, np.zeros(2, np.int64), right, np.arange(2), model)
        parted += p[0] != p[1]
        join = EventJoin(left, right, model)
        for ranks in (np.array([0, 1]), np.array([1, 0])):
            best, _, _ = join.best(0, 1, ranks[join.right_order])
            assert ranks[join.right_order[best[0]]] == 0
    assert parted > 10


@given(cases(mixed=False), st.integers(-(2**40), 2**40))
@settings(max_examples=100, deadline=None)
def test_shifting_and_swapping_change_nothing(case: Case, shift: int) -> None:
    moved = [
        HistogramEvents(side.max_time + shift, side.template, side.table)
        for side in (case.left, case.right)
    ]
    pairs = pairs_of(joined(case))
    assert pairs_of(joined(Case(*moved, case.window))) == pairs
    swapped = pairs_of(joined(Case(case.right, case.left, case.window.mirrored())))
    assert sorted((j, i) for i, j in swapped) == pairs


@given(
    st.lists(st.tuples(st.integers(-300, 300), st.sampled_from([0, 0, 3, 40, 41])), max_size=30),
    st.lists(st.tuples(st.integers(-300, 300), st.sampled_from([0, 5, 40, 200])), max_size=30),
    st.integers(-200, 200),
    st.integers(0, 300),
    st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]),
)
@settings(max_examples=100, deadline=None)
def test_templates_of_one_bucket_are_intervals(
    left: list, right: list, lo: int, width: int, confidence: float
) -> None:
    window = Window(lo, lo + width, confidence)
    sides = []
    for rows in (left, right):
        times, lengths = np.array(rows, np.int64).reshape(-1, 2).T.copy()
        sides.append(IntervalEvents(times - lengths, times))
    intervals = EventJoin(*sides, IntervalPairs(window))
    histograms = [
        HistogramEvents(
            side.max_time,
            np.unique(side.lengths, return_inverse=True)[1].astype(np.int64),
            TemplateTable.of_lengths(
                np.unique(side.lengths) if len(side) else np.zeros(1, np.int64)
            ),
        )
        for side in sides
    ]
    assert pairs_of(joined(Case(*histograms, window))) == pairs_of(intervals)
    assert pairs_of(joined(Case(histograms[0], sides[1], window))) == pairs_of(intervals)


def test_example_4_of_the_paper() -> None:
    left, right = (template_table({"": template}) for template in (SECOND, THIRD))
    # H2 was seen at 110 and H3 at 210: of Y - X, relative to their max, 100 is known.
    buckets = [template_histogram(table, 0) for table in (left, right)]
    ahead = [histogram_probability(*buckets, lag - 100, 10**6) for lag in (90, 100)]
    assert [float(p) for p in ahead] == [0.925, 0.76875]
    table = satisfaction_times(left, right, Window(0, 10**6, 0.8))
    # stime(H3, H2, 0.8) = 208.5908: H2's max may lie up to there, 1.4092 ticks below that of H3.
    assert table.first.tolist() == [[2]]
    fine = Template([10_000 * e for e in SECOND.edges], SECOND.masses)
    fine3 = Template([10_000 * e for e in THIRD.edges], THIRD.masses)
    table = satisfaction_times(
        template_table({"": fine}), template_table({"": fine3}), Window(0, 10**9, 0.8)
    )
    assert 210 * 10_000 - table.first.item() == 2_085_907  # 208.5908 rounded down


@pytest.mark.parametrize("width", [0, 1, 15, 60, 200])
@given(tables(span=60), tables(span=60), st.data())
@settings(max_examples=20, deadline=None)
def test_the_table_is_the_decision(
    width: int, left: TemplateTable, right: TemplateTable, data: st.DataObject
) -> None:
    i, j = (data.draw(st.integers(0, len(table) - 1)) for table in (left, right))
    buckets = template_histogram(left, i), template_histogram(right, j)
    lo = data.draw(st.integers(-50, 50))
    s = data.draw(st.integers(lo - 60, lo + width + 60))
    tie = float(histogram_probability(*buckets, lo - s, lo + width - s))
    confidence = tie if tie > 1e-9 else 0.5
    window = Window(lo, lo + width, confidence)
    ranges = satisfaction_times(left, right, window).ranges(i, j)
    inside = {t for low, high in ranges for t in range(low, high + 1)}
    for t in range(lo - 70, lo + width + 71):
        p = histogram_probability(*buckets, lo - t, lo + width - t)
        assert qualifies(p, confidence) == (t in inside)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(ranges))


@pytest.mark.parametrize(
    ("length", "masses", "hi", "confidence", "only"),
    [
        (97, (0.3, 0.7), 49, 0.654211344700204, -9),
        (121, (0.35, 0.65), 60, 0.634630224732864, -11),
        (97, (0.35, 0.65), 49, 0.6498622583341572, -7),
    ],
)
def test_a_narrow_window_that_one_integer_alone_reaches(
    length: int, masses: tuple[float, float], hi: int, confidence: float, only: int
) -> None:
    """The quadratic turns between two integers, and the nearer one is the only one that qualifies."""
    left = template_table({"": Template([0, length], [1.0])})
    right = template_table({"": Template([0, 37, 68], masses)})
    buckets = template_histogram(left, 0), template_histogram(right, 0)
    at = {s: histogram_probability(*buckets, -19 - s, hi - s) for s in range(only - 20, only + 21)}
    assert [s for s, p in at.items() if qualifies(p, confidence)] == [only]
    window = Window(-19, hi, confidence)
    assert satisfaction_times(left, right, window).ranges(0, 0) == [(only, only)]


@given(tables(), tables(), st.integers(-60, 60), st.integers(0, 60), st.data())
@settings(max_examples=60, deadline=None)
def test_both_oracles_agree(
    left: TemplateTable, right: TemplateTable, lo: int, width: int, data: st.DataObject
) -> None:
    given = [
        template_histogram(table, data.draw(st.integers(0, len(table) - 1)))
        for table in (left, right)
    ]
    p = histogram_probability(*given, lo, lo + width)
    found = probability(*map(whole, given), lo, lo + width)
    assert Fraction(*found) == p
    for confidence in (0.3, 1.0, *[float(p)] * (p > 0)):
        assert reaches(found, confidence) == qualifies(p, confidence)


@pytest.mark.slow
@pytest.mark.parametrize("span", [50, 2_000, 10**6, 10**12])
def test_near_ties_of_tables(span: int) -> None:
    """Thresholds that some integer reaches exactly, or misses by one unit in the last place."""
    check_near_ties(span, 25_000)


def test_some_near_ties_of_tables() -> None:
    check_near_ties(2_000, 200)


def check_near_ties(span: int, checks: int) -> None:
    rng = np.random.default_rng(span)
    pools = [drawn_table(rng, 300, span) for _ in range(2)]
    wholes = [[whole(template_histogram(pool, k)) for k in range(300)] for pool in pools]
    checked = 0
    while checked < checks:
        i, j = rng.integers(300, size=2).tolist()
        pair = wholes[0][i], wholes[1][j]
        width = int(rng.integers(0, 3 * span))
        at = int(rng.integers(-span, span + width))
        above, below = probability(*pair, -at, width - at)
        tie = above / below
        if not 1e-6 < tie < 1.0:
            continue
        confidence = float(
            tie + rng.integers(-1, 2) * np.spacing(tie) + rng.integers(0, 2) * 2.0**-50
        )
        window = Window(0, width, min(confidence, 1.0))
        left, right = (
            pool.only(np.array([number])) for pool, number in zip(pools, (i, j), strict=True)
        )
        ranges = satisfaction_times(left, right, window).ranges(0, 0)
        near = {at} | {t for low, high in ranges for t in (low - 1, low, high, high + 1)}
        for t in near:
            expected = reaches(probability(*pair, -t, width - t), window.confidence)
            assert any(low <= t <= high for low, high in ranges) == expected
            checked += 1


def drawn_table(rng: np.random.Generator, templates: int, span: int) -> TemplateTable:
    drawn = {}
    for name in range(templates):
        buckets = int(rng.integers(1, 9))
        edges = np.sort(rng.integers(0, span, buckets + 1))
        masses = rng.dirichlet(np.ones(buckets)) if name % 2 else np.full(buckets, 1 / buckets)
        drawn[str(name)] = Template(edges.tolist(), masses.tolist())
    return template_table(drawn)


def many_templates(count: int) -> tuple[HistogramPairs, HistogramEvents, HistogramEvents]:
    rng = np.random.default_rng(count)
    table = drawn_table(rng, count, 300)
    left, right = (
        HistogramEvents(rng.integers(0, 900, n), rng.integers(0, count, n), table)
        for n in (200, 150)
    )
    return pairs_model(Window(-150, 200, 0.7), table, table).for_events(left, right)


def test_more_classes_than_intervals_have() -> None:
    model, left, right = many_templates(30)
    few, many = (EventJoin(left, right, model, classes=classes) for classes in (1, 50))
    assert many.bands.shape[:2] == (30, 30)
    assert pairs_of(many) == pairs_of(few)
    assert many.counters.probed < few.counters.probed


@pytest.mark.parametrize("side", SIDES)
def test_more_classes_than_a_join_takes(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    model, left, right = many_templates(3)
    counts = (MOST_CLASSES + (side == name) for name in SIDES)
    each = [ShapeClasses(ends, ends, ends / ends.sum()) for ends in map(np.arange, counts)]
    monkeypatch.setattr(type(model), "choose_classes", lambda *_: tuple(each))
    with pytest.raises(ConditionError, match=rf"{side}: .* 1,025 classes .* at most 1,024"):
        EventJoin(left, right, model)
