"""Calls that an exception ends: what was found is kept, and nothing is wrong in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS, correlator, immediate, live_blocks
from bench.papers.streams.correlator import StreamCorrelator
from coincide import Window
from coincide.model.errors import DataError
from tests.bench.papers.streams.test_stream_equality import pairs_by_join
from tests.helpers.stream_cases import Stream, StreamCase, paper_streams, sorted_pairs

Failing = Callable[[pytest.MonkeyPatch, StreamCorrelator], None]


def fail_at(
    patch: pytest.MonkeyPatch, owner: Any, name: str, which: int, error: type[BaseException]
) -> None:
    """Let a function raise instead of running at its call number `which`."""
    inner, calls = getattr(owner, name), [0]

    def failing(*given: Any) -> Any:
        calls[0] += 1
        if calls[0] == which:
            raise error
        return inner(*given)

    patch.setattr(owner, name, failing)


def late_first(stream: Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A stream whose second event is far too late."""
    low, high = (np.insert(each, 1, -(10**7)) for each in (stream.low, stream.high))
    return low, high, np.insert(stream.arrival, 1, stream.arrival[0])


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("which", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_pairs_come_out_after_a_failure(
    algorithm: str, which: int, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(correlator, "_MOST_AT_ONCE", 100)
    left, right = paper_streams(1.0, 300)
    case = StreamCase(left, right, Window(-100_000, 100_000, 0.8), {"block": 40})
    made = case.correlator(algorithm)
    low, high, arrival = late_first(left)
    found = [made.push("right", right.events, arrival=right.arrival)]
    with monkeypatch.context() as patch:
        fail_at(patch, made, "_space", which, error)
        with pytest.raises(error):
            made.push("left", (low, high), arrival=arrival)
    taken = made.stats.arrived[0]
    assert taken < low.size
    rest = low[taken:], high[taken:]
    found += [made.push("left", rest, arrival=arrival[taken:]), made.flush()]
    pairs = sorted_pairs(found)
    pairs[:, 0] -= pairs[:, 0] > 1
    np.testing.assert_array_equal(pairs, pairs_by_join(case))
    assert made.stats.pairs == len(pairs) > 500
    assert made.take_late("left").numbers.tolist() == [1]


@pytest.mark.parametrize("algorithm", ["lazy", "lookup", "classes"])
def test_flush_can_be_called_again_after_a_failure(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = paper_streams(0.5, 300)
    case = StreamCase(left, right, Window(-100_000, 100_000, 0.8))
    made = case.correlator(algorithm)
    found = [made.push("left", left.events), made.push("right", right.events)]
    fail_at(monkeypatch, made, "_space", 1, MemoryError)
    with pytest.raises(MemoryError):
        made.flush()
    found += [made.flush(), made.flush()]
    np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_failure_amid_correlation_is_not_passed_over(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = paper_streams(0.5, 300)
    made = StreamCase(left, right, Window(-100, 100, 0.8), {"block": 1}).correlator(algorithm)
    kernels = {"eager": "correlate_eagerly"}
    simple = algorithm.startswith("simple")
    kernel = kernels.get(algorithm, "correlate_simple" if simple else "evaluate")
    module = immediate if simple or algorithm == "eager" else live_blocks
    with monkeypatch.context() as patch:
        fail_at(patch, module, kernel, 1, MemoryError)
        with pytest.raises(MemoryError):
            made.push("left", left.events)
    calls: list[Callable[[], Any]] = [
        lambda: made.push("left", left.events),
        lambda: made.push_mixed([0], ([0], [1])),
        lambda: made.advance(5),
        made.flush,
    ]
    for call in calls:
        with pytest.raises(
            DataError, match="an exception ended an earlier call while it correlated"
        ):
            call()
    assert len(made.take_late("left")) == made.stats.late[0]
