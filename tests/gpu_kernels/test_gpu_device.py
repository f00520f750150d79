"""Is a GPU usable: what is said where none is, and which backend is then taken."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import cpu_fallback
from coincide import BackendError, ConditionError
from coincide.engine import backends
from coincide.engine.backends import check_backend, load_backend
from gpu_kernels.device import driver, packages, transfers, turn
from gpu_kernels.device import usable as device
from gpu_kernels.device.packages import let_cupy_cache
from gpu_kernels.kernels.simulation import SIMULATED

if SIMULATED:
    pytest.skip("in the simulator there is always a GPU", allow_module_level=True)


MISSING = packages.problem


class FakeDriver:
    """A CUDA driver: its answers, by way of the pointers that it is given."""

    def __init__(
        self,
        version: int = 13000,
        count: int = 1,
        capability: tuple[int, int] = (9, 0),
        failure: int = 0,
    ) -> None:
        self._version, self._count, self._capability = version, count, capability
        self._failure = failure

    def cuInit(self, _flags: int) -> int:
        return self._failure

    def cuDeviceGetCount(self, count: Any) -> int:
        return self._put(count, self._count)

    def cuDriverGetVersion(self, version: Any) -> int:
        return self._put(version, self._version)

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        return self._put(device, ordinal)

    def cuDeviceGetAttribute(self, value: Any, attribute: int, _device: Any) -> int:
        return self._put(value, self._capability[attribute - 75])

    def _put(self, pointer: Any, value: int) -> int:
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int))[0] = value
        return 0


class Devices:
    """The current device of each thread, as the runtime has it: 0 for a new one."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self.selections = self.turns = 0

    def selected(self) -> int:
        return getattr(self._of_thread, "number", 0)

    @contextmanager
    def default_stream(self) -> Iterator[None]:
        self.turns += 1
        yield
        self.turns -= 1

    def select(self, number: int) -> None:
        self.selections += 1
        self._of_thread.number = number


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Devices:
    """A machine of several GPUs, where number 2 was chosen."""
    made = Devices()
    monkeypatch.setattr(turn, "_selected", made.selected)
    monkeypatch.setattr(turn, "select", made.select)
    monkeypatch.setattr(turn, "_default_stream", made.default_stream)
    monkeypatch.setattr(turn, "_chosen", 2)
    return made


@pytest.fixture
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with the packages, in which no call has asked for a GPU yet."""
    monkeypatch.setattr(packages, "problem", lambda: None)
    monkeypatch.setattr(driver, "compiler_version", lambda: (13, 0))
    device._problem.cache_clear()
    yield
    device._problem.cache_clear()


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, r"there is no NVIDIA driver \(libcuda.so.1\)"),
        (FakeDriver(failure=100), "the driver shows no GPU"),
        (FakeDriver(count=0), "shows no GPU"),
        (FakeDriver(failure=803), "fails with CUDA error 803"),
        (
            FakeDriver(12080),
            "the NVIDIA driver supports CUDA 12.8, but the installed compiler makes code for 13.0",
        ),
        (FakeDriver(capability=(7, 0)), "capability 7.0, and the least supported is 7.5"),
    ],
)
@pytest.mark.usefixtures("_asked_anew")
def test_no_usable_gpu(found: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "load", lambda: found)
    with pytest.raises(BackendError, match=rf"backend='gpu' is not possible: .*{says}"):
        load_backend("gpu")
    assert load_backend("auto") is load_backend("cpu") is cpu_fallback


@pytest.mark.parametrize(("found", "level"), [(None, "DEBUG"), (FakeDriver(count=0), "WARNING")])
@pytest.mark.usefixtures("_asked_anew")
def test_auto_says_why_a_gpu_is_not_used(
    found: Any, level: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and loudly only where there is a driver, so that somebody may count on the GPU."""
    monkeypatch.setattr(driver, "load", lambda: found)
    backends._say_once.cache_clear()
    caplog.set_level("DEBUG", "coincide.engine.backends")
    for _ in range(3):
        assert load_backend("auto") is cpu_fallback
    (record,) = caplog.records
    assert record.levelname == level
    assert "on the CPU: " in record.getMessage()


