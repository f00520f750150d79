"""Coincide as others get it: built from its sources, installed into an environment without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.places import ROOT

PACKAGES = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")
BESIDE = (
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "LICENSE",
)
WHERE = (
    "import coincide, sys; print(coincide.__file__, coincide.__version__, 'pyspark' in sys.modules)"
)
"""What is imported, and whether that imports Spark."""


class Built(NamedTuple):
    """Paths of the two archives, and the names of the files in them."""

    wheel: Path
    archive: Path
    in_wheel: set[str]
    in_archive: set[str]


def build(folder: Path) -> Built:
    """Build both archives in a copy of the sources, the wheel from the source archive.

    Or take those of `make dist`, if a variable names their folder, as in CI.
    """
    if (made := os.environ.get("COINCIDE_DIST")) is not None:
        return _opened(Path(made))
    sources = folder / "sources"
    for name in (*PACKAGES, "bench", "tests"):
        shutil.copytree(ROOT / name, sources / name, ignore=_ignored)
    for name in BESIDE:
        shutil.copy(ROOT / name, sources)
    run(sys.executable, "-m", "build", "--no-isolation", "-o", str(folder), str(sources))
    return _opened(folder)


def _opened(folder: Path) -> Built:
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with ZipFile(wheel) as opened:
        in_wheel = {name for name in opened.namelist() if not name.endswith("/")}
    with tarfile.open(archive) as opened_archive:
        members = [each.name for each in opened_archive.getmembers() if each.isfile()]
    return Built(wheel, archive, in_wheel, {name.partition("/")[2] for name in members})


def base_environment(folder: Path) -> Path:
    """The commands of an environment with what Coincide alone requires, but not Coincide: by links."""
    venv.create(folder, with_pip=False)
    here = site_packages(folder)
    for found in base_distributions():
        tops = {
            path.parts[0]
            for path in found.files or ()
            if path.parts[0] not in ("..", "__pycache__")
        }
        for top in tops:
            (here / top).symlink_to(Path(str(found.locate_file(top))))
    return folder / "bin"


def base_distributions() -> list[Distribution]:
    """The installed distributions that Coincide requires without an extra, and those that they require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    open_, known = list(project["dependencies"]), dict[str, Distribution]()
    while open_:
        requirement = Requirement(open_.pop())
        marker = requirement.marker
        name = canonicalize_name(requirement.name)
        if name not in known and (marker is None or marker.evaluate({"extra": ""})):
            known[name] = distribution(name)
            open_ += known[name].requires or []
    return list(known.values())


def site_packages(folder: Path) -> Path:
    """Where the environment in a folder has its packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"


def empty_environment(folder: Path, wheel: Path) -> Path:
    """The commands of an environment with the wheel, and all that is here but this checkout."""
    venv.create(folder, with_pip=False)
    commands = folder / "bin"
    run(
        *(sys.executable, "-m", "pip", "--python", str(commands / "python")),
        *("install", "--quiet", "--no-deps", "--no-index", str(wheel)),
    )
    # A folder that is only on the path has none of its own .pth files read, so not that of an editable
    # installation of this checkout.
    (site_packages(folder) / "beside.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )
    return commands


def run(*words: str, cwd: Path | None = None, commands: Path | None = None) -> str:
    """What a command prints, run as in a new shell; fails with that if it fails.

    `commands`: those of an environment that is active.
    """
    ran = subprocess.run(
        words,
        cwd=cwd,
        env=_of_a_new_shell(commands),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def _of_a_new_shell(commands: Path | None) -> dict[str, str]:
    """The environment without what names this checkout.

    A session of Spark puts the checkout on PYTHONPATH. There pip finds its metadata, and skips the wheel.
    """
    ours = ("PYTHON", "COINCIDE")
    found = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    path = found.get("PATH", os.defpath)
    return found if commands is None else found | {"PATH": f"{commands}{os.pathsep}{path}"}


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or name == "results"]
