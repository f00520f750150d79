"""`coincide doctor` and the search for a Java, on machines that lack something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from coincide import BackendError
from coincide.command_line import doctor
from spark_plugin.cluster.rapids import JAR_VARIABLE
from spark_plugin.cluster.session import JVM_FOLDER_VARIABLE, describe_java, find_java
from tests.helpers.places import ROOT


def make_java(home: Path, version: str) -> Path:
    """A `java` that answers as the JVM of this version in this home does."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f"""#!/bin/sh
cat >&2 <<END
Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.2
END
"""
    )
    command.chmod(0o755)
    return home


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any Java; returns the folder where JVMs would be installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "jvm").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv(JVM_FOLDER_VARIABLE, str(tmp_path / "jvm"))
    make_java(tmp_path / "unused", "17")
    # The made-up java needs cat.
    (tmp_path / "bin" / "cat").symlink_to("/bin/cat")
    return tmp_path / "jvm"


def test_no_java(bare):
    with pytest.raises(BackendError, match=r"there is no Java. Install one"):
        find_java()


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home(bare, monkeypatch, version):
    home = make_java(bare.parent / "mine", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    java = find_java()
    assert (java.home, java.major, java.version) == (str(home), int(version), f"{version}.0.2")


@pytest.mark.parametrize("version", ["11", "25"])
def test_java_home_of_a_wrong_version(bare, monkeypatch, version):
    home = make_java(bare.parent / "mine", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(BackendError, match=f"JAVA_HOME={home} is Java {version}.0.2. Install one"):
        find_java()
    other = make_java(bare / "other", "17")
    with pytest.raises(BackendError, match=f"Set it to {other}"):
        find_java()


def test_java_home_without_java(bare, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(bare))
    with pytest.raises(BackendError, match="has no Java that runs"):
        find_java()


def test_java_on_path_comes_first(bare):
    on_path = make_java(bare.parent / "here", "21")
    (bare.parent / "bin" / "java").symlink_to(on_path / "bin" / "java")
    make_java(bare / "other", "17")
    assert find_java().home == str(on_path)


def test_java_on_path_of_a_wrong_version_is_passed_over(bare):
    on_path = make_java(bare.parent / "here", "25")
    (bare.parent / "bin" / "java").symlink_to(on_path / "bin" / "java")
    with pytest.raises(BackendError, match=r"java on PATH is version 25\.0\.2"):
        find_java()
    make_java(bare / "a-21", "21")
    chosen = make_java(bare / "b-17", "17")
    assert find_java().home == str(chosen)


def test_old_java_and_broken_java(bare):
    assert describe_java(make_java(bare / "eight", "1.8") / "bin" / "java").major == 8
    assert describe_java(bare / "nothing") is None
    assert describe_java("/bin/cat") is None


# Checks that need something which this machine may have or lack


def answering(tmp_path: Path, script: str) -> None:
    command = tmp_path / "bin" / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)


def test_gpu(bare, tmp_path):
    assert doctor.check_gpu().state == "none"
    answering(tmp_path, "echo 'NVIDIA H200, 580.65.06, 143771 MiB'")
    finding = doctor.check_gpu()
    assert finding.found == "NVIDIA H200, driver 580.65.06, 143771 MiB"
    assert finding.advice == ""


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 'No devices were found'", "No devices were found"),
        ("true", "nvidia-smi names no GPU"),
        (r"printf '\377\n'", "\ufffd"),
        ("echo 'NVIDIA-SMI has failed' >&2; exit 9", "NVIDIA-SMI has failed"),
        ("echo 'WARNING: worn'; echo 'A100, 580.1, 40 MiB'; exit 14", "A100, driver 580.1, 40 MiB"),
        ("exec sleep 30", "nvidia-smi gave no answer in 0.5 s"),
    ],
)
def test_odd_answers_about_gpus(bare, tmp_path, monkeypatch, script, found):
    monkeypatch.setattr(doctor, "_SMI_SECONDS", 0.5)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    answering(tmp_path, script)
    finding = doctor.check_gpu()
    assert finding.found == found
    assert finding.state == ("ok" if "A100" in found else "none")


def test_gpu_packages_that_are_too_old(monkeypatch):
    monkeypatch.setattr(doctor, "version_problem", lambda module: f"{module} is too old")
    finding = doctor.check_numba_cuda()
    assert (finding.state, finding.found) == ("none", "numba_cuda is too old")
    assert "pip install" in finding.advice


def test_gpu_of_an_old_driver(bare, tmp_path):
    answering(tmp_path, "echo 'Tesla T4, 550.54.14, 15360 MiB'")
    finding = doctor.check_gpu()
    assert finding.state == "ok"
    assert "CUDA 13 needs driver 580 or newer: update it" in finding.advice


def test_rapids(bare, tmp_path, monkeypatch):
    jar = tmp_path / "rapids.jar"
    monkeypatch.setattr(doctor, "active_session", lambda: None)
    monkeypatch.setenv(JAR_VARIABLE, str(jar))
    finding = doctor.check_rapids()
    assert (finding.state, finding.found) == ("none", "its jar is not here; needs a GPU")
    answering(tmp_path, "echo 'NVIDIA H200, 580.65.06, 143771 MiB'")
    assert "make rapids-jar" in doctor.check_rapids().advice
    jar.touch()
    finding = doctor.check_rapids()
    assert (finding.state, finding.found) == ("ok", f"{jar}, but no session has loaded it")
    assert f"spark.driver.extraClassPath={jar}" in finding.advice
    assert "spark.plugins=com.nvidia.spark.SQLPlugin" in finding.advice


def test_rapids_in_the_session(monkeypatch):
    known = {"spark.plugins": "com.nvidia.spark.SQLPlugin"}
    spark = SimpleNamespace(
        conf=SimpleNamespace(get=lambda name, default: known.get(name, default))
    )
    monkeypatch.setattr(doctor, "active_session", lambda: spark)
    assert doctor.check_rapids() == doctor.Finding("RAPIDS", "ok", "loaded in this session")


def test_gpu_whose_driver_is_broken(bare, tmp_path):
    answering(tmp_path, "echo 'NVIDIA-SMI has failed'; exit 9")
    finding = doctor.check_gpu()
    assert (finding.state, finding.found) == ("none", "NVIDIA-SMI has failed")


def test_numba_without_a_cache_folder(monkeypatch):
    monkeypatch.setattr(doctor, "_cache_folder", lambda: None)
    finding = doctor.check_numba()
    assert finding.state == "ok"
    assert "NUMBA_CACHE_DIR" in finding.advice


# The whole, as a process


def run_doctor(stubs: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "coincide.command_line", "doctor", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(stubs), str(ROOT)]), **environment},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def line_of(answer: subprocess.CompletedProcess[str], name: str) -> str:
    return next(line for line in answer.stdout.splitlines() if f"  {name}  " in line)


def broken(stubs: Path, module: str) -> Path:
    (stubs / f"{module}.py").write_text(f"raise ImportError('no {module} here')")
    return stubs


@pytest.fixture
def java(tmp_path):
    return str(make_java(tmp_path / "jdk", "17"))


def test_what_the_cpu_needs_is_here_and_without_gpu_packages_that_is_fine(tmp_path, java):
    answer = run_doctor(broken(broken(tmp_path, "cupy"), "numba_cuda"), JAVA_HOME=java)
    assert answer.returncode == 0, answer.stdout
    assert answer.stderr == ""
    for name in ("Python", "Java", "Spark", "Protobuf", "PyArrow", "Numba", "backend cpu"):
        assert line_of(answer, name).startswith("ok")
    for name in ("CuPy", "Numba-CUDA"):
        assert line_of(answer, name).startswith("none")
    assert "Ready: joins run on the CPU" in answer.stdout


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        ("pyspark", "Spark", "pip install 'pyspark"),
        ("pyarrow", "PyArrow", "pip install pyarrow"),
        ("numba", "Numba", "pip install numba"),
        ("google", "Protobuf", "for streams on Spark, pip install 'protobuf"),
    ],
)
def test_a_package_is_missing(tmp_path, java, module, name, advice):
    answer = run_doctor(broken(tmp_path, module), JAVA_HOME=java)
    assert answer.returncode == 1
    assert answer.stderr == ""
    assert line_of(answer, name).startswith("MISSING")
    assert f"no {module} here" in line_of(answer, name)
    assert advice in answer.stdout
    assert "Not ready: " in answer.stdout


def test_java_is_missing(tmp_path):
    answer = run_doctor(tmp_path, JAVA_HOME=str(tmp_path), **{JVM_FOLDER_VARIABLE: str(tmp_path)})
    assert answer.returncode == 1
    assert line_of(answer, "Java").startswith("MISSING")
    assert "Not ready: Java." in answer.stdout


def test_the_gpu_alone_is_asked_for_and_is_not_here(tmp_path):
    answer = run_doctor(broken(tmp_path, "cupy"), "--gpu", CUDA_VISIBLE_DEVICES="")
    assert answer.returncode == 1
    assert line_of(answer, "CuPy").startswith("none")
    assert "Java" not in answer.stdout
    assert answer.stdout.splitlines()[-1].startswith("Not ready: ")


IN_SIMULATOR = """
from coincide.command_line.gpu_proof import prove
from tests.helpers.simulator import prepare
prepare()
print(prove(60))
"""


def test_a_join_on_both_backends_is_compared():
    answer = subprocess.run(
        [sys.executable, "-c", IN_SIMULATOR], cwd=ROOT, capture_output=True, text=True,
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    assert "is_equal=True" in answer.stdout
    assert "60 x 60 events" in answer.stdout


@pytest.mark.parametrize("change", ["a row fewer", "another bit"])
def test_a_gpu_that_is_wrong_is_found_out(monkeypatch, change):
    from coincide.command_line import gpu_proof

    on_cpu = gpu_proof.correlate_tables

    def correlate_tables(*sides, backend, **more):
        found = on_cpu(*sides, backend="cpu", **more)
        if backend == "cpu":
            return found
        if change == "a row fewer":
            return found[1:]
        probability = found["probability"].to_numpy().copy()
        probability[-1] = np.nextafter(probability[-1], 0)
        return found.set_column(
            found.column_names.index("probability"), "probability", pa.array(probability)
        )

    monkeypatch.setattr(gpu_proof, "correlate_tables", correlate_tables)
    assert not gpu_proof.prove(500).is_equal
