"""What modules import: no circles, also by imports in functions, and no more than is used."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.places import ROOT
from tests.helpers.wheels import PACKAGES


def modules() -> dict[str, Path]:
    """The modules of the product, by name."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """What a module imports, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else str(node.module)


def test_modules_import_each_other_in_no_circle() -> None:
    known = modules()
    assert len(known) > 200
    graph = {
        name: (set(imported(path, known)) & known.keys()) - {name} for name, path in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


@pytest.mark.parametrize(
    ("name", "most"), [("TimingCondition", 10), ("correlate_tables", 99), ("correlate", 110)]
)
def test_a_name_loads_few_modules(name: str, most: int) -> None:
    program = (
        f"import sys, coincide; coincide.{name};"
        f" print(len([m for m in sys.modules if m.split('.')[0] in {PACKAGES}]))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert 0 < int(loaded.stdout) <= most


COMES_WITH = {"py4j": "pyspark", "llvmlite": "numba", "numba_cuda": "numba-cuda"}
CALLED = {"cuda": "cuda-core", "cupy": "cupy-cuda13x", "vl_convert": "vl-convert-python"}
"""Distributions of modules that have other names."""


def test_what_is_imported_is_declared() -> None:
    """No package that only developers have is imported: who installs the product alone has none of them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = settings["optional-dependencies"]
    lines = [
        *settings["dependencies"],
        *extras["spark"],
        *extras["explore"],
        *extras["lake"],
        *extras["gpu"],
    ]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    ours = {*sys.stdlib_module_names, *PACKAGES}
    undeclared = {
        (name, path.relative_to(ROOT).as_posix())
        for path in modules().values()
        for name in tops(path) - ours
        if canonicalize_name(CALLED.get(name, COMES_WITH.get(name, name))) not in declared
    }
    assert undeclared == set()


def tops(path: Path) -> set[str]:
    """The packages that a module imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.partition(".")[0] for name in names}
