"""The causality join on a GPU against that of the CPU: the same positions, counts, pairs and bits.

Runs where there is a GPU, or in the CUDA simulator (``NUMBA_ENABLE_CUDASIM=1``), in which
`test_gpu_simulator` runs it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coincide import (
    BackendError,
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Ellipsoidal,
    MemoryBudgetError,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    accidental_pair_tables,
    causality_tables,
)
from coincide.command_line import run as run_command
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.causality.template_rule import (
    deciding_rule,
    probability_within,
    with_templates,
)
from coincide.model.templates.template import Template, TemplateTable, template_table
from coincide.model.units import Tick
from cpu_fallback.causality import CausalityJoin as HostJoin
from tests.gpu_kernels.test_gpu_histograms import drawn_table
from tests.helpers.causality_cases import Case, has_heights, plane_cases, sides_of, sphere_cases
from tests.helpers.causality_tables import XY, answer
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from gpu_kernels import causality, join
from gpu_kernels.causality import CausalityJoin
from gpu_kernels.device import memory
from tests.helpers.device_faults import allocating
from tests.helpers.letting_go import check_nothing_is_kept

WAYS: Any = ("place", "grid", "time")


def model_of(case: Case) -> Any:
    try:
        condition = CausalityCondition(case.predicates, case.space)
        return condition.model(Tick(), heights=isinstance(case.space, Sphere) and has_heights(case))
    except ConditionError:
        assume(False)
        raise


def by_cause(columns: Any) -> list[tuple[int, ...]]:
    """Pairs with the bits of what is said of them; effects of one cause in any order."""
    return sorted(zip(*(each.view(np.int64).tolist() for each in columns), strict=False))


def check(
    sides: tuple[PlacedEvents, PlacedEvents | None],
    model: Any,
    ways: Any = WAYS,
    batch_pairs: int = 10**6,
) -> HostJoin:
    """Compare everything that both joins answer; returns the CPU's of the last way."""
    for way in ways:
        gpu, cpu = (kind(*sides, model, way=way) for kind in (CausalityJoin, HostJoin))
        assert gpu.way == cpu.way
        for name in ("left_order", "right_order", "counts"):
            assert getattr(gpu, name).tolist() == getattr(cpu, name).tolist()
        assert gpu.counters == cpu.counters
        values = cpu.left_order * 3 + 1, cpu.right_order * 7 - 5
        for run in cpu.chunks(batch_pairs):
            assert by_cause(gpu.pairs(*run, *values)) == by_cause(cpu.pairs(*run, *values))
            matches = gpu.matches(*run, values[1])
            assert sorted(matches.tolist()) == sorted(cpu.matches(*run, values[1]).tolist())
            found, expected = (j.measured_pairs(*run, *values) for j in (gpu, cpu))
            assert [each.size for each in found] == [each.size for each in expected]
            assert by_cause(found[: 3 + bool(found[3].size)]) == by_cause(
                expected[: 3 + bool(expected[3].size)]
            )
        rows = cpu.pairs(0, cpu.counts.size, cpu.left_order, cpu.right_order)
        for one, other in zip(gpu.measured(*rows), cpu.measured(*rows), strict=True):
            assert one.tobytes() == other.tobytes()
    return cpu


@settings(max_examples=25)
@given(plane_cases(), st.integers(1, 9))
def test_two_sides(case: Case, batch_pairs: int) -> None:
    check(sides_of(case), model_of(case), batch_pairs=batch_pairs)


@settings(max_examples=12)
@given(plane_cases())
def test_a_stream_with_itself(case: Case) -> None:
    check((sides_of(case)[0], None), model_of(case))


@settings(max_examples=12)
@given(sphere_cases())
def test_great_circles(case: Case) -> None:
    check(sides_of(case), model_of(case))


def test_parts_of_a_stream() -> None:
    rng = np.random.default_rng(3)
    times, points = rng.integers(0, 9, 40), rng.integers(0, 4, (3, 40)) / 2.0
    whole = PlacedEvents(times, points, ranks=np.arange(40))
    rows = np.flatnonzero(np.arange(40) % 3 == 1)
    part = PlacedEvents(times[rows], points[:, rows], ranks=rows)
    model = CausalityCondition([Temporal(0, 4), Spatial(1)]).model(Tick())
    assert check((part, whole), model).counters.pairs > 20


