"""The house around the code: pins, ranges, packages and commands agree with each other."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.helpers.places import ROOT, repository_files

TOP_LEVEL = (
    *("coincide", "cpu_fallback", "spark_plugin", "bench", "tests", "docs", "scripts"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", ".ci/run"),
    *("CITATION.cff", "CODE_OF_CONDUCT.md", "SECURITY.md"),
    *("pyproject.toml", "requirements.lock", "environment.yml", "mkdocs.yml", "conda", "examples"),
)
EXECUTABLE = (
    *(".ci/run", "scripts/apt-install.sh", "scripts/discover-gpus.sh", "scripts/find-java.sh"),
    *("scripts/get-rapids-jar.sh", "scripts/install.sh", "scripts/make-venv.sh"),
)

CONDA_NAMES = {"matplotlib-base": "matplotlib", "python-duckdb": "duckdb"}
"""Packages that conda-forge and PyPI call by other names."""

LOCAL_PATHS = (("", "work", "main"), ("", "root", ""))
REGISTRY_HOSTS = (
    *(("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"), ("debian", "org")),
    *(("maven", "org"), ("maven", "apache", "org"), ("npmjs", "org"), ("crates", "io")),
)
FORBIDDEN = tuple("/".join(p) for p in LOCAL_PATHS) + tuple(".".join(h) for h in REGISTRY_HOSTS)
"""Joined here, so that this file does not mention them either."""


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def project() -> dict:
    return tomllib.loads(read("pyproject.toml"))


def lock_pins() -> dict[str, str]:
    """Version of each package in requirements.lock; every line must pin one."""
    pins = {}
    for line in read("requirements.lock").splitlines():
        if line and not line.startswith("#"):
            name, version = re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups()
            assert canonicalize_name(name) not in pins, f"{name} is pinned twice"
            pins[canonicalize_name(name)] = version
    return pins


def conda_pins() -> dict[str, str]:
    """Version of each package that environment.yml pins, by its PyPI name."""
    found = re.findall(r"^  - ([\w-]+)=([\w.]+)$", read("environment.yml"), flags=re.MULTILINE)
    return {canonicalize_name(CONDA_NAMES.get(name, name)): version for name, version in found}


def requirements(*extras: str) -> list[Requirement]:
    settings = project()["project"]
    optional = settings["optional-dependencies"]
    lines = settings["dependencies"] + [line for extra in extras for line in optional[extra]]
    return [Requirement(line) for line in lines]


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", read("Makefile"), flags=re.MULTILINE))


def make_commands(markdown: str) -> set[str]:
    """The X of each `make X` in the code spans and code blocks of a page."""
    blocks = re.findall(r"^```.*?^```", markdown, flags=re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`[^`\n]+`", markdown)
    return set(re.findall(r"\bmake ([a-z][\w-]*)", "\n".join(blocks + spans)))


@pytest.mark.parametrize("entry", TOP_LEVEL)
def test_top_level_entry_exists(entry):
    assert (ROOT / entry).exists()


@pytest.mark.parametrize("script", EXECUTABLE)
def test_script_is_executable(script):
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize(
    "requirement", requirements("spark", "explore", "lake", "dev", "bench", "docs"), ids=str
)
def test_range_admits_the_locked_version(requirement):
    pins = lock_pins()
    name = canonicalize_name(requirement.name)
    assert name in pins, f"requirements.lock does not pin {name}"
    assert requirement.specifier.contains(pins[name])


OLDEST_PYTHON = "3.11.2"
"""That of Debian 12, where `make test` is all the set-up; the lock may be written by a later one."""


def test_the_oldest_python_can_install_what_is_locked():
    needed = {
        canonicalize_name(each.name): SpecifierSet(each.metadata.get("Requires-Python") or "")
        for each in distributions()
    }
    locked = lock_pins().keys() & needed.keys()  # a few exist for one Python or system only
    assert {"pyspark", "mkdocs-material", "numba"} <= locked
    assert {name for name in locked if not needed[name].contains(OLDEST_PYTHON)} == set()


def test_conda_environment_agrees_with_the_lock():
    locked, conda = lock_pins(), conda_pins()
    shared = locked.keys() & conda.keys()
    assert {"pyspark", "numpy", "numba", "pyarrow", "grpcio"} <= shared
    assert {name: conda[name] for name in shared} == {name: locked[name] for name in shared}


def test_conda_environment_holds_every_dependency():
    listed = re.findall(r"^  - ([\w-]+)", read("environment.yml"), flags=re.MULTILINE)
    names = {canonicalize_name(CONDA_NAMES.get(name, name)) for name in listed}
    missing = {canonicalize_name(r.name) for r in requirements("spark", "explore", "lake")} - names
    assert not missing


def test_conda_has_the_least_versions_of_the_gpu_packages():
    """They are no development dependencies, so that the lock does not hold all of them."""
    least = dict(
        re.findall(r"^  - ([\w-]+)(>=[\w.,<]+)$", read("environment.yml"), flags=re.MULTILINE)
    )
    ranges = {r.name: str(r.specifier) for r in requirements("gpu")}
    assert {name: SpecifierSet(given) for name, given in least.items()} == {
        "cupy": SpecifierSet(ranges["cupy-cuda13x"]),
        **{name: SpecifierSet(ranges[name]) for name in ("cuda-core", "numba-cuda")},
    }


def test_conda_python_is_admitted():
    assert project()["project"]["requires-python"] == ">=3.11"
    assert tuple(map(int, conda_pins()["python"].split("."))) >= (3, 11)


def test_every_package_is_under_the_import_contracts():
    packages = {
        path.parent.name
        for path in repository_files()
        if path.name == "__init__.py" and path.parent.parent == ROOT
    } - {"tests"}
    assert packages == set(project()["tool"]["importlinter"]["root_packages"])


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_commands_on_a_page_exist(page):
    commands = make_commands(read(page))
    assert commands, f"{page} names no make command"
    assert commands <= make_targets()


@pytest.mark.parametrize(
    ("goal", "installed"),
    [
        ("demo", ["-e .[spark,explore]"]),
        ("test", ["-e .[spark,explore]", "-e .[spark,explore,dev,bench,docs]"]),
    ],
)
def test_make_installs_what_the_goal_needs(goal, installed, tmp_path):
    planned = subprocess.run(
        ["make", "--dry-run", goal, f"VENV={tmp_path}"],
        cwd=ROOT, env={"PATH": os.environ["PATH"]}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = re.findall(r"^scripts/install.sh \S+ (.*)$", planned.stdout, flags=re.MULTILINE)
    assert [words.replace('"', "") for words in found] == installed


def test_make_commands_are_found_in_code_only():
    page = (
        "Do make sure.\n\n```sh\nmake demo    # first\n$ make -s\n```\n\nand `make test ARGS=-x`."
    )
    assert make_commands(page) == {"demo", "test"}


def test_no_file_names_this_machine_or_a_registry_host():
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in repository_files()
        for word in FORBIDDEN
        if word.encode() in path.read_bytes()
    ]
    assert not found