@pytest.mark.usefixtures("_asked_anew")
def test_compiler_newer_than_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "compiler_version", lambda: (13, 4))
    assert "Install cuda-toolkit==13.0.* or a newer driver" in driver.problem(FakeDriver())
    assert driver.problem(FakeDriver(13040)) is None


def test_compiler_version_is_that_of_the_extra() -> None:
    assert driver.compiler_version() == (13, 0)


@pytest.mark.usefixtures("_asked_anew")
def test_first_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION")

    monkeypatch.setattr(driver, "load", FakeDriver)
    monkeypatch.setattr(device, "select", lambda number: None)
    monkeypatch.setattr("gpu_kernels.join.event_probabilities", fail)
    with pytest.raises(BackendError, match=r"a first kernel failed .*UNSUPPORTED_PTX_VERSION"):
        load_backend("gpu")


@pytest.mark.usefixtures("_asked_anew")
def test_full_memory_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [MemoryError("no byte left")]

    def select(_: int) -> None:
        if errors:
            raise errors.pop()
        raise RuntimeError("something that lasts")

    monkeypatch.setattr(driver, "load", FakeDriver)
    monkeypatch.setattr(device, "select", select)
    assert "no byte left" in str(device.problem())
    assert "something that lasts" in str(device.problem())
    assert device.problem() is device.problem()


