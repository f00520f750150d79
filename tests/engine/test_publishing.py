"""An output appears whole or not at all, whoever is killed, and however many write to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from coincide.engine.files.publishing import Publication
from coincide.model.errors import DataError
from tests.helpers.places import ROOT
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, coincide, interrupted

FOLDER = [True, False]
OVERWRITE = [True, False]


class Refused(DataError):
    """There is something already."""


def publication(out: Path, is_folder: bool, overwrite: bool = True, **more: Any) -> Publication:
    def check(there: fs.FileInfo) -> None:
        if not overwrite:
            raise Refused(there.path)

    filesystem = more.get("filesystem", fs.LocalFileSystem())
    return Publication(f"the output {out}", filesystem, str(out), check, is_folder)


def fill(output: Publication, is_folder: bool, value: int) -> None:
    """Write a file, or a folder of two."""
    table = pa.table({"id": [value]})
    for name in (f"/part-{value}-a.parquet", f"/part-{value}-b.parquet") if is_folder else ("",):
        pq.write_table(table, output.aside + name)


def put(out: Path, is_folder: bool, value: int, **more: Any) -> None:
    with publication(out, is_folder, **more) as output:
        fill(output, is_folder, value)
        output.publish()


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def whole(out: Path, is_folder: bool, value: int) -> bool:
    """Whether a folder holds an output of one value and nothing else, hidden or not."""
    if not is_folder:
        return tree(out.parent) == ["out"] and pq.read_table(out)["id"].to_pylist() == [value]
    names = [f"out/part-{value}-a.parquet", f"out/part-{value}-b.parquet"]
    return tree(out.parent) == ["out/_SUCCESS", *names] and os.listdir(out.parent) == ["out"]


# Killed runs


class DiesAt:
    """The local file system, on which this process is killed before, or after, a move."""

    def __init__(self, moment: str) -> None:
        self._filesystem, self._moment, self._moves = fs.LocalFileSystem(), moment, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def move(self, source: str, target: str) -> None:
        self._moves += 1
        if self._moment == f"before move {self._moves}":
            os.kill(os.getpid(), signal.SIGKILL)
        self._filesystem.move(source, target)
        if self._moment == f"after move {self._moves}":
            os.kill(os.getpid(), signal.SIGKILL)


def die(out: str, is_folder: str, moment: str) -> None:
    """In a process of its own: write to an output, and be killed."""
    folder = is_folder == "True"
    with publication(Path(out), folder, filesystem=DiesAt(moment)) as output:
        fill(output, folder, 2)
        if moment == "writing":
            os.kill(os.getpid(), signal.SIGKILL)
        output.publish()


def killed(out: Path, is_folder: bool, moment: str) -> None:
    script = "import sys; from tests.engine.test_publishing import die; die(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(out), str(is_folder), moment],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr


MOMENTS = [
    ("writing", True, 1),
    ("before move 1", True, 1),
    ("before move 2", True, 1),  # between the renames
    ("after move 2", True, 2),
    ("writing", False, 1),
    ("before move 1", False, 1),
    ("after move 1", False, 2),
]


@pytest.mark.parametrize(("moment", "is_folder", "stands"), MOMENTS)
def test_after_a_killed_run(tmp_path: Path, moment: str, is_folder: bool, stands: int) -> None:
    left = tmp_path / "left"
    left.mkdir()
    put(left / "out", is_folder, 1)
    killed(left / "out", is_folder, moment)
    assert len(os.listdir(left)) == 1 + (moment != "before move 2" or not is_folder)
    for next_run in ("fails", "must not overwrite", "overwrites"):
        folder = shutil.copytree(left, tmp_path / next_run)
        check_next_run(folder / "out", is_folder, stands, next_run)


def check_next_run(out: Path, is_folder: bool, stands: int, next_run: str) -> None:
    """Whatever the next run does, an output is there, and nothing is left of the killed one."""
    if next_run == "fails":
        with suppress(ZeroDivisionError), publication(out, is_folder) as output:
            fill(output, is_folder, 3)
            raise ZeroDivisionError
    elif next_run == "overwrites":
        put(out, is_folder, stands := 3)
    else:
        with pytest.raises(Refused):
            publication(out, is_folder, overwrite=False)
    assert whole(out, is_folder, stands)


@pytest.mark.parametrize("is_folder", FOLDER)
def test_a_first_run_that_is_killed_leaves_nothing_to_the_next(
    tmp_path: Path, is_folder: bool
) -> None:
    killed(out := tmp_path / "out", is_folder, "writing")
    assert not out.exists()
    put(out, is_folder, 3, overwrite=False)
    assert whole(out, is_folder, 3)


def test_one_killed_while_another_runs(tmp_path: Path) -> None:
    """The other, which found no output since that was aside, must not lose it either."""
    out = tmp_path / "out"
    put(out, True, 1)
    (tmp_path / "kept").mkdir()
    out.rename(tmp_path / "kept" / "out")
    with publication(out, True, overwrite=False) as output:
        fill(output, True, 3)
        (tmp_path / "kept" / "out").rename(out)
        killed(out, True, "before move 2")
        assert not out.exists()
        with pytest.raises(Refused):
            output.publish()
    (tmp_path / "kept").rmdir()
    assert whole(out, True, 1)


def test_only_folders_of_runs_to_this_output_are_taken_away(tmp_path: Path) -> None:
    run = f".coincide-{7:032x}"
    others = [
        f".other{run}",
        ".out.mine",
        ".out.coincide-1",
        f".out.coincide-x{run}",
        f".xout{run}",
    ]
    for name in others:
        (tmp_path / name / "new").mkdir(parents=True)
    (tmp_path / f".out{run}" / "new").mkdir(parents=True)
    put(tmp_path / "out", False, 1)
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "out"])


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])]
)
def test_a_killed_command(work: Any, engine: str) -> None:
    few = ("join", str(work.left), str(work.right), "-o", str(work.output), *WINDOW)
    on = ("--engine", engine, *(["--master", "local[1]"] if engine == "spark" else []))
    assert coincide(*few, *on).returncode == 0
    expected = in_order(work.result())
    many = {"id": list(range(20_000)), "min_time": [0] * 20_000, "max_time": [10] * 20_000}
    sides = [str(work.write(f"many{side}.parquet", pa.table(many))) for side in (0, 1)]
    words = ("join", *sides, *few[3:], *on, "--overwrite")
    folder = work.output.parent
    code, _ = interrupted(
        work, *words, number=signal.SIGKILL, begun=lambda: len(os.listdir(folder)) > 1
    )
    assert code == -signal.SIGKILL
    assert in_order(work.result()) == expected
    assert [name.startswith(".out.parquet.coincide-") for name in sorted(os.listdir(folder))] == [
        True, False
    ]  # fmt: skip
    assert "exists already" in coincide(*few, *on).stderr
    assert os.listdir(folder) == [work.output.name]
    assert in_order(work.result()) == expected


# Several runs at a time


@pytest.mark.parametrize("is_folder", FOLDER)
def test_a_living_run_is_left_alone(tmp_path: Path, is_folder: bool) -> None:
    out = tmp_path / "out"
    with publication(out, is_folder) as first, publication(out, is_folder) as second:
        fill(first, is_folder, 1)
        fill(second, is_folder, 2)
        second.publish()
        first.publish()
    assert whole(out, is_folder, 1)


@pytest.mark.parametrize("is_folder", FOLDER)
def test_one_that_must_not_overwrite_tells_that_another_was_faster(
    tmp_path: Path, is_folder: bool
) -> None:
    out = tmp_path / "out"
    with publication(out, is_folder, overwrite=False) as first:
        fill(first, is_folder, 1)
        put(out, is_folder, 2)
        with pytest.raises(Refused):
            first.publish()
    assert whole(out, is_folder, 2)


def test_what_another_run_has_published_keeps_its_files(tmp_path: Path) -> None:
    """Even where that comes between a rename and the search for late files."""

    class Overtaken(DiesAt):
        """Another run publishes as soon as this one has."""

        def move(self, source: str, target: str) -> None:
            super().move(source, target)
            put(out, True, 2)

    out = tmp_path / "out"
    put(out, True, 1, filesystem=Overtaken("never"))
    assert whole(out, True, 2)


def test_another_run_publishes_between_the_renames(tmp_path: Path) -> None:
    class Overtaken(DiesAt):
        """Another run publishes when the older output was just taken away."""

        def move(self, source: str, target: str) -> None:
            super().move(source, target)
            if self._moves == 1:
                put(out, True, 2)

    out = tmp_path / "out"
    put(out, True, 1)
    put(out, True, 3, filesystem=Overtaken("never"))
    assert whole(out, True, 3)


@pytest.mark.parametrize("is_folder", FOLDER)
def test_many_runs_at_once(tmp_path: Path, is_folder: bool) -> None:
    out = tmp_path / "out"
    wrong: list[BaseException] = []

    def work(first: int) -> None:
        for value in range(first, first + 25):
            try:
                put(out, is_folder, value)
            except DataError:
                pass  # others may win all attempts, never in silence
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    (value,) = set(pq.read_table(out)["id"].to_pylist())
    assert whole(out, is_folder, value)


# One file in another file system


def remote(folder: Path) -> fs.FileSystem:
    return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())


@pytest.mark.parametrize("out", ["out", "deep/out"])
def test_a_file_elsewhere_takes_its_place_at_the_end(tmp_path: Path, out: str) -> None:
    (tmp_path / "deep").mkdir()
    filesystem = remote(tmp_path)
    for value, overwrite in ((1, False), (2, True)):
        output = publication(Path(out), False, overwrite, filesystem=filesystem)
        with output:
            with filesystem.open_output_stream(output.aside) as sink:
                pq.write_table(pa.table({"id": [value]}), sink)
            assert output.rows() == 1
            assert (tmp_path / out).exists() == overwrite
            output.publish()
        assert pq.read_table(tmp_path / out)["id"].to_pylist() == [value]
    assert tree(tmp_path) == [out]
    assert not [name for name in os.listdir((tmp_path / out).parent) if name.startswith(".")]
    with pytest.raises(Refused):
        publication(Path(out), False, False, filesystem=filesystem)


def test_a_file_elsewhere_leaves_nothing_after_a_failure(tmp_path: Path) -> None:
    filesystem = remote(tmp_path)
    killed = publication(Path("out"), False, filesystem=filesystem).__enter__()
    filesystem.open_output_stream(killed.aside).close()
    output = publication(Path("out"), False, filesystem=filesystem)
    with suppress(ZeroDivisionError), output:
        filesystem.open_output_stream(output.aside).close()
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
