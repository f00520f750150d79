"""Counts of `run gpu-counted` against recorded ones. `test_virtual_gpu` counts."""

from __future__ import annotations

from typing import Any

from bench.gpu.counted import grown


def result(**values: float) -> dict[str, Any]:
    return {"figures": [{"name": n, "unit": "waits", "value": v} for n, v in values.items()]}


def test_what_grew_is_named_with_its_numbers() -> None:
    kept = result(pairs=26, counts=19, best=23)
    assert grown(kept, kept) == []
    assert grown(kept, result(pairs=28, counts=1, best=23)) == []
    assert grown(kept, result(pairs=29, counts=21, best=23)) == [
        "pairs: 29 waits, was 26", "counts: 21 waits, was 19"
    ]  # fmt: skip


def test_a_count_that_is_not_recorded_has_grown_from_none() -> None:
    assert grown(result(pairs=26), result(pairs=26, lists=9)) == ["lists: 9 waits, was 0"]
    waits = {"figures": [{"name": "pairs", "unit": "launches", "value": 1}]}
    assert grown(result(pairs=26), waits) == ["pairs: 1 launches, was 0"]