def test_release_of_a_failed_device_hides_no_error(
    devices: Devices, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class CUDARuntimeError(RuntimeError):
        pass

    def fail() -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress")

    monkeypatch.setattr(transfers, "release", fail)
    device.release()
    assert "could not return: cudaErrorIllegalAddress" in caplog.text
    monkeypatch.setattr(transfers, "release", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        device.release()


@pytest.mark.parametrize("home", ["", "below a file"])
def test_cupy_has_a_folder_even_without_a_home(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "home"
    monkeypatch.setenv("HOME", str(nowhere if home else tmp_path))
    monkeypatch.setenv("CUPY_CACHE_DIR", "")  # put back at the end
    monkeypatch.delenv("CUPY_CACHE_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    let_cupy_cache()
    folder = os.environ.get("CUPY_CACHE_DIR")
    if not home:
        assert folder is None
        return
    assert Path(folder).parent == tmp_path
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    monkeypatch.delenv("CUPY_CACHE_DIR")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "cupy-12345").mkdir()  # another user's
    let_cupy_cache()
    assert Path(os.environ["CUPY_CACHE_DIR"]).name not in ("cupy-12345", Path(folder).name)


@pytest.mark.usefixtures("_asked_anew")
def test_packages_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "problem", MISSING)
    monkeypatch.setattr(packages, "is_installed", lambda module: module == "numpy")
    with pytest.raises(
        BackendError, match=r"CuPy and Numba-CUDA are missing\. Use pip install 'coincide\[gpu\]'"
    ):
        load_backend("gpu")
    assert load_backend("auto") is cpu_fallback


@pytest.mark.parametrize(
    ("versions", "says"),
    [
        (
            {"cupy": "13.6.0", "numba_cuda": "0.30.4"},
            "CuPy is 13.6.0, and Coincide needs at least 14.1",
        ),
        (
            {"cupy": "14.0.1", "numba_cuda": "0.30.4"},
            "CuPy is 14.0.1, and Coincide needs at least 14.1",
        ),
        (
            {"cupy": "14.1.0", "numba_cuda": "0.9.1"},
            "Numba-CUDA is 0.9.1, and Coincide needs at least 0.30",
        ),
        (
            {"cupy": "14.2.0", "numba_cuda": "0.31.0"},
            "Numba-CUDA is 0.31.0, and Coincide was tested with versions before 0.31",
        ),
        ({"cupy": "14.1.0rc1", "numba_cuda": "0.30.0", "numpy": "2.4.6"}, None),
        (
            {"cupy": "15", "numba_cuda": "0.30.9"},
            "CuPy is 15, and Coincide was tested with versions before 15",
        ),
        (
            {"cupy": "14.2.0", "numba_cuda": "0.30.4", "numpy": "2.5.2"},
            "NumPy is 2.5.2, and Coincide was tested with versions before 2.5",
        ),
        ({"cupy": None, "numba_cuda": None}, None),
    ],
)
def test_packages_are_too_old(
    versions: dict[str, str | None], says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "is_installed", lambda _: True)
    monkeypatch.setattr(packages, "version_of", versions.get)
    found = packages.problem()
    assert (found is None) if says is None else says in str(found)


def test_version_of_a_package_that_is_here() -> None:
    assert packages.version_of("numba_cuda") == metadata.version("numba-cuda")
    assert packages.version_of("no_such_module") is None


def test_plan_time_refuses_only_what_can_never_be() -> None:
    check_backend("gpu")
    with pytest.raises(ConditionError, match="backend must be one of auto, cpu, gpu"):
        check_backend("tpu")


def test_asking_imports_nothing_of_cuda() -> None:
    program = (
        "import sys; from gpu_kernels.device import driver, usable; driver.problem(driver.load());"
        " assert not {'cupy', 'numba.cuda', 'gpu_kernels.join'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_device_that_is_not_there() -> None:
    assert "shows 1 GPUs, so there is no number 3" in str(driver.problem(FakeDriver(), 3))


def test_every_thread_works_on_the_device_chosen(devices: Devices) -> None:
    def work(_: int) -> int:
        with turn.TURN:
            with turn.TURN:
                assert devices.turns == 2
            assert devices.turns == 1
            return devices.selected()

    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(work, range(50))) == {2}
    assert devices.turns == 0
    # Once for a thread, not for each turn.
    assert devices.selections <= 3


def test_threads_of_two_devices_work_at_the_same_time(devices: Devices) -> None:
    """Each on its own, whichever was chosen for the process, and one thread a device."""
    both_work = threading.Barrier(2, timeout=20)

    def work() -> tuple[int, int]:
        with turn.TURN, turn.TURN:
            both_work.wait()
            return devices.selected(), threading.get_ident()

    for _ in range(2):
        asked = [turn.thread_of(number).submit(work) for number in (5, 6)]
        numbers, threads = zip(*(each.result() for each in asked), strict=True)
        assert numbers == (5, 6)
        assert len(set(threads)) == 2
    assert (turn.chosen(), devices.selections) == (2, 2)


def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    before = turn.thread_of(7)
    assert before.submit(turn.chosen).result() == 7
    child = os.fork()
    if not child:
        is_new = (
            turn.thread_of(7) is not before and turn.thread_of(7).submit(turn.chosen).result() == 7
        )
        os._exit(0 if is_new else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_how_many_devices_there_are() -> None:
    assert driver.count(FakeDriver(count=3)) == 3
    assert driver.count(FakeDriver(count=3, failure=803)) == driver.count(None) == 0


def test_choosing_again_selects_no_more(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "problem", lambda: None)
    for number in (3, 3, 1, 1):
        device.use_device(number)
        assert devices.selected() == number
    assert devices.selections == 2


def test_a_device_that_cannot_be_selected_blocks_nobody(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "select", lambda _: 1 / 0)
    made = turn.Turn()
    with pytest.raises(ZeroDivisionError):
        made.__enter__()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(made._locks[2].acquire, blocking=False).result()


@pytest.mark.skipif(device.problem() is None, reason="there is a GPU")
def test_choosing_a_device_without_one_is_harmless() -> None:
    device.use_device(5)
    try:
        assert device.problem() is not None
    finally:
        device.use_device(0)
