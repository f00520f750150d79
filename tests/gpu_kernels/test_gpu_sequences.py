"""Sequences and coincidences that a GPU makes: the same as the CPU's, to the bit.

Runs where there is a GPU, on the virtual GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import CorrelateOptions, SequenceReport, coincidence_tables, sequence_tables
from coincide.engine.sequences import job
from coincide.model.sequences.making import (
    Decision,
    Demands,
    Links,
    Made,
    Step,
    StreamEvents,
    Tuples,
)
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE, Whole, doubt
from coincide.model.templates.template import TemplateTable
from tests.helpers.sequence_cases import drawn_case
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import cpu_fallback
import gpu_kernels
from tests.helpers.device_faults import allocating

BACKENDS = cpu_fallback.TupleMaker, gpu_kernels.TupleMaker


def answers(ask: Any, **asked: Any) -> list[tuple[list[str], tuple[Any, ...]]]:
    """The sorted rows of both backends, with what their reports say but for the time."""
    found = []
    for backend in ("cpu", "gpu"):
        report = SequenceReport()
        table: pa.Table = ask(backend=backend, report=report, **asked)
        rows = sorted(
            map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True))
        )
        summary = report.summary()
        found.append((rows, (summary.links, summary.tried, summary.doubted, summary.found)))
    return found


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(14))
def test_sequences(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng, most_rows=9)
    more: dict[str, Any] = {}
    if len(case.names) == 3 and rng.random() < 0.5:
        more["total"] = (rng.randint(-4, 0), rng.randint(2, 6))
    if rng.random() < 0.3:
        more["where"] = f"{case.names[0]}_id <= {case.names[-1]}_id"
    options = CorrelateOptions(threads=rng.choice([1, 3]), batch_pairs=rng.choice([None, 7]))
    cpu, gpu = answers(
        sequence_tables, tables=case.tables, windows=case.windows,
        confidence=rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), names=case.names, time=case.times,
        by=case.by, probability=rng.random() < 0.7, link_probability=rng.random() < 0.5,
        options=options, **more,
    )  # fmt: skip
    assert gpu == cpu


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(100, 114))
def test_coincidences(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng, most_rows=7, is_apart=True)
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        more["where"] = f"{case.names[0]}_id <= {case.names[-1]}_id OR {case.names[1]}_id > 20"
    options = CorrelateOptions(threads=rng.choice([1, 3]), batch_pairs=rng.choice([None, 7]))
    cpu, gpu = answers(
        coincidence_tables, tables=case.tables, within=rng.randint(0, 4),
        confidence=rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), names=case.names, time=case.times,
        by=case.by, at_least=rng.randint(2, len(case.names)), probability=rng.random() < 0.7,
        options=options, **more,
    )  # fmt: skip
    assert gpu == cpu


@pytest.mark.parametrize("emit", ["sequences", "counts", "best"])
@pytest.mark.parametrize("length", [0, 90])
def test_more_tuples_than_one_tile(emit: Any, length: int) -> None:
    rng = np.random.default_rng(3)
    streams = []
    for _ in range(3):
        times = rng.integers(0, 6_000, 300)
        streams.append({"min_time": times, "max_time": times + length})
    cpu, gpu = answers(
        sequence_tables, tables=streams, windows=[(0, 150), (-20, 160)], confidence=0.6, emit=emit,
        probability=emit == "sequences",
    )  # fmt: skip
    assert gpu == cpu
    assert cpu[1][1] > 2_500


def made(maker: Any, *given: Any, tells: bool) -> list[Any]:
    """What a maker makes, in lists, with the bits of its floats."""
    found: Made = maker.make(*given, tells=tells)
    arrays = [found.tuples.rows, found.tuples.chances, found.parents, found.verdicts]
    arrays.append(found.probability)
    bits = [each if each is None else each.astype(each.dtype, copy=True) for each in arrays]
    return [
        found.tried,
        *(
            each if each is None else (each.shape, each.view(f"i{each.itemsize}").tolist())
            for each in bits
        ),
    ]


def drawn_links(rng: np.random.Generator, left: int, right: int, *, are_exact: bool) -> Links:
    counts = rng.integers(0, 5, left)
    ends = np.cumsum(counts)
    size = int(ends[-1])
    chances = None if are_exact else rng.choice([1.0, 0.9, 0.75], size)
    order = rng.permutation(left)
    return Links(order, ends - counts, ends, rng.integers(0, right, size), chances)


N = 40


def drawn_events(rng: np.random.Generator, table: TemplateTable) -> StreamEvents:
    last = rng.integers(0, 60, N)
    return StreamEvents(
        last - rng.integers(0, 9, N), last, np.arange(N), rng.integers(0, len(table), N)
    )


@pytest.mark.parametrize("tells", [False, True])
@pytest.mark.parametrize("kind", [CHAIN, TRIANGLE, GATHERING, None])
def test_makers(kind: int | None, tells: bool) -> None:
    rng = np.random.default_rng(11)
    table = TemplateTable.of_lengths(np.array([0, 3, 8, 21]))
    events = [drawn_events(rng, table) for _ in range(3)]
    links = [drawn_links(rng, N, N, are_exact=kind is None) for _ in range(2)]
    demands = Demands((0, 1, 2), ((0, -40, 44),), (1,))
    steps = [Step(links[0], 0), Step(links[1], 0, demands)]
    decision: Any = Demands((0, 1, 2), ((1, -9, 30),))
    if kind is not None:
        windows = 1 if kind == GATHERING else 2 if kind == CHAIN else 3
        whole = Whole(kind, np.full(windows, -30), np.full(windows, 25))
        edges = np.full(3, 2)
        decision = Decision(
            whole, (0, 1, 2), edges, 0.5, doubt(kind, edges), True, kind != GATHERING, tells
        )
    part = Tuples.begun(rng.permutation(N))
    cpu, gpu = (each(events, table.buckets) for each in BACKENDS)
    whole_of_cpu = made(cpu, part, steps, decision, tells=tells)
    assert made(gpu, part, steps, decision, tells=tells) == whole_of_cpu
    assert 0 < len(whole_of_cpu[1][1][0]) < whole_of_cpu[0]
    grown = cpu.make(part, steps, None)
    assert made(gpu, grown.tuples, [], decision, tells=tells) == made(
        cpu, grown.tuples, [], decision, tells=tells
    )
    none = Tuples.begun(np.empty(0, np.int64))
    assert made(gpu, none, steps, decision, tells=tells) == made(
        cpu, none, steps, decision, tells=tells
    )


def test_full_memory_is_split_and_then_left_to_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(12)
    table = TemplateTable.of_lengths(np.array([0, 3, 8, 21]))
    events = [drawn_events(rng, table) for _ in range(2)]
    step = Step(drawn_links(rng, N, N, are_exact=False), 0)
    edges, windows = np.full(2, 2), np.full(1, -30)
    whole = Whole(CHAIN, windows, -windows)
    decision = Decision(whole, (0, 1), edges, 0.5, doubt(CHAIN, edges), True, True, True)
    part = Tuples.begun(np.arange(N))
    cpu, gpu = (each(events, table.buckets) for each in BACKENDS)
    expected = made(cpu, part, [step], decision, tells=True)
    with monkeypatch.context() as patch:
        sizes = allocating(patch, lambda number, _: number == 4)
        assert made(gpu, part, [step], decision, tells=True) == expected
    assert len(sizes) > 8
    maker = job.maker_of("gpu", events, table.buckets)
    with monkeypatch.context() as patch:
        allocating(patch, lambda _, size: size > 0)
        assert made(maker, part, [step], decision, tells=True) == expected
    assert "the CPU takes over" in caplog.text
