"""`coincide doctor`: what is here, and what to do about what is missing."""

from __future__ import annotations

import importlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from coincide.model.extras import EXPLORE, SPARK, Extra, how_to_install, is_there, old_pyspark
from gpu_kernels.device.packages import version_problem
from spark_plugin.cluster.rapids import RAPIDS_PLUGIN, find_jar, is_accelerated
from spark_plugin.cluster.session import Java, active_session, java_or_fault
from spark_plugin.cluster.worker_python import DEFAULT, VARIABLE, fault_of

_OK, _MISSING, _ABSENT = "ok", "MISSING", "none"
_SMI = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
_SMI_SECONDS = 20
_OLDEST_PYTHON = (3, 11)
_OLDEST_DRIVER = 580
"""The least driver of CUDA 13, for which the GPU packages are built."""


_GPU_PACKAGES = how_to_install("gpu")


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    name: str
    state: str
    found: str
    advice: str = ""


def run(gpu: bool = False, warm: bool = False) -> int:
    """Print what is here; 0 if joins run, on the CPU or as asked on the GPU, else 1."""
    if warm:
        from coincide.command_line import warming

        return warming.warm()
    if gpu:
        return _prove_gpu()
    findings = _print([check() for check in checks()])
    missing = [finding.name for finding in findings if finding.state == _MISSING]
    has_gpu = any(each.name == "backend gpu" and each.state == _OK for each in findings)
    print()
    if missing:
        print(f"Not ready: {', '.join(missing)}.")
        return 1
    gpu_words = " and on the GPU" if has_gpu else "; no GPU is used"
    print(
        f"Ready: joins run on the CPU{gpu_words}{'' if is_there('pyspark') else ', and no Spark'}."
    )
    return 0


def _prove_gpu() -> int:
    """Check the GPU alone, and join on it; 0 if all of that is well."""
    findings = _print([check() for check in GPU_CHECKS])
    if all(finding.state == _OK for finding in findings):
        from coincide.command_line.gpu_proof import prove

        print("joining on both backends; the first join on a GPU takes longer: it compiles kernels")
        equal, found = prove()
        advice = "" if equal else "use the CPU (--backend cpu), and report this"
        findings += _print([Finding("a join", _OK if equal else _MISSING, found, advice)])
    faults = [finding.name for finding in findings if finding.state != _OK]
    print()
    print(f"Not ready: {', '.join(faults)}." if faults else "Ready: joins run on the GPU.")
    return 1 if faults else 0


def _print(findings: list[Finding]) -> list[Finding]:
    name_width = max(len("backend gpu"), *(len(finding.name) for finding in findings))
    for finding in findings:
        print(f"{finding.state:<7}  {finding.name:<{name_width}}  {finding.found}")
        if finding.advice:
            print(f"{'':<7}  {'':<{name_width}}  → {finding.advice}")
    return findings


def check_python() -> Finding:
    """The interpreter."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return Finding("Python", _MISSING, found, "use Python 3.11 or newer")
    return Finding("Python", _OK, found)


def check_worker_python() -> Finding:
    """The interpreter of Spark's workers, in sessions that are started here."""
    name, told = "Spark's Python", os.environ.get(VARIABLE)
    command = told or DEFAULT
    fault = fault_of(command)
    if fault is None:
        return Finding(name, _OK, command)
    if told:
        advice = f"unset {VARIABLE}, or set it to {sys.executable}"
        return Finding(name, _MISSING, f"workers ({VARIABLE}={told}) {fault}", advice)
    advice = (
        f"export {VARIABLE}={sys.executable} before you start your own session. Sessions that"
        " coincide starts have it"
    )
    return Finding(name, _ABSENT, f"{VARIABLE} is not set, and workers ({command}) {fault}", advice)


def check_java() -> Finding:
    """The Java that a Spark session would start."""
    java = java_or_fault()
    if not isinstance(java, Java):
        return Finding("Java", _MISSING, *java)
    how = "JAVA_HOME" if os.environ.get("JAVA_HOME") else "found, but JAVA_HOME is not set"
    return Finding("Java", _OK, f"{java.version} in {java.home} ({how})")


