"""The user's stream correlator: which backend it takes, and that nothing is lost when it changes.

Here a made-up GPU stands for one; `test_gpu_streams` has the real one's answers.
"""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
from itertools import count
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import coincide
import cpu_fallback
import gpu_kernels.streams
from coincide import BackendError, ConditionError, TimingCondition, Window, within
from coincide.engine.streams import correlators
from coincide.engine.streams.correlators import ResilientLiveBlocks
from coincide.model.errors import MemoryBudgetError
from coincide.model.streams.correlator import DEFERRED
from coincide.model.streams.models import stream_options
from cpu_fallback.streams import LiveBlocks
from gpu_kernels.device import usable as device
from tests.cpu_fallback.streams.test_stream_equality import pairs_by_join
from tests.helpers.stream_cases import StreamCase, feed, paper_streams

METHODS = ("reserve", "reclassed", "evaluate", "let_go")
LIMITS = {"left_delay": 0, "right_delay": 0, "left_longest": 5, "right_longest": 5}
WINDOW = Window(-200_000, 150_000, 0.7)
CONDITION = TimingCondition(within(-5, 5), 0.5)


def made_up_gpu(fails_at: int) -> ModuleType:
    """A GPU that has no more memory from some use on; use 0 is making the live blocks."""
    used = count()

    class Blocks(LiveBlocks):
        def __init__(self, *given: Any) -> None:
            self.use()
            super().__init__(*given)

        def use(self) -> None:
            if next(used) >= fails_at:
                raise MemoryBudgetError("the GPU's memory is full")

        def __getattribute__(self, name: str) -> Any:
            if name in METHODS:
                self.use()
            return super().__getattribute__(name)

    streams = ModuleType("gpu_kernels.streams")
    vars(streams).update(LiveBlocks=Blocks)
    return streams


def pretend(monkeypatch: pytest.MonkeyPatch, fails_at: int, least_block: int = 1) -> None:
    """Let there be a GPU, made up, which "auto" takes also for small blocks."""
    monkeypatch.setattr(correlators, "LEAST_BLOCK", least_block)
    streams, real = made_up_gpu(fails_at), correlators.import_module
    gpu = ModuleType("gpu_kernels")

    def imported(name: str) -> ModuleType:
        return streams if name == "gpu_kernels.streams" else real(name)

    monkeypatch.setattr(correlators, "import_module", imported)
    monkeypatch.setattr(
        correlators, "load_backend", lambda name: cpu_fallback if name == "cpu" else gpu
    )


def correlator_of(case: StreamCase, algorithm: str, **more: Any) -> Any:
    given = case.left.limits("left") | case.right.limits("right") | case.options | more
    return coincide.stream_correlator(algorithm, case.window, **given)


@pytest.mark.parametrize("algorithm", ["lazy", "classes"])
@pytest.mark.parametrize("fails_at", [0, 1, 2, 3, 4, 7, 20, 10**9])
def test_no_pair_is_lost_or_doubled(
    fails_at: int,
    algorithm: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    left, right = paper_streams(1.0, 600)
    case = StreamCase(left, right, WINDOW, {"block": 40})
    plain = case.correlator(algorithm)
    expected = feed(plain, case, np.random.default_rng(1))
    pretend(monkeypatch, fails_at)
    with caplog.at_level(logging.WARNING):
        made = correlator_of(case, algorithm)
        found = feed(made, case, np.random.default_rng(1))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found, pairs_by_join(case))
    assert made.stats == plain.stats
    told = [record.message for record in caplog.records]
    fell_back = fails_at < 10**9
    assert told == ["the CPU takes over: the GPU's memory is full"] * fell_back
    assert (type(made._live._live) is LiveBlocks) == fell_back


