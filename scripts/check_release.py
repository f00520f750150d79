"""Check what `make release` has built, in empty environments, and write dist/SHA256SUMS.

`python scripts/check_release.py [--python 3.11 ...] [--spark 4.0 ...]`. An environment gets the wheel and
what it requires, by uv, and then joins two tables, by Python and by the command. What could not be checked
is named, and fails unless `--allow-missing` is given.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
UV = str(Path(sys.executable).with_name("uv"))
LOWEST, OLDEST = "lowest", "3.11"
PYTHONS = (LOWEST, OLDEST, "3.12", "3.13", "3.14")
SPARKS = ("4.0", "4.1", "4.2")
SUMS = "SHA256SUMS"
CSV = "id,t\n{0},2026-03-02T09:00:00.{1}Z\n"
COMMAND = (
    *("join", "left.csv", "right.csv", "-o", "pairs.parquet", "--within", "0s", "1s"),
    *("--confidence", "0.9", "--left-time", "t", "--right-time", "t"),
)
TABLES = """
import sys, coincide
left, right = {"t": [0, 90]}, {"t": [4, 40]}
at = {"left_time": coincide.around("t", 1), "right_time": "t"}
pairs = coincide.correlate_tables(left, right, within=(0, 9), confidence=0.9, **at)
assert pairs.to_pylist() == [{"left_id": 0, "right_id": 0}], pairs
assert not {"pyspark", "pandas"} & set(sys.modules)
print(coincide.__version__)
"""
FRAMES = """
import coincide, pyspark
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
left, right = (spark.createDataFrame(rows, "id string, t long") for rows in ([("a", 0)], [("x", 4)]))
pairs = coincide.correlate(left, right, within=(0, 9), confidence=0.9, left_time="t", right_time="t")
assert [tuple(row) for row in pairs.collect()] == [("a", "x")]
left.coalesce(1).write.parquet("left.parquet")
files = [spark.read.parquet("left.parquet")] * 2  # what tasks read themselves
by_files = coincide.CorrelateOptions(way="files")
found = coincide.sequences(files, [(0, 0)], time="t", columns={"a": "id", "b": "t"}, options=by_files)
assert found.columns == ["a_id", "b_t"] and not found.count()
print(coincide.__version__)
"""


class Checked(NamedTuple):
    """One environment, how the check ended, and what was said."""

    what: str
    state: str
    said: str


OK, FAILED, SKIPPED = "ok", "FAILED", "SKIPPED"


def main(words: list[str]) -> int:
    """Put everything into dist/, check it, and write the checksums; 1 if a check failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--python",
        nargs="*",
        default=PYTHONS,
        help="versions; lowest: the oldest, and of each requirement the lowest",
    )
    parser.add_argument(
        "--spark", nargs="*", default=SPARKS, help="versions of Spark to check with"
    )
    parser.add_argument(
        "--allow-missing", action="store_true", help="do not fail for what is not to be had here"
    )
    given = parser.parse_args(words)
    version = project()["version"]
    wheel = DIST / f"coincide-{version}-py3-none-any.whl"
    missing = 0 if collect(version) else 1
    failed = 0
    checks = [
        *((python, None) for python in given.python),
        *((None, spark) for spark in given.spark),
    ]
    for python, spark in checks:
        done = check(wheel, version, python, spark)
        failed += done.state == FAILED
        missing += done.state == SKIPPED
        print(f"{done.state:<7} {done.what}: {done.said}", flush=True)
    for line in written_sums(DIST):
        print(line)
    if missing and not given.allow_missing:
        print(f"{missing} of the above could not be had. Give --allow-missing to go without.")
        failed += missing
    return int(failed > 0)


def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def collect(version: str) -> bool:
    """Put the site and the conda package next to the archives; whether there is such a package."""
    with tarfile.open(DIST / f"coincide-{version}-site.tar.gz", "w:gz") as archive:
        archive.add(ROOT / "build" / "site", f"coincide-{version}-site")
    found = sorted((ROOT / "build" / "conda" / "noarch").glob(f"coincide-{version}-*.conda"))
    for package in found:
        shutil.copy(package, DIST)
    if not found:
        print("MISSING conda package: none was built")
    return bool(found)


