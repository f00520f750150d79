"""Windows narrower than two templates: where pairs are cut, and what is decided exactly."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from coincide.model.condition import Window
from coincide.model.templates import narrow as exact_ranges
from coincide.model.templates import satisfaction
from coincide.model.templates.narrow import UNSURE, allowance, exact_of, outside, point_near
from coincide.model.templates.satisfaction import solved_times
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.templates.template import Template, TemplateTable, template_table

WINDOW = Window(-2, 3, 0.02)


def drawn(seed: int, buckets: int) -> TemplateTable:
    rng = np.random.default_rng(seed)
    return template_table(
        {
            str(k): Template(
                np.sort(rng.integers(0, 90, buckets + 1)).tolist(),
                rng.dirichlet(np.ones(buckets)).tolist(),
            )
            for k in range(3)
        }
    )


def all_ranges(times: SatisfactionTimes) -> list[list[tuple[int, int]]]:
    rows, columns = times.first.shape
    return [times.ranges(i, j) for i in range(rows) for j in range(columns)]


@pytest.mark.parametrize("jumps", [False, True])
def test_the_nearest_point_is_found(jumps: bool) -> None:
    left, right = drawn(1, 7), drawn(2, 4)
    rng = np.random.default_rng(3)
    some = {False: 0, True: 0}
    for start, length in zip(rng.integers(-130, 100, 300), rng.integers(2, 60, 300), strict=True):
        i, j = (int(n) for n in rng.integers(0, 3, 2))
        end, middle = start + length, start + (length >> 1)
        own = left.edges[left.starts[i] : left.starts[i + 1]]
        other = right.edges[right.starts[j] : right.starts[j + 1]]
        points = np.add.outer(np.subtract.outer(own, other), [WINDOW.lo, WINDOW.hi]).reshape(-1)
        points = np.concatenate([points, points + 1]) if jumps else points
        points = points[(start < points) & (points < end)]
        given = left.buckets, i, right.buckets, j, WINDOW.lo, WINDOW.hi
        found = point_near(*given, start, end, middle, jumps)
        some[bool(points.size)] += 1
        if points.size:
            assert found in points
            assert abs(found - middle) == np.abs(points - middle).min()
        else:
            assert found == start
    assert min(some.values()) > 5


def test_more_ranges_than_there_was_room_for() -> None:
    """Two combs of instants; no two pairs are as far apart."""
    combs = [np.arange(30) * 1000, np.arange(12) * 20]
    tables = [
        template_table(
            {
                "comb": Template(
                    np.repeat(comb, 2).tolist(), ([1.0 / comb.size, 0.0] * comb.size)[:-1]
                )
            }
        )
        for comb in combs
    ]
    times = solved_times(*tables, Window(-2, 3, 0.5 / 360))
    apart = np.subtract.outer(tables[1].edges[::2], tables[0].edges[::2]).reshape(-1)
    want = sorted((-2 - d, 3 - d) for d in apart.tolist())
    assert len(want) == 360
    assert times.ranges(0, 0) == want


def test_pieces_of_a_pair_are_decided_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    kinks, asked = exact_ranges._kinks, []
    monkeypatch.setattr(exact_ranges, "_kinks", lambda *given: asked.append(1) or kinks(*given))
    x, y = exact_of(drawn(1, 5), 0), exact_of(drawn(2, 4), 1)
    whole = exact_ranges.with_undecided(x, y, WINDOW, [(-200, 200, UNSURE)])
    assert whole
    cuts = [-200, -40, -3, 0, 1, 17, 60, 201]
    pieces = [(a, b - 1, UNSURE) for a, b in pairwise(cuts)]
    assert exact_ranges.with_undecided(x, y, WINDOW, pieces) == whole
    assert len(asked) == 2


@pytest.mark.parametrize("confidence", [0.1, 0.2, 0.35])
def test_instants_that_meet_instants_make_it_jump(confidence: float) -> None:
    """What exact arithmetic decides by stretches is what it decides one by one."""
    rng, window, some = np.random.default_rng(1), Window(-8, 11, confidence), 0
    for _ in range(12):
        tables = [
            Template(np.sort(rng.choice(np.arange(0, 90, 15), 6)).tolist(), masses.tolist())
            for masses in rng.dirichlet(np.ones(5), 2)
        ]
        x, y = (exact_of(template_table({"": template}), 0) for template in tables)
        found = exact_ranges.with_undecided(x, y, window, [(-120, 120, UNSURE)])
        good = [s for s in range(-120, 121) if outside(x, y, s, window) <= allowance(confidence)]
        assert [s for first, last in found for s in range(first, last + 1)] == good
        some += bool(good)
    assert some > 3


def test_undecided_pairs_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = drawn(1, 5), drawn(2, 4)
    want = solved_times(left, right, WINDOW)
    assert want.gap_first.size

    def unsure(
        x: Any, y: Any, lo: int, hi: int, bound: float, start: int, stop: int, first: Any, last: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        pieces = []
        for i in range(start, stop):
            for j in np.flatnonzero(first[i] < last[i]).tolist():
                place, cut = i * first.shape[1] + j, (first[i, j] + last[i, j]) >> 1
                pieces += [
                    (place, first[i, j], cut, UNSURE), (place, cut + 1, last[i, j], UNSURE)
                ]  # fmt: skip
        assert len({piece[0] for piece in pieces}) > 3
        return np.empty((0, 3), np.int64), np.array(pieces, np.int64)

    monkeypatch.setattr(satisfaction, "narrow_rows", unsure)
    assert all_ranges(solved_times(left, right, WINDOW)) == all_ranges(want)


@pytest.mark.parametrize("half", [44, 45, 50, 89, 90, 91])
def test_both_tails_count_up_to_the_length_of_both_templates(half: int) -> None:
    """Humps at both ends; a narrow window cuts off some on either side."""
    humps = template_table({"": Template([0, 0, 2, 88, 90, 90], [0.3, 0.2, 0.0, 0.2, 0.3])})
    window, own = Window(-half, half, 0.6), exact_of(humps, 0)
    good = {s for s in range(-300, 301) if outside(own, own, s, window) <= allowance(0.6)}
    (found,) = all_ranges(solved_times(humps, humps, window))
    assert {s for first, last in found for s in range(first, last + 1)} == good
    assert bool(good) == (half > 45)


@pytest.mark.parametrize("shift", [0, 3, 100_001])
@pytest.mark.parametrize(
    ("more", "reach"), [(0.0, 0), (-(2.0**-38), 2), (-(2.0**-36), 4), (2.0**-48, None)]
)
def test_the_top_of_a_probability_may_just_reach_the_threshold(
    shift: int, more: float, reach: int | None
) -> None:
    """With two intervals 2**20 long in a window half as wide P is 7/16 - (s/2**20)**2 around its top."""
    table = template_table({"": Template([0, 1 << 20], [1.0])})
    window = Window(shift - (1 << 18), shift + (1 << 18), 0.4375 + more)
    found = solved_times(table, table, window).ranges(0, 0)
    assert found == ([] if reach is None else [(shift - reach, shift + reach)])


def test_a_quadratic_changes_sign_near_its_roots_alone() -> None:
    """At an integer root too, from either side."""
    changes = 0
    for a, b, c in product(range(-3, 4), range(-9, 10), range(-30, 31, 2)):
        good = [a * s * s + b * s + c <= 0 for s in range(26)]
        cuts = {s for s in range(1, 26) if good[s] != good[s - 1]}
        assert cuts <= set(exact_ranges._near_roots(a, b, c, 25)), (a, b, c)
        changes += len(cuts)
    assert changes > 1000


@pytest.mark.parametrize("beyond", [False, True])
def test_a_probability_at_the_threshold_itself_qualifies(beyond: bool) -> None:
    """It is ct - 2**-50 where the earlier instant alone is in the window; the next double is below."""
    late = 0.5 + 2.0**-50
    late = float(np.nextafter(late, 1.0)) if beyond else late
    left = template_table({"": Template([0, 0], [1.0])})
    right = template_table({"": Template([0, 0, 10, 10], [1.0 - late, 0.0, late])})
    for window, sure, tie in (
        (Window(-20, 20, 0.5), (-20, 20), (21, 30)),
        (Window(-2, 2, 0.5), (-2, 2), (8, 12)),
    ):
        found = solved_times(left, right, window).ranges(0, 0)
        both = [(sure[0], tie[1])] if tie[0] == sure[1] + 1 else [sure, tie]
        assert found == ([sure] if beyond else both)


FARTHEST = 2 * (2**61 - 1)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("is_left", [True, False])
def test_intervals_as_long_as_time_is(is_left: bool, seed: int) -> None:
    """Sums of such times leave 64 bits; each s that events may have is decided as by exact arithmetic."""
    random = np.random.default_rng(seed)
    length = FARTHEST - int(random.integers(0, [1, 2**20, 2**59, 2**61][seed % 4]))
    edges = np.sort(random.integers(-(2 ** random.integers(2, 60)), 1, 4))
    hump = template_table({"": Template(edges - edges[-1], [0.2, 0.5, 0.3])})
    long = TemplateTable.of_lengths(np.array([length]))
    left, right = (long, hump) if is_left else (hump, long)
    lo, hi = np.sort(random.integers(-(2**61) + 1, 2**61, 2)).tolist()
    (own, others), decided = (exact_of(left, 0), exact_of(right, 0)), 0
    first, last = int(right.lengths[0]) - FARTHEST, FARTHEST - int(left.lengths[0])
    highest = 1 - min(outside(own, others, s, Window(lo, hi, 1.0)) for s in (lo, hi, first, last))
    for confidence in (0.02, float(highest) * 0.7, float(highest) * 0.999):
        window = Window(lo, hi, max(confidence, 1e-6))
        (found,) = all_ranges(solved_times(left, right, window))
        ends = [end + step for each in found for end in each for step in (-1, 0, 1)]
        drawn = [int(s) for s in random.integers(first, last, 60, endpoint=True)]
        for s in [s for s in (first, last, *ends, *drawn) if first <= s <= last]:
            is_in = any(low <= s <= high for low, high in found)
            assert is_in == (outside(own, others, s, window) <= allowance(window.confidence))
            decided += is_in
    assert decided or highest < 0.02