def some_sides(
    seed: int = 4, sizes: tuple[int, int] = (60, 70)
) -> tuple[PlacedEvents, PlacedEvents]:
    rng = np.random.default_rng(seed)
    causes, effects = (
        PlacedEvents(rng.integers(0, 300, n), rng.random((3, n)) * [[6], [5], [2]]) for n in sizes
    )
    return causes, effects


MODEL = CausalityCondition(
    [Spatial(2), SpeedRange(0.02, 0.3, 3, per=None), Ellipsoidal(3, 90)]
).model(Tick())


@pytest.mark.parametrize("uncertain", [(True, True), (True, False), (False, True)])
def test_intervals(uncertain: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(7)
    causes, effects = (
        replace(side, lengths=rng.integers(0, 60, len(side)) if is_uncertain else None)
        for side, is_uncertain in zip(some_sides(), uncertain, strict=True)
    )
    speeds = [Spatial(2), SpeedRange(0.02, 0.3, 3, per=None), Ellipsoidal(3, 90)]
    model = CausalityCondition(speeds, confidence=0.4).model(Tick())
    counters = check((causes, effects), model, ("place", "grid")).counters
    assert 0 < counters.pairs < counters.probed


def as_histograms(
    side: PlacedEvents, rng: np.random.Generator, table: TemplateTable
) -> PlacedEvents:
    return replace(side, lengths=rng.integers(0, table.lengths.size, len(side)), templates=table)


@pytest.mark.parametrize("confidence", [0.15, 0.6])
@pytest.mark.parametrize("kinds", ["hh", "hi", "ih"])
def test_histograms(kinds: str, confidence: float) -> None:
    """On either side, or on both; intervals that meet them are templates of one bucket."""
    rng = np.random.default_rng(9)
    sides = [
        as_histograms(side, rng, drawn_table(rng, 5))
        if kind == "h"
        else with_templates(replace(side, lengths=rng.choice([0, 8, 30], len(side))))
        for side, kind in zip(some_sides(sizes=(30, 35)), kinds, strict=True)
    ]
    speeds = [Spatial(2), SpeedRange(0.02, 0.3, 3, per=None), Ellipsoidal(3, 90)]
    model = CausalityCondition(speeds, confidence=confidence).model(Tick())
    counters = check((sides[0], sides[1]), model, ("place", "grid")).counters
    assert 0 < counters.pairs < counters.probed


TIED = template_table({
    "a": Template([-10, -6, -1, 0], [0.1, 0.2, 0.7]), "b": Template([-4, 0, 0], [0.6, 0.4]),
    "c": Template([-20, 0], [1.0]), "d": Template([-9, -3, 0], [0.3, 0.7]),
})  # fmt: skip


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
def test_histograms_whose_probability_is_the_confidence(share: float) -> None:
    """The sum over pairs of buckets decides them, in the same way on the device."""
    rng = np.random.default_rng(10)
    side = as_histograms(PlacedEvents(rng.integers(0, 150, 40)), rng, TIED)
    rule = deciding_rule(
        CausalityCondition([Temporal(0, 7)], confidence=0.5).model(Tick()), side, side
    )
    apart = np.subtract.outer(side.times, side.times).T
    found = sorted(
        probability_within(rule, 0.0, 0.0, apart[i, j], side.lengths[i], side.lengths[j])  # type: ignore[index]
        for i, j in np.ndindex(apart.shape)
    )
    some = [each for each in found if 0.01 < each < 0.99]
    confidence = some[int(share * len(some))]
    model = CausalityCondition([Temporal(0, 7)], confidence=confidence).model(Tick())
    pairs = check((side, side), model, ("time",)).counters.pairs
    assert pairs == sum(each >= confidence - 1e-15 for each in found) > 10


def test_histograms_of_tables_and_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    real = CausalityJoin.__init__
    monkeypatch.setattr(
        CausalityJoin, "__init__", lambda *a, **more: (made.append(1), real(*a, **more))[1]
    )
    rng, templates = np.random.default_rng(11), random_templates(3)
    for name, rows in (("causes.parquet", 40), ("effects.parquet", 50)):
        table = events(rows, rows, span=300)
        for axis in "xy":
            table = table.append_column(axis, pa.array(rng.integers(0, 9, rows).astype(float)))
        pq.write_table(table, tmp_path / name)
    pq.write_table(templates, tmp_path / "templates.parquet")
    sides = [pq.read_table(tmp_path / name) for name in ("causes.parquet", "effects.parquet")]
    condition = CausalityCondition([Temporal(0, 60), Spatial(4)], confidence=0.5)
    asked: Any = {"cause_time": by_device(templates), "effect_time": by_device(templates), **XY}
    wanted = causality_tables(*sides, condition, **asked, backend="cpu")
    assert wanted.num_rows > 20
    assert not made
    assert answer(causality_tables(*sides, condition, **asked, backend="gpu")) == answer(wanted)
    best = [
        causality_tables(*sides, condition, **asked, emit="best", probability=True, backend=backend)
        for backend in ("cpu", "gpu")
    ]
    assert answer(best[0]) == answer(best[1])
    assert len(made) == 2
    words = [
        *(
            "causality",
            str(tmp_path / "causes.parquet"),
            str(tmp_path / "effects.parquet"),
            "-o",
            str(tmp_path / "out"),
        ),
        *("--delta", "0", "60", "--radius", "4", "--confidence", "0.5", "--backend", "gpu"),
        *("--engine", "local", "--cause-place", "x,y", "--effect-place", "x,y"),
    ]
    for side in ("cause", "effect"):
        words += [f"--{side}-time", "seen_at", f"--{side}-template", "device"]
        words += [f"--{side}-templates", str(tmp_path / "templates.parquet")]
    assert run_command(words) == 0
    assert len(made) == 3
    assert answer(pq.read_table(tmp_path / "out")) == answer(wanted)


def test_heights() -> None:
    rng = np.random.default_rng(8)
    space = Sphere()
    sides = [
        PlacedEvents(
            rng.integers(0, 50, n),
            space.points([rng.uniform(-1, 1, n), rng.uniform(178, 182, n), rng.uniform(0, 300, n)]),
        )
        for n in (30, 40)
    ]
    model = CausalityCondition([Spatial(150), Temporal(-20, 30)], space).model(Tick(), heights=True)
    counters = check((sides[0], sides[1]), model, ("grid",)).counters
    assert 30 < counters.pairs < counters.probed


def test_blocks_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causality, "entries_of_block", lambda wanted: 30)
    for name, size in (("_PAIRS_AHEAD", 40), ("_PAIRS_AT_ONCE", 7)):
        monkeypatch.setattr(join, name, size)
    assert check(some_sides(), MODEL, ("grid",), 15).counters.pairs > 50


