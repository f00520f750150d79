"""`CorrelateOptions.devices`: what takes all GPUs of a process, and what says why it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Temporal,
    causality_tables,
    clock_error_tables,
    clusters,
    correlate_arrays,
    correlate_tables,
    coverage,
    delay_histogram,
    explore_tables,
    stream_tables,
)
from coincide.engine.join import timing
from tests.helpers.workplace import Workplace

ALL = CorrelateOptions(devices="all")
EVENTS = pa.table({"id": [0, 1], "t": [0, 5], "start": [0, 5], "end": [1, 6]})
AT: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": (0, 5)}
NEAR = CausalityCondition(Temporal(0, 5))
NO_GPU = r"options=CorrelateOptions\(devices='all'\) needs a GPU \(found backend='{}'\)\. Use"
NOT_HERE = (
    r"devices='all'\) deals a join in time over the GPUs of one process, and .*\. Remove it\."
)


def test_a_word_that_is_none() -> None:
    with pytest.raises(ConditionError, match="devices must be one of one, all"):
        CorrelateOptions(devices="two")  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["auto", "cpu"])
def test_a_backend_that_may_be_no_gpu(backend: Any) -> None:
    for operator in (correlate_tables, explore_tables):
        with pytest.raises(ConditionError, match=NO_GPU.format(backend)):
            operator(EVENTS, EVENTS, **AT, backend=backend, options=ALL)  # type: ignore[operator]
    with pytest.raises(ConditionError, match=NO_GPU.format(backend)):
        correlate_arrays(np.arange(3), np.arange(3), within=(0, 5), backend=backend, options=ALL)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: causality_tables(EVENTS, EVENTS, NEAR, cause_time="t", backend="gpu", options=ALL),
        lambda: clusters(EVENTS, NEAR, time="t", options=ALL),
        lambda: clock_error_tables(EVENTS, EVENTS, max_offset=5, options=ALL, left_time="t"),
        lambda: coverage(EVENTS, options=ALL),
        lambda: delay_histogram(EVENTS, EVENTS, **AT, options=ALL),
        lambda: stream_tables(
            **AT, left_delay=5, left_schema=EVENTS.schema, backend="gpu", options=ALL
        ),
    ],
    ids=["causality", "clusters", "clocks", "coverage", "histogram", "stream"],
)
def test_what_is_made_on_one_device_at_most(ask: Any) -> None:
    with pytest.raises(ConditionError, match=NOT_HERE):
        ask()


def test_only_a_gpu_deals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU that takes over has one join, as always."""
    made = {
        "gpu_kernels": SimpleNamespace(EventJoin="one"),
        "gpu_kernels.dealt": SimpleNamespace(DealtJoin="dealt"),
        "cpu_fallback": SimpleNamespace(EventJoin="cpu"),
    }
    monkeypatch.setattr(timing, "import_module", made.__getitem__)
    asked = [
        (package, is_dealt) for package in ("gpu_kernels", "cpu_fallback") for is_dealt in (0, 1)
    ]
    found: list[Any] = [timing.event_join(package, bool(is_dealt)) for package, is_dealt in asked]
    assert found == ["one", "dealt", "cpu", "cpu"]


def test_on_the_command_line(work: Workplace) -> None:
    table = pa.table({"id": [0, 1], "t": [0, 5]})
    work.left, work.right = work.write("l.parquet", table), work.write("r.parquet", table)
    words = "--left-time", "t", "--right-time", "t", "--within", "0", "5", "--devices", "all"
    told = work.refused(*words)
    assert "--devices all needs a GPU (found --backend auto). Use --backend gpu" in told
    of_gpu = (*words, "--backend", "gpu")
    assert "a task of Spark has one. Use --engine local" in work.refused(*of_gpu, engine="spark")
    told = work.refused(*of_gpu, "--master", "local", engine="auto")
    assert "a task of Spark has one. Use --engine local" in told
    assert "devices must be one of one, all" in work.refused(*words[:-1], "two").replace("--", "")
