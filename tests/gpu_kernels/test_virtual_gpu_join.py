"""Some joins on the virtual GPU, for every day: `test_virtual_gpu` runs all that can run there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("the simulator compiles nothing", allow_module_level=True)
if "VIRTUAL_GPU_LOG" in os.environ:
    pytest.skip("this is the virtual GPU", allow_module_level=True)
if shutil.which("gcc") is None:
    pytest.skip("the virtual GPU needs gcc", allow_module_level=True)

from tests.helpers.pytest_processes import all_passed
from tests.helpers.virtual_runs import ran

JOINS = "tests/gpu_kernels/test_gpu_join.py"
SOME = "test_empty_sides or test_narrow_window or test_nobody_has_a_group"


def test_joins_have_the_answers_of_the_cpu(tmp_path: Path) -> None:
    run = ran(tmp_path, JOINS, "-k", SOME)
    all_passed(run.done, JOINS, 5)
    assert run.log.faults == []
    assert "join.place" in run.log.launched