def written_sums(folder: Path) -> list[str]:
    """Write the checksums of all files of a folder, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in files]
    (folder / SUMS).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return lines


def check(wheel: Path, version: str, python: str | None, spark: str | None) -> Checked:
    """Install into an empty environment, and join there."""
    is_lowest = python == LOWEST
    what = f"Spark {spark}" if spark else f"Python {python}"
    if is_lowest:
        what, python = f"Python {OLDEST}, the lowest versions", OLDEST
    packages = [f"{wheel}[spark]", f"pyspark=={spark}.*"] if spark else [str(wheel)]
    if is_lowest:
        packages += ["--resolution", "lowest-direct", *project()["dependencies"]]
    with tempfile.TemporaryDirectory(prefix="coincide-release-") as name:
        folder = Path(name)
        try:
            interpreter = environment(
                folder, python or f"{sys.version_info[0]}.{sys.version_info[1]}"
            )
        except subprocess.CalledProcessError as error:
            return Checked(
                what, SKIPPED, f"not here, and uv cannot get it ({last_line(error.stderr)})"
            )
        except (subprocess.TimeoutExpired, OSError) as error:  # uv itself may be missing
            return Checked(what, FAILED, f"no environment ({last_line(str(error))})")
        try:
            return Checked(
                what, OK, "; ".join(steps(folder, interpreter, packages, version, spark))
            )
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            said = getattr(error, "stderr", None) or str(error)
            return Checked(what, FAILED, last_line(said))


def environment(folder: Path, python: str) -> Path:
    """An empty environment of a version of Python that is here, also by pyenv, or that uv gets."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    here = sorted(pyenv.glob(f"versions/{python}.*/bin/python"))
    run(folder, UV, "venv", "--quiet", "--python", str(here[-1]) if here else python, "env")
    return folder / "env" / "bin" / "python"


def steps(
    folder: Path, python: Path, packages: list[str], version: str, spark: str | None
) -> Iterator[str]:
    """Install, join in Python, join by the command; what each has to say."""
    begun = time.perf_counter()
    install = (UV, "pip", "install", "--quiet", "--system-certs", "--python", str(python))
    # PySpark's sources are large, and are not needed again.
    cache = ("--cache-dir", str(folder / "cache")) if spark else ()
    run(folder, *install, *cache, *packages)
    taken = time.perf_counter() - begun
    size = sum(path.lstat().st_size for path in (folder / "env").rglob("*"))
    yield f"installed in {taken:.0f} s, {size / 1e6:.0f} MB"
    said = run(folder, str(python), "-c", FRAMES if spark else TABLES)
    if said.split()[-1:] != [version]:
        raise ValueError(f"the installed version is not {version} (found {said.split()[-1:]})")
    (folder / "left.csv").write_text(CSV.format("a", "000"), "utf-8")
    (folder / "right.csv").write_text(CSV.format("b", "400"), "utf-8")
    command = str(python.with_name("coincide"))
    if "pairs       1\n" not in run(folder, command, *COMMAND):
        raise ValueError("the command did not find the pair")
    run(folder, command, "doctor")
    run(folder, command, "join", "--help")
    yield "joins tables and files" if spark is None else "joins DataFrames and files"


def run(folder: Path, *words: str) -> str:
    """What a command prints, run in a folder as in a new shell."""
    shell = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{folder / 'env' / 'bin'}{os.pathsep}{shell.get('PATH', os.defpath)}"
    return subprocess.run(
        words, cwd=folder, env=shell | {"PATH": path, "PYSPARK_PYTHON": "python"}, timeout=500,
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def last_line(text: str) -> str:
    """The last line that says something."""
    return next(
        (line.strip() for line in reversed(text.splitlines()) if line.strip()), "no message"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