def check_spark() -> Finding:
    """PySpark, which brings Spark."""
    if not is_there("pyspark"):
        return _without(SPARK, "Spark")
    home = os.environ.get("SPARK_HOME")
    requirement = f"'{SPARK.requirements['pyspark']}'"
    if (old := old_pyspark()) is not None:
        advice = f"Coincide needs {requirement}"
        return Finding("Spark", _MISSING, f"{old}, which is too old", advice)
    finding = _needed("Spark", "pyspark", requirement, f"; SPARK_HOME={home}" * bool(home))
    below = tuple(map(int, requirement.rpartition("<")[2].strip("'").split(".")))
    numbers = re.match(r"(\d+)\.(\d+)", finding.found)
    if finding.state != _OK or numbers is None or tuple(map(int, numbers.groups())) < below:
        return finding
    advice = f"Coincide is tested with {requirement}"
    return Finding("Spark", _ABSENT, f"{finding.found}, which is newer", advice)


def check_pandas() -> Finding:
    """pandas, which PySpark asks for."""
    return _needed("pandas", "pandas", f"'{SPARK.requirements['pandas']}'")


def check_protobuf() -> Finding:
    """Protobuf, which workers of Spark's streams import."""
    found, error = _imported("google.protobuf.runtime_version", "protobuf")
    if error:
        requirement = SPARK.requirements["google.protobuf"]
        return Finding(
            "Protobuf", _MISSING, error, f"for streams on Spark, pip install '{requirement}'"
        )
    return Finding("Protobuf", _OK, found)


def check_charts() -> Finding:
    """Altair and vl-convert, which draw."""
    found = [_imported(module, *_named(text)) for module, text in EXPLORE.requirements.items()]
    if any(error for _, error in found):
        return _without(EXPLORE, "charts")
    versions = (
        f"{module} {version}"
        for module, (version, _) in zip(EXPLORE.requirements, found, strict=True)
    )
    return Finding("charts", _OK, ", ".join(versions))


def _named(requirement: str) -> tuple[str]:
    return (requirement.partition(">")[0],)


def _without(extra: Extra, name: str) -> Finding:
    """An extra that is not installed, which is no fault."""
    advice = f"for {name}, {how_to_install(extra.name)}"
    return Finding(name, _ABSENT, "not installed", advice)


def check_arrow() -> Finding:
    """PyArrow."""
    return _needed("PyArrow", "pyarrow", "pyarrow")


def check_numba() -> Finding:
    """Numba and where it caches what it compiled."""
    finding, folder = _needed("Numba", "numba", "numba"), _cache_folder()
    if finding.state != _OK:
        return finding
    if folder is not None:
        return replace(finding, found=f"{finding.found}; cache in {folder}")
    return Finding(
        "Numba", _OK,
        f"{finding.found}, but no cache folder can be written, so each process compiles again",
        "set NUMBA_CACHE_DIR to a folder that can be written",
    )  # fmt: skip


def check_cpu_backend() -> Finding:
    """The CPU kernels, by a join of two events."""
    try:
        _join_two_events("cpu")
    except Exception as error:
        return Finding("backend cpu", _MISSING, _short(error), "see the lines above")
    return Finding("backend cpu", _OK, "joined two events")


