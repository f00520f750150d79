"""One correlator and several threads, copies and pickles."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from bench.papers.streams import ALGORITHMS
from bench.papers.streams.correlator import StreamCorrelator
from coincide import Window
from tests.bench.papers.streams.test_stream_equality import pairs_by_join
from tests.helpers.stream_cases import Stream, StreamCase, paper_streams, sorted_pairs


def a_case(seconds: float) -> StreamCase:
    left, right = paper_streams(seconds, 1600)
    return StreamCase(left, right, Window(-100_000, 100_000, 0.8), {"block": 16})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_threads_on_one_correlator(algorithm: str) -> None:
    case = a_case(2.0)
    made = case.correlator(algorithm, emit="counts")
    start = Barrier(2)

    def push(side: str, stream: Stream) -> int:
        start.wait()
        total = 0
        for at in range(0, len(stream), 8):
            rows = slice(at, at + 8)
            given = (stream.low[rows], stream.high[rows])
            total += made.push(side, given, arrival=stream.arrival[rows]).count
            assert made.stats.arrived >= (0, 0)
        return total

    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(push, ("left", "right"), (case.left, case.right)))
    assert sum(counts) + made.flush().count == made.stats.pairs == len(pairs_by_join(case))


@pytest.mark.parametrize("method", ["push", "push_mixed", "advance", "flush", "take_late", "stats"])
def test_each_call_waits_for_its_turn(method: str) -> None:
    made = a_case(0.1).correlator("lazy")
    calls: dict[str, Callable[[], object]] = {
        "push": lambda: made.push("left", ([], [])),
        "push_mixed": lambda: made.push_mixed([], ([], [])),
        "advance": lambda: made.advance(5),
        "flush": made.flush,
        "take_late": lambda: made.take_late("left"),
        "stats": lambda: made.stats,
    }
    with ThreadPoolExecutor(1) as pool:
        with made._lock:
            call = pool.submit(calls[method])
            with pytest.raises(TimeoutError):
                call.result(0.05)
        call.result(10)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_copy_goes_on_by_itself(
    algorithm: str, copied: Callable[[StreamCorrelator], StreamCorrelator]
) -> None:
    case = a_case(0.3)
    made = case.correlator(algorithm)
    before = made.push("left", case.left.events, arrival=case.left.arrival)
    for each in (copied(made), made):
        found = [before, each.push("right", case.right.events, arrival=case.right.arrival)]
        found.append(each.flush())
        np.testing.assert_array_equal(sorted_pairs(found), pairs_by_join(case))
