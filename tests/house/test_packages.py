"""What is built of Coincide: what lies in the wheel, what it says of itself, what pip does with it.

That it runs alone is `tests/end_to_end/test_first_hour.py`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.places import ROOT
from tests.helpers.wheels import (
    PACKAGES,
    WHERE,
    Built,
    base_environment,
    build,
    run,
    site_packages,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA_NAMES = {"cupy-cuda13x": "cupy"}
RECIPE = ROOT / "conda" / "recipe.yaml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("built"))


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(built: Built) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    marks = {"coincide/__init__.pyi", *(f"{package}/py.typed" for package in PACKAGES)}
    ours = {name for name in built.in_wheel if ".dist-info/" not in name}
    assert ours == modules | marks
    about = {name.partition(".dist-info/")[2] for name in built.in_wheel - ours}
    assert about >= {"METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE"}


@pytest.mark.slow
def test_the_source_archive_holds_the_sources(built: Built) -> None:
    assert built.in_archive >= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert {name for name in built.in_wheel if ".dist-info/" not in name} <= built.in_archive
    assert not {name for name in built.in_archive if name.startswith(("tests/", "bench/"))}


@pytest.mark.slow
def test_the_page_of_an_index_renders(built: Built) -> None:
    archives = (str(built.wheel), str(built.archive))
    said = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *archives)
    assert said.count("PASSED") == 2


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("pyspark*/**/*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_another_pyspark_stays_as_it_is(built: Built, tmp_path: Path) -> None:
    """As on a cluster that has its own: only the extra asks for one."""
    folder = tmp_path / "env"
    commands = base_environment(folder)
    packages = site_packages(folder)
    (packages / "pyspark" / "jars").mkdir(parents=True)
    (packages / "pyspark" / "__init__.py").write_text("__version__ = '99.0'\n")
    (packages / "pyspark" / "jars" / "spark-core.jar").write_bytes(b"another Spark")
    for name, version in {"pyspark": "99.0", "pandas": "2.3.3", "protobuf": "7.0.0"}.items():
        about = packages / f"{name}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (about / "INSTALLER").write_text("pip\n")
        (about / "RECORD").write_text("".join(f"{path},,\n" for path in hashes(packages)))
    before = hashes(packages)
    assert len(before) == 5

    # pip sees to what is required, and may fetch nothing.
    pip = (sys.executable, "-m", "pip", "--python", str(commands / "python"))
    install = (*pip, "install", "--no-index", "--no-cache-dir")
    run(*install, str(built.wheel))
    assert hashes(packages) == before
    script = f"{WHERE}; print(len(coincide.correlate_tables({{'t': [1]}}, {{'t': [2]}},"
    script += " within=(0, 5), confidence=0.5, left_time='t', right_time='t')))"
    said = run(str(commands / "python"), "-c", script, cwd=tmp_path).split()
    assert said[-3:] == [PROJECT["version"], "False", "1"]
    assert hashes(packages) == before

    refused = subprocess.run(
        (*install, f"{built.wheel}[spark]"),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert refused.returncode != 0
    assert "No matching distribution found for pyspark" in refused.stderr
    assert hashes(packages) == before


def test_the_recipe_renders() -> None:
    """In a process of its own: the renderer is a library of another language, with threads."""
    code = (
        "import sys; from rattler_build import Stage0Recipe, VariantConfig, RenderConfig;"
        "made = Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig(), RenderConfig());"
        "print(len(made), made[0].recipe.to_dict()['package'])"
    )
    rendered = subprocess.run(
        [sys.executable, "-c", code, str(RECIPE)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    package = {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert rendered.stdout == f"1 {package}\n", rendered.stderr


def conda_requirements(*names: str) -> dict[str, str]:
    """Name and range of what the recipe lists under these headings."""
    recipe = yaml.safe_load(RECIPE.read_text("utf-8"))["requirements"]
    lines = [line for name in names for line in recipe[name]]
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines}


def of_project(lines: list[str]) -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines]
    return {CONDA_NAMES.get(each.name, canonicalize_name(each.name)): each for each in found}


def test_the_recipe_requires_what_the_project_does() -> None:
    ours = conda_requirements("run")
    theirs = of_project([*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"])
    assert {name: set(filter(None, text.split(","))) for name, text in ours.items()} == {
        name: {str(each) for each in requirement.specifier} for name, requirement in theirs.items()
    }
    limits = conda_requirements("run_constraints")
    extras = PROJECT["optional-dependencies"]
    extra = of_project([*extras["spark"], *extras["explore"], *extras["lake"], *extras["gpu"]])
    conda_alone = {
        "cuda-toolkit",
        "nvidia-nvjitlink",
        "numpy",
    }  # conda's have other names, or are required
    assert limits.keys() == (extra.keys() - conda_alone) | {"openjdk"}
    for name in limits.keys() - {"openjdk"}:
        assert set(limits[name].split(",")) == {str(each) for each in extra[name].specifier}


def test_the_recipe_and_the_environment_name_the_same_packages() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    named = {line.partition("=")[0].rstrip("<>") for line in environment if isinstance(line, str)}
    assert conda_requirements("run", "run_constraints").keys() <= named
    assert {line for line in environment if isinstance(line, str) and line.startswith("openjdk=")}


def test_the_recipe_builds_with_what_the_project_builds_with() -> None:
    system = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    host = conda_requirements("host")
    assert [f"{name}{host[name]}" for name in ("setuptools",)] == system["requires"]
    assert host["python"] == PROJECT["requires-python"]


def test_the_recipe_says_of_itself_what_the_project_does() -> None:
    recipe = yaml.safe_load(RECIPE.read_text("utf-8"))
    (entry,) = recipe["build"]["python"]["entry_points"]
    (name,) = PROJECT["scripts"]
    assert entry == f"{name} = {PROJECT['scripts'][name]}"
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["context"]["version"] == PROJECT["version"]
