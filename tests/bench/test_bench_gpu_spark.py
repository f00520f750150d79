"""How `bench run gpu-spark` compares jobs. `test_virtual_gpu_programs` runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.experiment import Bench, CheckFailedError
from bench.experiments.gpu_spark import Case, _contest, digest
from bench.gpu.workers import Launch, launched
from bench.report import Report


def rows(**more: Any) -> pa.Table:
    given = {"left_id": [2, 1], "right_id": [5, 6], "probability": [0.5, 0.25], "total": [0, None]}
    return pa.table({**given, **more})


def test_the_digest_is_of_rows_in_any_order() -> None:
    turned = rows().take([1, 0])
    assert digest(turned) == digest(rows())
    assert digest(pa.concat_tables([turned[:1], turned[1:]])) == digest(rows())


@pytest.mark.parametrize(
    "other",
    [
        {"probability": [np.nextafter(0.5, 1), 0.25]},
        {"total": [0, 0]},
        {"total": [-0.0, None]},
        {"left_id": [1, 2]},
    ],
    ids=str,
)
def test_the_digest_sees_each_bit_and_each_null(other: dict[str, Any]) -> None:
    plain = rows(total=[0.0, None]) if other.get("total") == [-0.0, None] else rows()
    assert digest(rows(**other)) != digest(plain)


class Frame:
    """A job's rows; its worker launches kernels while they are computed."""

    def __init__(self, told: Path, kernels: int, found: pa.Table) -> None:
        self.told, self.kernels, self.found = told, kernels, found

    def toArrow(self) -> pa.Table:
        with (self.told / "7").open("a") as file:
            file.write("place\n" * self.kernels)
        return self.found


def contest(told: Path, kernels: dict[str, int], found: pa.Table) -> None:
    given = {"gpu": found, "cpu": rows()}
    case = Case("a join", lambda backend: Frame(told, kernels[backend], given[backend]))  # type: ignore[arg-type, return-value]
    _contest(Bench(Report("gpu-spark", quick=True)), case, told)


def test_a_job_of_the_gpu_without_a_launch_fails(tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match=r"launch kernels differ.*'seen': \[\]"):
        contest(tmp_path, {"gpu": 0, "cpu": 0}, rows())
    assert launched(tmp_path) == {}


def test_a_job_of_the_cpu_with_a_launch_fails(tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match=r"launch kernels differ.*'seen': \['GPU', 'CPU'\]"):
        contest(tmp_path, {"gpu": 2, "cpu": 1}, rows())
    assert launched(tmp_path) == {Launch(7, "place"): 3}


def test_other_rows_fail(tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match="a join: rows differ"):
        contest(tmp_path, {"gpu": 2, "cpu": 0}, rows(left_id=[1, 2]))