@pytest.mark.parametrize("fails_at", range(6))
def test_a_large_block_finds_room_on_the_cpu(
    fails_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = paper_streams(5.0, 1000)
    case = StreamCase(left, right, WINDOW, {"block": 10_000})
    pretend(monkeypatch, fails_at)
    made = correlator_of(case, "classes", emit="counts")
    made.push("left", left.events)
    made.push("right", right.events)
    found = made.flush()
    assert made._live._live.buffers.keys.shape[2] >= 5000
    assert found.count == made.stats.pairs == len(pairs_by_join(case))


@pytest.mark.parametrize("backend", ["cpu", "auto", "gpu"])
@pytest.mark.parametrize("algorithm", DEFERRED)
def test_which_backend_is_taken(
    algorithm: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, 10**9)
    on_gpu = backend != "cpu" and algorithm in ("lazy", "classes")
    if backend == "gpu" and not on_gpu:
        with pytest.raises(BackendError, match=f"GPU has no stream correlator '{algorithm}'"):
            coincide.stream_correlator(algorithm, CONDITION, **LIMITS, backend=backend)
        return
    made = coincide.stream_correlator(algorithm, CONDITION, **LIMITS, backend=backend)
    assert isinstance(getattr(made, "_live", None), ResilientLiveBlocks) == on_gpu


@pytest.mark.parametrize(
    ("backend", "given", "on_gpu"),
    [
        ("auto", {}, False),
        ("auto", {"block": 16_383}, False),
        ("auto", {"block": 16_384}, True),
        ("auto", {"block": 16_384, "every": 5}, True),
        ("auto", {"block": None, "every": 10**6}, False),
        ("gpu", {}, True),
        ("gpu", {"block": None, "every": 10**6}, True),
        ("cpu", {"block": 16_384}, False),
    ],
)
def test_blocks_too_small_for_a_gpu(
    backend: str, given: dict[str, Any], on_gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, 10**9, correlators.LEAST_BLOCK)
    made = coincide.stream_correlator("classes", CONDITION, **LIMITS, backend=backend, **given)
    assert isinstance(made._live, ResilientLiveBlocks) == on_gpu


def test_bad_backends_and_algorithms_are_named() -> None:
    with pytest.raises(ConditionError, match=r"backend.*'tpu'"):
        coincide.stream_correlator("lazy", CONDITION, **LIMITS, backend="tpu")  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match=r"algorithm.*'lazier'"):
        coincide.stream_correlator("lazier", CONDITION, **LIMITS, backend="gpu")


def test_without_a_gpu() -> None:
    if device.problem() is None:
        pytest.skip("there is a GPU")
    with pytest.raises(BackendError, match="backend='gpu' is not possible:"):
        coincide.stream_correlator("lazy", CONDITION, **LIMITS, backend="gpu")
    made = coincide.stream_correlator("lazy", CONDITION, **LIMITS, block=1 << 14)
    assert type(made._live._live) is LiveBlocks


@pytest.mark.parametrize("algorithm", ["simple", "simple-sort", "eager"])
def test_algorithms_of_comparisons_say_where_they_are(algorithm: str) -> None:
    with pytest.raises(
        ConditionError, match=f"'{algorithm}' .*bench/papers/streams.py.* Use 'classes'"
    ):
        coincide.stream_correlator(algorithm, CONDITION, **LIMITS)


def test_arguments_are_those_that_are_checked() -> None:
    user, checked = (
        dict(inspect.signature(function).parameters)
        for function in (coincide.stream_correlator, stream_options)
    )
    del user["algorithm"]
    assert user.pop("backend").default == "auto"
    assert user.pop("by").default is None  # names what takes keys
    for name in ("left_templates", "right_templates"):
        # Here they may be whatever `coincide.histograms` takes.
        assert user[name].annotation == "object"
        checked[name] = checked[name].replace(annotation="object")
    assert user == checked


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_chooses_anew(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a machine with a GPU to one without: the events travel, the device does not."""
    left, right = paper_streams(0.4, 600)
    case = StreamCase(left, right, WINDOW, {"block": 40})
    with monkeypatch.context() as patch:
        pretend(patch, 10**9)
        made = correlator_of(case, "lazy")
        made.push("left", left.events, arrival=left.arrival)
        assert type(made._live._live) is not LiveBlocks
    before = made._live.counts
    monkeypatch.setattr(correlators, "load_backend", lambda name: cpu_fallback)
    other = copied(made)
    assert type(other._live._live) is LiveBlocks
    np.testing.assert_array_equal(other._live.counts, before)
    assert before[0] > 0


def test_asking_for_a_gpu_package_touches_no_gpu() -> None:
    assert gpu_kernels.streams.ALGORITHMS == ("lazy", "classes")
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = gpu_kernels.streams.Nothing
