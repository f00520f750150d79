"""Bytes that travel to and from a GPU for each event and each pair of a join of tables, counted exactly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from gpu_kernels.kernels.simulation import SIMULATED
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)
if SIMULATED:
    pytest.skip("nothing travels in the simulator", allow_module_level=True)

from bench.gpu.counted import Counters
from coincide import BackendError, CorrelateOptions, TimingCondition, correlate_tables, within
from coincide.model import class_choice, classes

try:
    COUNTERS = Counters()
except BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

SMALL, LARGE = 2048, 4096
IDS = {"left_columns": "id", "right_columns": "id"}


class Bytes(NamedTuple):
    """What one join sends and fetches, and the rows of its answer."""

    sent: int
    fetched: int
    pairs: int


def side(seed: int, n: int, kind: str) -> pa.Table:
    random = np.random.default_rng([seed, n])
    low = random.integers(0, 8 * n, n) + 2**40
    longest = 2**33 if kind == "long" else 40
    high = low if kind == "instants" else low + random.integers(0, longest, n, endpoint=True)
    return pa.table(
        {
            "min_time": low, "max_time": high, "id": random.integers(0, 2**60, n),
            "key": random.integers(0, 5, n), "text": pa.array([f"{i} a" for i in range(n)]),
        }
    )  # fmt: skip


def joined(n: int, kind: str, **given: Any) -> Bytes:
    tables = [side(seed, n, kind) for seed in (1, 2)]
    asked = {"options": CorrelateOptions(unit="us", threads=1, classes=2), **IDS, **given}
    condition = TimingCondition(within(-9, 14), 0.3)
    before = COUNTERS.traffic()
    found = correlate_tables(*tables, condition, backend="gpu", **asked)
    after = COUNTERS.traffic()
    by_cpu = correlate_tables(*tables, condition, backend="cpu", **asked)
    assert found.equals(by_cpu)
    pairs = correlate_tables(*tables, condition, **asked | {"emit": "counts"}, backend="cpu")
    sent, fetched = after.sent - before.sent, after.fetched - before.fetched
    return Bytes(sent, fetched, pa.compute.sum(pairs["matches"]).as_py() or 0)


@pytest.mark.parametrize(
    ("kind", "given", "sent", "fetched", "of_pair"),
    [
        # A max_time and a length; a count.
        ("lengths", {"emit": "counts"}, 2 * 12, 4, 0),
        ("instants", {"emit": "counts"}, 2 * 8, 4, 0),
        ("long", {"emit": "counts"}, 2 * (12 + 8), 4, 0),
        ("lengths", {"emit": "counts", "by": ["key"]}, 2 * (12 + 4), 4, 0),
        # Ids go up as they are, and no order comes down.
        ("lengths", {}, 2 * (12 + 8), 4, 16),
        ("lengths", {"emit": "lists"}, 2 * 12 + 8, 4 + 4, 8),
        # The host takes texts by rows.
        ("lengths", {"right_columns": "text"}, 2 * 12, 4 + 2 * 4, 16),
    ],
    ids=["counts", "instants", "long", "keys", "pairs", "lists", "texts"],
)  # fmt: skip
def test_bytes_of_events_and_pairs(
    kind: str, given: dict[str, Any], sent: int, fetched: int, of_pair: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By the difference of two joins, whose samples have one size."""
    monkeypatch.setattr(class_choice, "_TARGETS", 64)
    monkeypatch.setattr(class_choice, "_SAMPLED_KEYS", 64)
    monkeypatch.setattr(classes, "_SAMPLE", 64)
    joined(SMALL, kind, **given)  # what a process sends once
    few, many = (joined(n, kind, **given) for n in (SMALL, LARGE))
    events, pairs = LARGE - SMALL, many.pairs - few.pairs
    assert pairs > 500 or kind == "long"
    assert (many.sent - few.sent) / events == sent
    assert many.fetched - few.fetched == events * fetched + pairs * of_pair
