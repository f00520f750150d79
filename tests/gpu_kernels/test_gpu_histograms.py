"""Histogram timestamps in the join on a GPU: the same as the CPU, to the bit.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.condition import Window
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.timestamps import HistogramEvents, IntervalEvents, pairs_model
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import cpu_fallback
import gpu_kernels

WIDE, NARROW = Window(-90, 70, 0.6), Window(-6, 9, 0.15)


def drawn_table(rng: np.random.Generator, count: int) -> TemplateTable:
    found = {}
    for name in range(count):
        buckets = int(rng.integers(1, 5))
        edges = np.sort(rng.integers(0, 45, buckets + 1)).tolist()
        found[str(name)] = Template(edges, rng.dirichlet(np.ones(buckets)).tolist())
    return template_table(found)


def drawn_side(rng: np.random.Generator, n: int, kind: str) -> HistogramEvents | IntervalEvents:
    times = rng.integers(-120, 120, n)
    group = rng.integers(-1, 2, n)
    if kind == "i":
        return IntervalEvents(times - rng.choice([0, 4, 11], n), times, group, 2)
    table = drawn_table(rng, 5)
    return HistogramEvents(times, rng.integers(0, 5, n), table, group, 2)


@pytest.mark.parametrize("window", [WIDE, NARROW])
@pytest.mark.parametrize("kinds", ["hh", "hi", "ih"])
def test_joins_of_histograms(kinds: str, window: Window) -> None:
    rng = np.random.default_rng(7)
    sides = [drawn_side(rng, n, kind) for n, kind in zip((60, 50), kinds, strict=True)]
    tables = [getattr(side, "table", None) for side in sides]
    model, left, right = pairs_model(window, *tables).for_events(*sides)
    packages = gpu_kernels, cpu_fallback
    gpu, cpu = (each.EventJoin(left, right, model, classes=2) for each in packages)
    assert gpu.counts.tolist() == cpu.counts.tolist()
    assert gpu.counters == cpu.counters
    assert cpu.counters.pairs > 0
    assert cpu.counters.probed > 0
    pairs = [join.pairs(0, len(left), join.left_order, join.right_order) for join in (gpu, cpu)]
    for found, expected in zip(*pairs, strict=True):
        assert found.tolist() == expected.tolist()
    given = left, pairs[0][0], right, pairs[0][1], model
    probabilities = [each.event_probabilities(*given).tolist() for each in packages]
    assert probabilities[0] == probabilities[1]
    assert min(probabilities[1]) >= window.confidence - 1e-12
    ranks = rng.permutation(len(right))
    best = [join.best(0, len(left), ranks) for join in (gpu, cpu)]
    for found, expected in zip(best[0][:2], best[1][:2], strict=True):
        np.testing.assert_array_equal(found, expected)
