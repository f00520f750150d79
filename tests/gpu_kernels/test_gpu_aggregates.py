"""Aggregates on a GPU, by ranges and candidates: the CPU's bits, and no pair is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import CorrelateOptions, correlate_tables, overlapping, spans
from tests.helpers.simulator import gpu_problem

if problem := gpu_problem():
    pytest.skip(problem, allow_module_level=True)

from gpu_kernels import join
from tests.helpers.device_faults import allocating

ASKED: dict[str, Any] = {
    "n": "count", "there": ("a", "count"), "sum": ("a", "sum"), "mean": ("a", "mean"), "std": ("b", "std"),
    "whole": ("b", "sum"), "low": ("a", "min"), "high": ("b", "max"), "early": ("s", "first"),
    "late": ("s", "last"), "word": ("s", "max"), "soonest": ("delta", "min"), "any": ("f", "any"),
}  # fmt: skip


def drawn(seed: int, n: int, decades: int = 8) -> pa.Table:
    """Events of three keys, with floats of many sizes, NaN, infinities and nulls."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 5 * n + 1, n)
    floats = rng.normal(size=n) * 10.0 ** rng.integers(-decades, decades, n)
    floats[rng.random(n) < 0.03] = rng.choice([np.nan, np.inf, -np.inf])
    return pa.table({
        "id": np.arange(n), "min_time": low, "max_time": low + rng.choice([0, 3, 30], n),
        "key": rng.integers(0, 3, n), "a": pa.array(floats, mask=rng.random(n) < 0.2),
        "b": rng.integers(-(2**50), 2**50, n), "s": rng.integers(0, 40, n).astype(str),
        "f": pa.array(rng.random(n) < 0.1),
    })  # fmt: skip


def check(left: pa.Table, right: pa.Table, **given: Any) -> pa.Table:
    given = {
        "condition": None, "within": (-20, 45), "confidence": 0.7, "how": "left", "aggregates": ASKED,
        **given,
    }  # fmt: skip
    gpu, cpu = (
        correlate_tables(left, right, emit="aggregates", backend=backend, **given)  # type: ignore[arg-type]
        for backend in ("gpu", "cpu")
    )
    for name in cpu.column_names:
        assert bits_of(gpu[name]) == bits_of(cpu[name]), name
    return cpu


def bits_of(column: pa.ChunkedArray) -> list[Any]:
    """Values, of floats their bits, which tell apart what counts as equal."""
    if not pa.types.is_floating(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    return [None if value is None else np.float64(value).tobytes() for value in column.to_pylist()]


def no_pairs(*_: Any) -> Any:
    raise AssertionError("a pair was made")


@pytest.mark.parametrize("by", [(), ("key",)], ids=["no key", "key"])
@pytest.mark.parametrize("classes", [None, 1, 3])
def test_aggregates_have_the_cpus_bits(
    by: tuple[str, ...], classes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join.Block, "fill", no_pairs)
    options = CorrelateOptions(classes=classes)
    found = check(drawn(1, 150), drawn(2, 190), by=by, options=options)
    counts = found["n"].to_numpy()
    assert counts.sum() > 300
    assert (counts == 0).any() or not by


def test_floats_of_all_sizes_are_added_up_pair_by_pair() -> None:
    check(drawn(1, 90, 300), drawn(2, 90, 300))


def test_wide_inner_ranges_are_looked_up_in_tables() -> None:
    found = check(drawn(3, 60), drawn(4, 400), within=(-900, 900))
    assert int(np.max(found["n"].to_numpy())) > 200


@pytest.mark.parametrize("sizes", [(0, 0), (0, 9), (9, 0), (1, 1)])
def test_few_events(sizes: tuple[int, int]) -> None:
    check(*(drawn(k, n) for k, n in enumerate(sizes)))


def test_counts_and_sums_alone() -> None:
    left, right = drawn(1, 80), drawn(2, 80)
    for name in ("n", "sum", "low", "late"):
        check(left, right, aggregates={name: ASKED[name]})


def test_small_blocks_and_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = drawn(5, 120), drawn(6, 150)
    monkeypatch.setattr(join, "entries_of_block", lambda _: 23)
    check(left, right, by="key", options=CorrelateOptions(threads=2))
    sizes = allocating(monkeypatch, lambda _, size: size > 900)
    check(left, right, by="key")
    assert max(sizes) > 900


def test_spans_that_a_cpu_scans_are_aggregated_by_pairs() -> None:
    left, right = drawn(1, 80), drawn(2, 90)
    lasts = spans("min_time", "max_time")
    asked = {name: each for name, each in ASKED.items() if name != "soonest"}
    given: dict[str, Any] = {"left_time": lasts, "right_time": lasts, "aggregates": asked}
    found = check(left, right, condition=overlapping(), within=None, confidence=None, **given)
    assert int(found["n"].to_numpy().sum()) > 50
