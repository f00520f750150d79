"""Streams of template histograms and of intervals on a GPU: pairs and counters of the CPU's.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from bench.papers.streams import correlator as deferred
from bench.papers.streams import stream_correlator
from tests.helpers.histogram_streams import drawn_case, feed
from tests.helpers.simulator import gpu_problem
from tests.helpers.stream_cases import sorted_pairs

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from bench.papers.streams.gpu.live_blocks import ALGORITHMS, LiveBlocks

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
every_kind = pytest.mark.parametrize("kinds", ["tt", "ti", "it"])


@pytest.fixture(autouse=True)
def _classes_cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few events, so that small streams are correlated with classes too."""
    monkeypatch.setattr(deferred, "ENOUGH", 12)


@every_kind
@every_algorithm
def test_pairs_and_counters(algorithm: str, kinds: str) -> None:
    pairs = 0
    for seed in range(6):
        case = drawn_case(seed, kinds, size=24)
        options = {"block": 1 + 4 * (seed % 3), "response": True}
        cpu = case.correlator(algorithm, stream_correlator, **options)
        gpu = case.correlator(algorithm, stream_correlator, live_blocks=LiveBlocks, **options)
        found = [feed(made, case, np.random.default_rng(seed)) for made in (gpu, cpu)]
        np.testing.assert_array_equal(*found)
        np.testing.assert_array_equal(found[0], case.pairs())
        stats = [replace(made.stats, response_mean=None) for made in (gpu, cpu)]
        assert stats[0] == stats[1]
        pairs += len(found[0])
    assert pairs > 100


@every_algorithm
@pytest.mark.parametrize("kinds", ["tt", "ti"])
def test_a_pickle_goes_on(algorithm: str, kinds: str) -> None:
    case = drawn_case(7, kinds, size=24)
    made = case.correlator(algorithm, stream_correlator, live_blocks=LiveBlocks, block=5)
    results = []
    for start in range(0, 24, 8):
        rows = slice(start, start + 8)
        for name, side in zip(("left", "right"), case.sides, strict=True):
            made = pickle.loads(pickle.dumps(made))
            results.append(made.push(name, side.pushed(rows), arrival=side.arrival[rows]))
    results.append(made.flush())
    np.testing.assert_array_equal(sorted_pairs(results), case.pairs())