def check_gpu() -> Finding:
    """The GPU and its driver."""
    try:
        answer = subprocess.run(
            _SMI,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SMI_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        advice = "check the driver: dmesg may say more"
        return Finding("GPU", _ABSENT, f"nvidia-smi gave no answer in {_SMI_SECONDS} s", advice)
    except OSError:
        return Finding("GPU", _ABSENT, "no nvidia-smi, so no NVIDIA driver")
    # It may warn, too; a line of a GPU has all that was asked for.
    gpus = [_fields(line) for line in answer.stdout.splitlines() if line.count(",") >= 2]
    if not gpus:
        said = (answer.stdout + answer.stderr).strip().splitlines()
        return Finding("GPU", _ABSENT, said[0] if said else "nvidia-smi names no GPU")
    found = "; ".join(f"{name}, driver {driver}, {memory}" for name, driver, memory in gpus)
    if any(_is_old(driver) for _, driver, _ in gpus):
        return Finding(
            "GPU", _OK, found, f"CUDA 13 needs driver {_OLDEST_DRIVER} or newer: update it"
        )
    return Finding("GPU", _OK, found)


def check_numba_cuda() -> Finding:
    """Numba-CUDA, which compiles the GPU kernels."""
    return _optional("Numba-CUDA", "numba_cuda", "numba-cuda")


def check_cupy() -> Finding:
    """CuPy, which sorts and searches on the GPU."""
    return _optional("CuPy", "cupy", "cupy-cuda13x", "cupy-cuda12x", "cupy")


def check_gpu_backend() -> Finding:
    """The GPU kernels, by a join of two events."""
    try:
        _join_two_events("gpu")
    except Exception as error:
        if type(error).__name__ == "BackendError":
            return Finding("backend gpu", _ABSENT, str(error).split(";")[0])
        return Finding(
            "backend gpu", _ABSENT, _short(error), f"with an NVIDIA GPU: {_GPU_PACKAGES}"
        )
    return Finding("backend gpu", _OK, "joined two events")


def check_rapids() -> Finding:
    """The RAPIDS Accelerator: no part of us, but it brings Spark's own steps to the GPU."""
    spark = active_session()
    if spark is not None and is_accelerated(spark):
        return Finding("RAPIDS", _OK, "loaded in this session")
    jar = find_jar()
    found = f"{jar}, but no session has loaded it" if jar else "its jar is not here"
    if check_gpu().state != _OK:
        return Finding("RAPIDS", _ABSENT, f"{found}; needs a GPU")
    if jar is None:
        return Finding("RAPIDS", _ABSENT, found, "make rapids-jar (docs/gpu-cluster.md says more)")
    advice = (
        "to run Spark's own steps on the GPU too, use coincide join … --conf"
        f" spark.driver.extraClassPath={jar} --conf spark.plugins={RAPIDS_PLUGIN}"
        " (docs/gpu-cluster.md says more)"
    )
    return Finding("RAPIDS", _OK, found, advice)


def checks() -> tuple[Callable[[], Finding], ...]:
    """What `coincide doctor` checks: what only Spark needs, where PySpark is."""
    of_spark = (check_java, check_worker_python, check_pandas, check_protobuf)
    return (
        check_python,
        check_arrow,
        check_numba,
        check_cpu_backend,
        check_spark,
        *(of_spark if is_there("pyspark") else ()),
        check_charts,
        check_gpu,
        check_numba_cuda,
        check_cupy,
        check_gpu_backend,
        *((check_rapids,) if is_there("pyspark") else ()),
    )


GPU_CHECKS = (check_gpu, check_numba_cuda, check_cupy, check_gpu_backend)
"""What `coincide doctor --gpu` checks before it joins."""


def _imported(module: str, *distributions: str) -> tuple[str, str]:
    """Version of a package that can be imported, or else why it cannot."""
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        return "", _short(error)
    for name in distributions:
        try:
            return version(name), ""
        except PackageNotFoundError:
            continue
    return str(getattr(found, "__version__", "unknown version")), ""


def _needed(name: str, module: str, requirement: str, more: str = "") -> Finding:
    found, error = _imported(module, module)
    if error:
        return Finding(name, _MISSING, error, f"pip install {requirement}")
    return Finding(name, _OK, found + more)


def _optional(name: str, module: str, *distributions: str) -> Finding:
    found, error = _imported(module, *distributions)
    error = error or version_problem(module) or ""
    if not error:
        return Finding(name, _OK, found)
    return Finding(name, _ABSENT, error, f"with an NVIDIA GPU: {_GPU_PACKAGES}")


def _cache_folder() -> str | None:
    """Where Numba keeps one of our kernels; None if nowhere."""
    try:
        from coincide.model.probability import trapezoid_cdf
    except Exception:
        return None
    folder = getattr(getattr(trapezoid_cdf, "_cache", None), "cache_path", None)
    if folder is None:
        return None
    os.makedirs(folder, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else None


def _join_two_events(backend: Any) -> None:
    import pyarrow as pa

    from coincide import TimingCondition, within
    from coincide.engine.join.join import correlate_tables

    event = pa.table({"id": [1], "min_time": [0], "max_time": [10]})
    found = correlate_tables(event, event, TimingCondition(within(-5, 5), 0.5), backend=backend)
    if found.num_rows != 1:
        raise RuntimeError(f"a join of two equal events found {found.num_rows} pairs instead of 1.")


def _fields(line: str) -> tuple[str, str, str]:
    name, driver, memory = (part.strip() for part in line.split(",")[:3])
    return name, driver, memory


def _is_old(driver: str) -> bool:
    major = driver.partition(".")[0]
    return major.isdecimal() and int(major) < _OLDEST_DRIVER


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
