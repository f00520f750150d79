"""Coincide alone, without any extra: what works there, and what is said of what is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from coincide.command_line import doctor
from coincide.model.errors import BackendError
from coincide.model.extras import (
    EXPLORE,
    LAKE,
    LEAST_SPARK,
    SPARK,
    Extra,
    missing,
    old_pyspark,
    require,
)
from tests.helpers.places import ROOT
from tests.helpers.wheels import base_distributions, base_environment, run, site_packages

HEAVY = {"pyspark", "pandas", "scipy", "protobuf", "altair", "cupy-cuda13x", "numba-cuda", "py4j"}
TABLES = """
import sys
import coincide
from coincide import *
from coincide import around

left = {"id": ["a", "b", "c"], "at": [0, 100, 200], "amp": [1.0, 2.0, 4.0]}
right = {"id": ["x", "y", "z"], "at": [3, 104, 195], "amp": [1.0, 2.0, 8.0]}
sides = {"left_time": around("at", 2), "right_time": around("at", 2)}
window = {"within": (-10, 10), "confidence": 0.9}
for more in (
    {}, {"matching": "optimal"}, {"where": "left_amp = right_amp"},
    {"emit": "aggregates", "aggregates": {"energy": ("amp", "sum")}},
):
    print(correlate_tables(left, right, **window, **sides, **more).num_rows)
live = stream_tables(**window, **sides, left_delay=0, right_delay=0)
live.push("left", left)
print(live.push("right", right).num_rows + live.flush().num_rows)
hits = [i * 1_000 + i * i % 7 for i in range(400)]
stamps = {"at": hits}
found = clock_error_tables(
    stamps, {"at": [h + 137 for h in hits]}, max_offset=500, left_time="at", right_time="at"
)
print(found.num_rows)
absent = {"pyspark", "pandas", "scipy", "google", "altair"} & set(sys.modules)
assert not absent, absent
assert not hasattr(sys.modules["__main__"], "correlate_streams") and "correlate" not in dir(coincide)
try:
    coincide.correlate
except BackendError as error:
    print(error)