def test_causes_out_of_reach_take_one_block() -> None:
    """Though they have no entries, by which blocks are cut."""
    places = np.arange(60) % 3 * np.ones((3, 1))
    causes = PlacedEvents(np.arange(60), places)
    effects = PlacedEvents(np.arange(60), places + 100)
    join = CausalityJoin(causes, effects, MODEL, way="place")
    assert join._blocks(0, 60) == [(0, 60)]
    assert not join.counts.any()


def test_times_alone_are_not_tested() -> None:
    sides = [replace(side, points=None) for side in some_sides()]
    model = CausalityCondition(Temporal(-3, 9)).model(Tick())
    counters = check((sides[0], sides[1]), model, (None,)).counters
    assert counters.pairs > 100
    assert counters.probed == 0


@pytest.mark.parametrize("empty", [(0, 5), (5, 0), (0, 0)])
def test_empty_sides(empty: tuple[int, int]) -> None:
    sides = [
        PlacedEvents(side.times[:n], side.points[:, :n])  # type: ignore[index]
        for side, n in zip(some_sides(), empty, strict=True)
    ]
    assert check((sides[0], sides[1]), MODEL, (None, *WAYS)).counters.pairs == 0


def test_what_memory_does_not_hold_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = []

    def fails(number: int, size: int) -> bool:
        failed.append(size > 4000)
        return failed[-1]

    allocating(monkeypatch, fails)
    check(some_sides(), MODEL, ("grid",))
    assert any(failed)


