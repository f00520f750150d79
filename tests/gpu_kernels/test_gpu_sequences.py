"""Sequences and coincidences that a GPU makes: the same as the CPU's, to the bit.

Runs where there is a GPU, on the virtual GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``).
"""

from __future__ import annotations

import random
from collections.abc import Callable
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
from coincide.model.templates.template import Template, TemplateTable, template_table
from tests.helpers.sequence_cases import Case, drawn_case
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

import cpu_fallback
import gpu_kernels
from tests.helpers.device_faults import allocating

BACKENDS = cpu_fallback.TupleMaker, gpu_kernels.TupleMaker


def answer(ask: Any, backend: str, **asked: Any) -> tuple[Any, ...]:
    """Sorted rows, links of pairs, and how many tuples were made, doubted and found."""
    report = SequenceReport()
    table: pa.Table = ask(backend=backend, report=report, **asked)
    rows = sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))
    summary = report.summary()
    return rows, summary.links, summary.tried, summary.doubted, summary.found


def asked_of_sequences(rng: random.Random) -> dict[str, Any]:
    case = drawn_case(rng, most_rows=9)
    more: dict[str, Any] = {}
    if len(case.names) == 3 and rng.random() < 0.5:
        least, most = (sum(each) for each in zip(*case.windows, strict=True))
        lo = rng.randint(least, most)
        more["total"] = lo, rng.randint(lo, most + 2)
    return {
        **asked_of(rng, case), "tables": case.tables, "windows": case.windows,
        "link_probability": rng.random() < 0.5, **more,
    }  # fmt: skip


def asked_of_coincidences(rng: random.Random) -> dict[str, Any]:
    case = drawn_case(rng, most_rows=7, is_apart=True)
    return {
        **asked_of(rng, case), "tables": case.tables, "within": rng.randint(0, 4),
        "at_least": rng.randint(2, len(case.names)),
    }  # fmt: skip


def asked_of(rng: random.Random, case: Case) -> dict[str, Any]:
    where = f"{case.names[0]}_id <= {case.names[-1]}_id OR {case.names[1]}_id > 20"
    return {
        "confidence": rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), "names": case.names,
        "time": case.times, "by": case.by, "probability": rng.random() < 0.7,
        "where": where if rng.random() < 0.3 else None,
        "options": CorrelateOptions(
            threads=rng.choice([1, 3]), batch_pairs=rng.choice([None, 7])
        ),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize(
    ("ask", "draw"),
    [(sequence_tables, asked_of_sequences), (coincidence_tables, asked_of_coincidences)],
)
def test_answers(ask: Any, draw: Callable[[random.Random], dict[str, Any]]) -> None:
    rng, sums = random.Random(17), np.zeros(4, np.int64)
    for _ in range(60):
        asked = draw(rng)
        if rng.random() < 0.5:  # floats cannot decide one of the tuples
            low = ask(**{**asked, "confidence": 0.1, "probability": True})["probability"]
            asked["confidence"] = rng.choice(low.to_pylist() or [0.5])
        cpu = answer(ask, "cpu", **asked)
        _, _, tried, doubted, found = cpu
        if tried:
            assert answer(ask, "gpu", **asked) == cpu
            sums += tried, doubted, found, found * (asked["where"] is not None)
    assert sums.min() > 0


@pytest.mark.parametrize("emit", ["sequences", "counts", "best"])
@pytest.mark.parametrize("length", [0, 90])
def test_more_tuples_than_one_tile(emit: Any, length: int) -> None:
    rng = np.random.default_rng(3)
    streams = []
    for _ in range(3):
        times = rng.integers(0, 6_000, 300)
        streams.append({"min_time": times, "max_time": times + length})
    asked: dict[str, Any] = {
        "tables": streams, "windows": [(0, 150), (-20, 160)], "confidence": 0.6, "emit": emit,
        "probability": emit == "sequences",
    }  # fmt: skip
    cpu = answer(sequence_tables, "cpu", **asked)
    assert answer(sequence_tables, "gpu", **asked) == cpu
    assert cpu[2] > 2_500


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
    laws = rng.integers(0, len(table), N)
    return StreamEvents(last - rng.integers(0, 9, N), last, np.arange(N), laws)


def drawn_laws(rng: np.random.Generator) -> TemplateTable:
    """Laws of one bucket and of several, one of them at one time, one without mass."""
    found = {"exact": Template([0, 0], [1.0]), "gap": Template([-9, -5, -2, 0], [0.5, 0.0, 0.5])}
    for name in range(3):
        edges = np.sort(rng.integers(-30, 0, rng.integers(2, 5))).tolist()
        masses = rng.dirichlet(np.ones(len(edges) - 1)).tolist()
        found[str(name)] = Template(edges, masses)
    return template_table(found)


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize(
    ("kind", "n"),
    [(None, 3), (CHAIN, 3), (CHAIN, 4), (CHAIN, 5), (TRIANGLE, 3), (GATHERING, 3), (GATHERING, 5)],
)
def test_makers(kind: int | None, n: int, wants: bool) -> None:
    rng = np.random.default_rng(11)
    table, tells = drawn_laws(rng), not wants
    events, streams = [drawn_events(rng, table) for _ in range(n)], tuple(range(n))
    links = [drawn_links(rng, N, N, are_exact=kind is None) for _ in range(n - 1)]
    demands = Demands((0, 1, 2), ((0, -40, 44),), (1,))
    steps = [Step(links[0], 0), Step(links[1], 0, demands)]
    steps += [Step(each, k) for k, each in enumerate(links[2:], 2)]
    decision: Any = Demands((0, 1, 2), ((1, -9, 30),))
    if kind is not None:
        windows = {GATHERING: 1, CHAIN: n - 1, TRIANGLE: 3}[kind]
        whole = Whole(kind, np.full(windows, -40), np.full(windows, 45))
        edges = np.full(n, 4)
        # What links tell must not decide, but a formula.
        decision = Decision(
            whole, streams, edges, 0.5, doubt(kind, edges), wants, kind != GATHERING, tells
        )
    part = Tuples.begun(rng.permutation(N))
    cpu, gpu = (each(events, table.buckets) for each in BACKENDS)
    expected = made(cpu, part, steps, decision, tells=tells)
    assert made(gpu, part, steps, decision, tells=tells) == expected
    tried, rows, *_ = expected
    assert 0 < len(rows[1][0]) < tried
    grown = cpu.make(part, steps, None)
    assert grown.tuples.size == tried
    again = grown.tuples, [], decision
    assert made(gpu, *again, tells=tells) == made(cpu, *again, tells=tells)
    none = Tuples.begun(np.empty(0, np.int64)), steps, decision
    assert made(gpu, *none, tells=tells) == made(cpu, *none, tells=tells)


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