"""
NO_SPARK = "Spark needs the package pyspark (found no pyspark). Use pip install "


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the sources and what these require alone."""
    folder = tmp_path_factory.mktemp("base") / "env"
    made = base_environment(folder)
    (site_packages(folder) / "sources.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    return made


def test_coincide_alone_requires_nothing_heavy() -> None:
    names = {found.metadata["Name"] for found in base_distributions()}
    assert {"numba", "numpy", "pyarrow", "rich", "typer"} <= names
    assert not HEAVY & names


def test_tables_and_streams_work_alone(commands: Path, tmp_path: Path) -> None:
    said = run(str(commands / "python"), "-c", TABLES, cwd=tmp_path).splitlines()
    assert said[:-1] == ["3", "3", "2", "3", "3", "1"]
    assert said[-1].startswith(NO_SPARK)


def test_a_pyspark_without_pandas_brings_no_names_of_spark(commands: Path, tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    code = (
        "from coincide import *; print('correlate' in globals(), 'correlate_tables' in globals())"
    )
    assert run(str(commands / "python"), "-c", code, cwd=tmp_path).split() == ["False", "True"]


CSV = "id,t\n{0},2026-03-02T09:00:00.{1}\n"


def coincide(commands: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [commands / "python", "-m", "coincide.command_line", *words],
        cwd=folder, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def test_the_command_line_works_alone(commands: Path, tmp_path: Path) -> None:
    (tmp_path / "left.csv").write_text(CSV.format("a", "000Z"), "utf-8")
    (tmp_path / "right.csv").write_text(CSV.format("b", "400Z"), "utf-8")
    words = (
        *("left.csv", "right.csv", "--within", "0s", "1s", "--confidence", "0.9"),
        *("--left-time", "t", "--right-time", "t"),
    )
    done = coincide(commands, tmp_path, "join", *words, "-o", "pairs.parquet")
    assert (done.returncode, "pairs       1\n" in done.stdout) == (0, True), done.stderr

    on_spark = coincide(
        commands, tmp_path, "join", *words, "-o", "more.parquet", "--engine", "spark"
    )
    assert (on_spark.returncode, on_spark.stdout) == (2, "")
    assert on_spark.stderr.startswith(f"coincide: {NO_SPARK}")
    assert not (tmp_path / "more.parquet").exists()

    pages = coincide(commands, tmp_path, "explore", *words, "-o", "page.html")
    assert pages.returncode == 2
    assert pages.stderr.startswith(
        "coincide: charts need the package altair (found no altair). Use pip"
    )


def test_doctor_is_content_with_coincide_alone(commands: Path, tmp_path: Path) -> None:
    done = coincide(commands, tmp_path, "doctor")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    spark = next(i for i, line in enumerate(lines) if "  Spark  " in line)
    assert lines[spark].startswith("none")
    assert "[spark]'" in lines[spark + 1]
    assert "Java" not in done.stdout
    assert lines[-1].endswith("and no Spark.")


def test_ranges_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in (SPARK, EXPLORE, LAKE):
        listed = project["optional-dependencies"][extra.name]
        assert sorted(extra.requirements.values()) == sorted(listed)


def test_one_package_of_an_extra_is_asked_for_alone_next_to_a_pyspark() -> None:
    """Else the extra would put its PySpark over that of a cluster."""
    told = str(missing(SPARK, "pandas"))
    assert told == (
        "Spark needs the package pandas (found no pandas). Use pip install 'pandas>=2.2,<3' next to"
        " your PySpark, or pip install 'coincide[spark]'."
    )


def test_what_is_there_is_not_missed() -> None:
    require(SPARK)
    other = Extra("other", "tests need", {"pandas": "pandas>=2", "no_such.module": "no-such>=1"})
    require(other, "pandas")
    with pytest.raises(BackendError, match=r"package no-such \(found no no_such\)\. Use pip"):
        require(other)


@pytest.mark.parametrize(
    ("version", "old"), [("3.5.6", "3.5.6"), ("4.0.0", "4.0.0"), ("4.0.1", None), ("99.0.0", None)]
)
def test_an_old_pyspark_is_named(
    version: str, old: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a cluster may have, next to which the wheel is installed."""
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('it is imported')")
    (package / "version.py").write_text(f'__version__: str = "{version}"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert old_pyspark() == old
    if old is None:
        require(SPARK, "pyspark")
        return
    with pytest.raises(BackendError, match=rf"found: version {old}, which is too old\)\. Use pip"):
        require(SPARK, "pyspark")
    finding = doctor.check_spark()
    assert (finding.state, finding.found) == ("MISSING", f"{old}, which is too old")


@pytest.mark.parametrize(
    ("version", "state"), [("4.2.9", "ok"), ("4.3.0", "none"), ("9.9", "none")]
)
def test_a_pyspark_that_nothing_was_tested_with_is_named(
    version: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    information = tmp_path / f"pyspark-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: pyspark\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    finding = doctor.check_spark()
    assert finding.found.startswith(version)
    assert finding.state == state


def test_the_least_spark_is_that_of_the_range() -> None:
    (least,) = [
        each.version for each in Requirement(SPARK.requirements["pyspark"]).specifier
        if each.operator == ">="
    ]  # fmt: skip
    assert least == ".".join(map(str, LEAST_SPARK))


def test_the_extra_of_all_holds_the_others() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (line,) = extras["optional-dependencies"]["all"]
    assert Requirement(line).extras == {"spark", "explore", "lake", "gpu"}


def test_the_demo_without_spark_names_the_other_engine(commands: Path, tmp_path: Path) -> None:
    done = coincide(commands, tmp_path, "demo", "--rows", "500")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"coincide: {NO_SPARK}")
    assert done.stderr.endswith("Or join in this process: coincide demo --engine local.\n")
