"""Which GPU a task uses: from what Spark gave it and what CUDA sees."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from coincide import BackendError
from coincide.engine import backends as devices
from coincide.engine.backends import device_number, load_task_backend, release_gpu, task_addresses
from tests.helpers.places import ROOT


@pytest.mark.parametrize(
    ("addresses", "visible", "number"),
    [
        ([], None, 0),
        ([], "2,3", 0),
        (["0"], None, 0),
        (["3"], None, 3),
        (["1", "2"], None, 1),
        (["3"], "3", 0),
        (["3"], "1,3", 1),
        ([" 3 "], "1, 3 ", 1),
        (["GPU-8f2a"], "GPU-11c0,GPU-8f2a", 1),
        (["0"], "MIG-9d3b", 0),
    ],
)
def test_device_of_a_task(addresses: list[str], visible: str | None, number: int) -> None:
    assert device_number(addresses, visible) == number


@pytest.mark.parametrize(
    ("addresses", "visible", "message"),
    [
        (["1"], "0", r"the GPU 1, but CUDA_VISIBLE_DEVICES='0' hides it"),
        (["0"], "", r"the GPU 0, but CUDA_VISIBLE_DEVICES='' hides it"),
        (["0"], "GPU-8f2a,GPU-11c0", "hides it"),
        (["GPU-8f2a"], None, "found 'GPU-8f2a'"),
        (["-1"], None, "Spark's discovery script must print the GPU numbers of"),
    ],
)
def test_a_gpu_that_cuda_does_not_see(
    addresses: list[str], visible: str | None, message: str
) -> None:
    with pytest.raises(BackendError, match=message):
        device_number(addresses, visible)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """GPU kernels that run nowhere; the list takes the devices that they get."""
    told: list[int] = []
    package, device = ModuleType("gpu_kernels"), ModuleType("gpu_kernels.device.usable")
    device.use_device = told.append
    monkeypatch.setitem(sys.modules, "gpu_kernels", package)
    monkeypatch.setitem(sys.modules, "gpu_kernels.device.usable", device)
    monkeypatch.setattr(devices, "load_backend", lambda name: package)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return told


def in_task(monkeypatch: pytest.MonkeyPatch, **resources: list[str]) -> None:
    found = {name: SimpleNamespace(addresses=given) for name, given in resources.items()}
    context = SimpleNamespace(resources=lambda: found)
    module = SimpleNamespace(TaskContext=SimpleNamespace(get=lambda: context))
    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", module)


def test_the_gpu_backend_is_told_its_device(kernels, monkeypatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    in_task(monkeypatch, gpu=["2"], fpga=["f1"])
    assert load_task_backend("gpu").__name__ == "gpu_kernels"
    assert kernels == [2]
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,2")
    load_task_backend("auto")
    assert kernels == [2, 1]


def test_an_order_of_devices_that_was_chosen_stays(kernels, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    load_task_backend("gpu")
    assert os.environ["CUDA_DEVICE_ORDER"] == "FASTEST_FIRST"


def test_memory_is_given_back_where_there_is_a_gpu(kernels, monkeypatch) -> None:
    device, released = sys.modules["gpu_kernels.device.usable"], []
    device.release = lambda: released.append(True)
    for problem, expected in (("no driver", []), (None, [True])):
        device.problem = lambda problem=problem: problem
        release_gpu()
        assert released == expected
    monkeypatch.delitem(sys.modules, "gpu_kernels.device.usable")
    release_gpu()
    assert released == [True]


def test_the_cpu_backend_needs_no_device(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    in_task(monkeypatch, gpu=["1"])
    assert load_task_backend("cpu").__name__ == "cpu_fallback"


def test_addresses_outside_a_task(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark.taskcontext", raising=False)
    assert task_addresses() == ()
    in_task(monkeypatch, fpga=["f1"])
    assert task_addresses() == ()


def test_loading_the_task_touches_no_gpu() -> None:
    """Workers are forked from a process that has unpickled none, but may have imported us."""
    code = (
        "import sys; import spark_plugin.tasks.exchange, coincide.engine.backends;"
        " print([name for name in ('cupy', 'numba.cuda', 'gpu_kernels') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert answer.stdout.strip() == "[]"
