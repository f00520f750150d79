"""Another model of timestamps than intervals through the GPU's kernels: the same as the CPU, to the bit.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coincide.errors import ConditionError
from coincide.length_classes import MAX_CLASSES
from coincide.shape_classes import MOST_CLASSES, ShapeClasses
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import cpu_fallback
import gpu_kernels
from gpu_kernels.streams import ALGORITHMS, LiveBlocks
from tests.helpers.template_streams import check_streams
from tests.helpers.template_tables import brute_pairs, drawn_events, drawn_model

MANY = MAX_CLASSES + 4


@pytest.mark.parametrize("classes", [None, 3])
@pytest.mark.parametrize(("templates", "groups"), [((3, 2), 1), ((MANY, 5), 3), ((4, MANY), 1)])
def test_templates_are_joined(templates: tuple[int, int], groups: int, classes: int | None) -> None:
    rng = np.random.default_rng(1)
    model = drawn_model(rng, templates)
    left = drawn_events(rng, 70, model.left_leans, 100, groups)
    right = drawn_events(rng, 60, model.right_leans, 100, groups)
    gpu, cpu = (
        package.EventJoin(left, right, model, classes=classes)
        for package in (gpu_kernels, cpu_fallback)
    )
    assert gpu.left_order.tolist() == cpu.left_order.tolist()
    assert gpu.counts.tolist() == cpu.counts.tolist()
    assert gpu.counters == cpu.counters
    pairs = [join.pairs(0, len(left), join.left_order, join.right_order) for join in (gpu, cpu)]
    for found, expected in zip(*pairs, strict=True):
        assert found.tolist() == expected.tolist()
    rows = [side.tolist() for side in pairs[0]]
    assert sorted(zip(*rows, strict=True)) == brute_pairs(model, left, right) != []
    given = left, pairs[0][0], right, pairs[0][1], model
    probabilities = [p.event_probabilities(*given).tolist() for p in (gpu_kernels, cpu_fallback)]
    assert probabilities[0] == probabilities[1]
    ranks = rng.permutation(len(right))
    best = [join.best(0, len(left), ranks) for join in (gpu, cpu)]
    for found, expected in zip(best[0][:2], best[1][:2], strict=True):
        np.testing.assert_array_equal(found, expected)
    assert best[0][2] == best[1][2]


@pytest.mark.parametrize("templates", [(2, 3), (MANY, 4)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_streams_of_templates(algorithm: Any, templates: tuple[int, int]) -> None:
    check_streams(algorithm, templates, LiveBlocks, n=200)


def test_more_classes_than_a_join_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    model = drawn_model(rng, (3, 2))
    sides = [drawn_events(rng, 9, leans, 50) for leans in (model.left_leans, model.right_leans)]
    few, many = (np.arange(count) for count in (2, MOST_CLASSES + 1))
    chosen = tuple(ShapeClasses(ends, ends, ends / ends.sum()) for ends in (few, many))
    monkeypatch.setattr(type(model), "choose_classes", lambda *_: chosen)
    with pytest.raises(ConditionError, match=r"right: .* 1,025 classes, and a join takes 1,024"):
        gpu_kernels.EventJoin(*sides, model)
