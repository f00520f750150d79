"""The Python of Spark's workers: refused at plan time where it could not run the tasks."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import BackendError, TimingCondition, correlate, within
from coincide.command_line import doctor
from spark_plugin.cluster.session import local_session
from spark_plugin.cluster.worker_python import VARIABLE, check_workers, is_this_python
from tests.helpers.joins import join_files
from tests.helpers.places import ROOT
from tests.helpers.spark_cases import jobs
from tests.helpers.workplace import WINDOW

CONDITION = TimingCondition(within(-5, 5), 0.5)
EVENTS = pa.table({"id": [1], "min_time": [0], "max_time": [10]})


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of this version in an environment of its own, which has no package."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")


@pytest.fixture
def wrapped(tmp_path: Path) -> str:
    """Another command that runs this Python."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def workers(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Let the session's workers be of another command."""
    context = spark.sparkContext
    before = context.pythonExec, context.pythonVer

    def be(command: str, driver: str = context.pythonVer) -> None:
        context.pythonExec, context.pythonVer = command, driver

    yield be
    context.pythonExec, context.pythonVer = before


def by_dataframes(spark: SparkSession, folder: Path) -> DataFrame:
    events = spark.createDataFrame(EVENTS)
    return correlate(events, events, CONDITION)


def by_files(spark: SparkSession, folder: Path) -> DataFrame:
    path = folder / "events.parquet"
    pq.write_table(EVENTS, path)
    return join_files(spark, path, path, CONDITION, way="files")


@pytest.mark.spark
@pytest.mark.parametrize("join", [by_dataframes, by_files])
def test_workers_without_the_packages(spark, workers, bare, tmp_path, join):
    workers(bare)
    with pytest.raises(BackendError, match="have no module py") as raised:
        join(spark, tmp_path)
    told = str(raised.value)
    assert f"They run {bare}" in told
    assert f"Start the session with {VARIABLE}=" in told
    assert "\n" not in told
    workers(sys.executable)
    assert join(spark, tmp_path).count() == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("command", "driver", "words"),
    [
        ("/no/such/python", None, "cannot start, as there is no program /no/such/python"),
        (None, "3.9", f"run Python {sys.version_info[0]}.{sys.version_info[1]}"),
    ],
    ids=["no program", "another version"],
)
def test_workers_that_cannot_be(spark, workers, wrapped, command, driver, words):
    workers(command or wrapped, *filter(None, [driver]))
    with pytest.raises(BackendError, match=words):
        check_workers(spark)


@pytest.mark.spark
def test_workers_are_looked_at_once(spark, workers, wrapped):
    workers(wrapped)
    for expected in (1, 0):
        with jobs(spark, "workers") as started:
            check_workers(spark)
            check_workers(spark.newSession())
        assert len(started) == expected
    workers(sys.executable)
    with jobs(spark, "workers") as started:
        check_workers(spark)
    assert started == []


@pytest.mark.spark
def test_workers_of_another_version_of_coincide(spark, workers, wrapped, monkeypatch):
    monkeypatch.setattr("spark_plugin.cluster.worker_python._own_version", lambda: "0.0.9")
    workers(wrapped)
    with pytest.raises(BackendError, match=r"have Coincide [\d.]+, but this process has 0\.0\.9"):
        check_workers(spark)


def test_whose_python_a_command_runs(bare, wrapped, monkeypatch):
    assert is_this_python(sys.executable)
    assert not is_this_python(bare)
    assert not is_this_python(wrapped)
    assert not is_this_python("no-such-python")
    # The same Python does not do where a new process would not find the packages.
    monkeypatch.setattr("spark_plugin.cluster.worker_python._is_installed", lambda: False)
    assert not is_this_python(sys.executable)


def test_a_session_takes_the_python_of_its_settings(monkeypatch):
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr("spark_plugin.cluster.session._prepare_jvm", stop)
    with pytest.raises(Stopped):
        local_session("local[1]", **{"spark.pyspark.python": "mine"})
    assert os.environ[VARIABLE] == "mine"


@pytest.mark.spark
def test_the_command_says_so_in_one_line(work, bare, java_home):
    done = subprocess.run(
        [sys.executable, "-m", "coincide.command_line", "join", str(work.left), str(work.right),
         "-o", str(work.folder / "out"), "--engine", "spark", *WINDOW],
        env={**os.environ, VARIABLE: bare, "JAVA_HOME": java_home, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("coincide: Spark's Python workers have no module")


# What doctor says of it


def test_doctor_finds_the_python_of_workers(bare, wrapped, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for command in (sys.executable, wrapped):
        monkeypatch.setenv(VARIABLE, command)
        assert doctor.check_worker_python() == doctor.Finding("Spark's Python", "ok", command)
    monkeypatch.setenv(VARIABLE, bare)
    finding = doctor.check_worker_python()
    assert finding.state == "MISSING"
    assert f"{VARIABLE}={bare}" in finding.found
    assert "have no module" in finding.found
    assert sys.executable in finding.advice
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("PATH", str(Path(bare).parent))
    finding = doctor.check_worker_python()
    assert finding.state == "none"
    assert "workers (python3) have no module" in finding.found
    assert f"export {VARIABLE}={sys.executable}" in finding.advice
