"""The seam of timestamps: another model than intervals, through the same kernels, against all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coincide.errors import ConditionError
from coincide.length_classes import MAX_CLASSES
from coincide.shape_classes import MOST_CLASSES, ShapeClasses
from coincide.sides import SIDES
from cpu_fallback import EventJoin, event_probabilities
from cpu_fallback.streams import LiveBlocks
from tests.helpers.template_streams import check_streams
from tests.helpers.template_tables import TemplateEvents, brute_pairs, drawn_events, drawn_model

MANY = MAX_CLASSES + 9


def case(
    seed: int, templates: tuple[int, int], n: int = 300, groups: int = 1
) -> tuple[Any, TemplateEvents, TemplateEvents]:
    rng = np.random.default_rng(seed)
    model = drawn_model(rng, templates)
    sides = (
        drawn_events(rng, size, leans, 400, groups)
        for size, leans in ((n, model.left_leans), (n - 40, model.right_leans))
    )
    return model, *sides


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("classes", [None, 1, 2, 5, MANY - 3])
@pytest.mark.parametrize("templates", [(1, 1), (3, 2), (MANY, 4), (5, MANY), (MANY, MANY + 30)])
def test_templates_are_joined(templates: tuple[int, int], classes: int | None, groups: int) -> None:
    model, left, right = case(1, templates, groups=groups)
    join = EventJoin(left, right, model, classes=classes)
    expected = brute_pairs(model, left, right)
    assert join.bands.shape[:2] == tuple(min(count, classes or count) for count in templates)
    found = join.pairs(0, len(left), join.left_order, join.right_order)
    assert sorted(zip(*(side.tolist() for side in found), strict=True)) == expected
    counts = np.bincount([i for i, _ in expected], minlength=len(left))
    assert join.counts.tolist() == counts[join.left_order].tolist()
    assert join.counters.pairs == len(expected)


def test_single_templates_with_one_range_are_never_probed() -> None:
    model, left, right = case(2, (MANY, MANY))
    for row in model.ranges:
        row[:] = [ranges[:1] for ranges in row]
    join = EventJoin(left, right, model)
    assert join.counters.pairs == len(brute_pairs(model, left, right)) > 0
    assert join.counters.probed == 0
    assert EventJoin(left, right, model, classes=3).counters.probed > 0


@pytest.mark.parametrize("classes", [None, 4])
def test_the_best_partner(classes: int | None) -> None:
    model, left, right = case(3, (MANY, 7), n=200)
    join = EventJoin(left, right, model, classes=classes)
    ranks = np.random.default_rng(4).permutation(len(right))
    best, probabilities, _ = join.best(0, len(left), ranks[join.right_order])
    partners: dict[int, list[int]] = {}
    for i, j in brute_pairs(model, left, right):
        partners.setdefault(i, []).append(j)
    rule = model.rule

    def merit(i: int, j: int) -> tuple[float, int, int]:
        pair = right.max_time[j] - left.max_time[i], left.template[i], right.template[j]
        return -rule.probability(*pair), int(rule.distance(*pair)), int(ranks[j])

    for at, i in enumerate(join.left_order.tolist()):
        if i not in partners:
            assert best[at] == -1
            assert np.isnan(probabilities[at])
            continue
        chosen = min(partners[i], key=lambda j: merit(i, j))
        assert join.right_order[best[at]] == chosen
        assert probabilities[at] == -merit(i, chosen)[0]
    rows = np.flatnonzero(best >= 0)
    found = event_probabilities(
        left, join.left_order[rows], right, join.right_order[best[rows]], model
    )
    assert found.tolist() == probabilities[rows].tolist()


@pytest.mark.parametrize("templates", [(2, 3), (MANY, MANY + 5)])
@pytest.mark.parametrize("algorithm", ["lazy", "lookup", "classes"])
def test_streams_of_templates(algorithm: Any, templates: tuple[int, int]) -> None:
    check_streams(algorithm, templates, LiveBlocks)


@pytest.mark.parametrize("side", SIDES)
def test_more_classes_than_a_join_takes(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    model, *events = case(1, (3, 2))
    counts = (MOST_CLASSES + (side == name) for name in SIDES)
    each = [ShapeClasses(ends, ends, ends / ends.sum()) for ends in map(np.arange, counts)]
    monkeypatch.setattr(type(model), "choose_classes", lambda *_: tuple(each))
    with pytest.raises(ConditionError, match=f"{side}: .* 1,025 classes, and a join takes 1,024"):
        EventJoin(*events, model)