def test_the_best_effects_and_what_chance_makes() -> None:
    """Chosen among the pairs that the device has found, in whatever order; counted there."""
    causes, effects = (
        pa.table({"id": np.arange(len(side)), "time": side.times, "x": side.points[0]})
        for side in some_sides()
    )
    condition = CausalityCondition([Temporal(0, 40), Spatial(0.5)])
    found, told = [], []
    for backend in ("cpu", "gpu"):
        asked: dict[str, Any] = {"cause_place": "x", "effect_place": "x", "backend": backend}
        best = causality_tables(causes, effects, condition, emit="best", **asked)
        found.append(best.sort_by("cause_id"))
        told.append(accidental_pair_tables(causes, effects, condition, shifts=(50, -60), **asked))
    assert found[0].equals(found[1])
    assert found[0].num_rows > 30
    assert told[0] == told[1]
    assert min(told[0].counts) > 10


def test_a_join_goes_on_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both backends lay events out alike: batches that were taken stay valid."""
    causes, effects = (
        pa.table({"id": np.arange(len(side)), "time": side.times, "x": side.points[0]})
        for side in some_sides()
    )
    condition = CausalityCondition([Temporal(0, 40), Spatial(0.5)])
    where = {"cause_place": "x", "effect_place": "x", "options": CorrelateOptions(batch_pairs=20)}

    def rows(backend: str) -> list[dict[str, Any]]:
        found = causality_tables(causes, effects, condition, backend=backend, **where)  # type: ignore[arg-type]
        return sorted(found.to_pylist(), key=lambda row: (row["cause_id"], row["effect_id"]))

    expected = rows("cpu")
    assert len(expected) > 60
    monkeypatch.setattr(join, "_PAIRS_AHEAD", 10)
    with monkeypatch.context() as patch:
        sizes = allocating(patch, lambda *_: False)
        assert rows("gpu") == expected
        total = len(sizes)
    assert not caplog.records
    for last in (0, total // 2, total - 2):
        caplog.clear()
        with monkeypatch.context() as patch:
            allocating(patch, lambda n, _, last=last: n > last)
            assert rows("gpu") == expected
        assert [record.message[:23] for record in caplog.records] == ["the CPU takes over: the"]


@pytest.mark.parametrize(
    ("asked", "is_one"),
    [
        ({}, True),
        ({"emit": "counts"}, False),
        ({"shifts": (90,)}, False),
        ({"emit": "best"}, True),
        ({"where": "distance < 0.3 and delta > 1", "how": "left"}, False),
        ({"where": "distance < 0.3 and delta > 1", "how": "left"}, True),
        ({"matching": "mutual", "prefer": "distance"}, False),
    ],
)
def test_a_join_lets_go_of_its_memory_at_its_end(
    asked: dict[str, Any], is_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = [
        pa.table({"id": np.arange(len(side)), "time": side.times, "x": side.points[0]})
        for side in some_sides(sizes=(20, 25))
    ]
    condition = CausalityCondition([Temporal(0, 40), Spatial(0.5)])
    given = sides[0], None if is_one else sides[1], condition

    operator: Any = accidental_pair_tables if "shifts" in asked else causality_tables

    def work() -> None:
        operator(*given, cause_place="x", backend="gpu", **asked)

    check_nothing_is_kept(monkeypatch, causality, "CausalityJoin", work)


def test_no_memory_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    join = CausalityJoin(*some_sides(), MODEL)
    allocating(monkeypatch, lambda *_: True)
    with pytest.raises(MemoryBudgetError, match="no memory for"):
        join.counts  # noqa: B018


def test_a_device_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class CUDADriverError(RuntimeError):
        pass

    def fail(*_: object) -> object:
        raise CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    join = CausalityJoin(*some_sides(), MODEL)
    monkeypatch.setattr(memory, "_allocate", fail)
    with pytest.raises(BackendError, match=r"GPU failed \(CUDADriverError: .*new process"):
        join.counts  # noqa: B018
