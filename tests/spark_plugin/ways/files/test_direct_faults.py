"""Faults on the direct way: an error that names the file, and no output, or the output of one run."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.files.common_schema import MissingColumn
from coincide.engine.files.publishing import Output
from coincide.engine.reports.join_report import JoinSummary
from coincide.model.errors import CoincideError, DataError, SchemaError
from spark_plugin.tasks.file_slices import FileTask, SliceReport
from spark_plugin.ways.files import join as direct
from tests.helpers.joins import join_files
from tests.helpers.spark_process import spark_environment
from tests.spark_plugin.ways.files.test_direct_join import stream

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-300, 100), 0.7)
SLICES = 4
NOTES = "COINCIDE_TEST_NOTES"
"""Names the folder in which processes tell each other how far they are."""
NO_EVENT = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Holds the inputs, and nothing else."""
    for seed, name in enumerate(("left", "right")):
        write(tmp_path / f"{name}.parquet", stream(4000, seed))
    return tmp_path


def write(path: Path, table: pa.Table, **how: Any) -> None:
    pq.write_table(table, path, row_group_size=500, **how)


def correlate(spark: SparkSession, folder: Path, **more: Any) -> JoinSummary:
    arguments = {"output": folder / "out", "options": CorrelateOptions(slices=SLICES), **more}
    sides = folder / "left.parquet", folder / "right.parquet"
    done = join_files(spark, *sides, CONDITION, way="files", **arguments)
    assert isinstance(done, JoinSummary)
    return done


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_whole(folder: Path, done: JoinSummary) -> None:
    assert names(folder / "out").count("_SUCCESS") == 1
    assert len(names(folder / "out")) == SLICES + 1
    pairs = pq.read_table(folder / "out").select(["left_id", "right_id"])
    assert pairs.num_rows == done.rows > 0
    assert pairs.group_by(["left_id", "right_id"]).aggregate([]).num_rows == done.rows


# What is wrong with the files


def _without_statistics(path: Path) -> None:
    write(path, pq.read_table(path), write_statistics=False)


def _in_a_folder(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    """The file as a folder of two, the second one changed."""

    def spoil(path: Path) -> None:
        table = pq.read_table(path)
        path.unlink()
        path.mkdir()
        write(path / "a.parquet", table.slice(0, 2000))
        write(path / "right.parquet", change(table.slice(2000)))

    return spoil


def _pages(path: Path) -> None:
    """Spoil the data, not the footer."""
    content = bytearray(path.read_bytes())
    content[4:20_000] = bytes([255]) * (20_000 - 4)
    path.write_bytes(content)


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_truncate, "cannot read .* as Parquet"),
        (Path.unlink, "does not exist"),
        (_without_statistics, "has no statistics of min_time and max_time"),
        (_in_a_folder(lambda table: table.drop(["id"])), "has no column 'id'"),
        (
            _in_a_folder(lambda t: t.set_column(1, "min_time", t["min_time"].cast("int32"))),
            "the column 'min_time' must have one type .*found int32 in",
        ),
    ],
    ids=["truncated", "missing", "no statistics", "no column", "another type"],
)
def test_bad_files(
    spark: SparkSession, folder: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(folder / "right.parquet")
    with pytest.raises(CoincideError, match=f"right: .*{words}") as raised:
        correlate(spark, folder)
    assert str(folder / "right.parquet") in str(raised.value)
    assert "out" not in " ".join(names(folder))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_truncate, "cannot read .* as Parquet"),
        (_pages, "cannot read .* as Parquet"),
        (Path.unlink, "is gone. If it was replaced, run the job again"),
        (lambda path: write(path, stream(4001, 1)[1:700]), "has changed since"),
    ],
    ids=["truncated", "corrupt pages", "gone", "another"],
)
def test_files_that_spoil_between_plan_and_read(
    spark: SparkSession,
    folder: Path,
    spoil: Callable[[Path], None],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned = direct.written_slices

    def spoilt(*arguments: Any) -> list[SliceReport]:
        spoil(folder / "right.parquet")
        return planned(*arguments)

    monkeypatch.setattr(direct, "written_slices", spoilt)
    with pytest.raises(DataError, match=f"right: .*{words}") as raised:
        correlate(spark, folder)
    assert str(folder / "right.parquet") in str(raised.value)
    assert names(folder) == (["left.parquet"] + ["right.parquet"] * (spoil != Path.unlink))


# What Spark reads: the same errors, before or after it has looked


def by_dataframes(spark: SparkSession, folder: Path, way: str, **more: Any) -> None:
    sides = folder / "left.parquet", folder / "right.parquet"
    join_files(spark, *sides, CONDITION, way=way, output=folder / "out", **more)


WAYS = pytest.mark.parametrize("way", ["broadcast", "exchange"])


@WAYS
def test_a_column_missing_in_one_file_by_dataframes(
    spark: SparkSession, folder: Path, way: str
) -> None:
    _in_a_folder(lambda table: table.drop(["max_time"]))(folder / "right.parquet")
    lacking = folder / "right.parquet" / "right.parquet"
    with pytest.raises(MissingColumn, match=f"right: {lacking} has no column 'max_time', which"):
        by_dataframes(spark, folder, way)
    assert "out" not in " ".join(names(folder))


@WAYS
def test_a_column_of_another_kind_in_one_file_by_dataframes(
    spark: SparkSession, folder: Path, way: str
) -> None:
    """Spark would read the bits of one kind as those of the other."""
    times = pa.array([0], pa.int32()).view(pa.date32())
    _in_a_folder(
        lambda table: table.slice(0, 1).set_column(
            table.column_names.index("max_time"), "max_time", times
        )
    )(folder / "right.parquet")
    with pytest.raises(SchemaError, match="right: the column 'max_time' must have one type"):
        by_dataframes(spark, folder, way)


@WAYS
@pytest.mark.parametrize("spoil", [_pages, _truncate], ids=["pages", "truncated"])
def test_corrupt_files_by_dataframes(
    spark: SparkSession, folder: Path, way: str, spoil: Callable[[Path], None]
) -> None:
    spoil(folder / "right.parquet")
    with pytest.raises(DataError, match=str(folder / "right.parquet")):
        by_dataframes(spark, folder, way)
    assert "out" not in " ".join(names(folder))


@WAYS
def test_invalid_rows_by_dataframes(spark: SparkSession, folder: Path, way: str) -> None:
    write(folder / "right.parquet", pa.table({"id": [1], "min_time": [9], "max_time": [8]}))
    with pytest.raises(DataError, match="right: "):
        by_dataframes(spark, folder, way)
    assert "out" not in " ".join(names(folder))


@WAYS
@pytest.mark.parametrize("mixed", [False, True])
def test_nanoseconds_by_dataframes(
    spark: SparkSession, folder: Path, way: str, mixed: bool
) -> None:
    """Spark reads none; the direct way does."""
    # Others of this session may have asked for numbers in their place.
    spark.conf.unset("spark.sql.legacy.parquet.nanosAsLong")

    def timed(table: pa.Table, unit: str) -> pa.Table:
        kind = pa.timestamp(unit, "UTC")
        times = {
            n: pa.array(table[n].cast("int64").combine_chunks()).cast(kind)
            for n in ("min_time", "max_time")
        }
        return pa.table({"id": table["id"], **times})

    for side in ("left", "right"):
        path = folder / f"{side}.parquet"
        table = pq.read_table(path)
        write(path, timed(table, "us" if mixed else "ns"))
    if mixed:
        _in_a_folder(lambda table: timed(table, "ns"))(folder / "right.parquet")
    place = "right.parquet" if mixed else "left.parquet"
    with pytest.raises(
        SchemaError, match=f"'min_time' has .found timestamp.ns.* in .*{place}.* micro"
    ):
        by_dataframes(spark, folder, way)
    assert "out" not in " ".join(names(folder))


# Permissions: in a process that gives its rights up, since they do not bind root


@pytest.fixture
def open_folders() -> Iterator[list[Path]]:
    """As `folder`, one for each of `DENIED`, where every user may go."""
    with tempfile.TemporaryDirectory(prefix="coincide-test-") as name:
        folders = [Path(name) / action for action in DENIED]
        for folder in folders:
            (folder / "results").mkdir(parents=True)
            for seed, side in enumerate(("left", "right")):
                write(folder / f"{side}.parquet", stream(4000, seed))
            for path in (Path(name), folder, folder / "results"):
                path.chmod(0o755)
        yield folders
        for folder in folders:
            (folder / "right.parquet").chmod(0o755)


def as_nobody(parent: Path) -> None:
    """In a process of its own: do all that is denied without root's rights."""
    if os.geteuid() == 0:
        # As root first, whom no permission binds: the user `nobody` may be unable to enter the
        # folder of a module that is loaded late, such as a clone below a home of mode 0700.
        for name, (action, _, _) in DENIED.items():
            with suppress(DataError):
                action(parent / name)
        os.setgroups([])
        os.setgid(NO_EVENT)
        os.setuid(NO_EVENT)
    for name, (action, _, _) in DENIED.items():
        try:
            action(parent / name)
        except DataError as error:
            print(name, "refused", error)


def plan(folder: Path) -> None:
    from tests.helpers.joins import plan_files

    plan_files(folder / "left.parquet", folder / "right.parquet", CONDITION, parallelism=1)


def enter(folder: Path) -> None:
    with Output(folder / "results" / "out", False):
        pass


def read(folder: Path) -> None:
    """Plan with a file of this user, then take the permission away."""
    from tests.helpers.joins import local_files_join

    own = Path(tempfile.mkdtemp()) / "left.parquet"
    own.write_bytes((folder / "left.parquet").read_bytes())
    job = local_files_join(own, folder / "right.parquet", CONDITION)
    own.chmod(0)
    try:
        list(job.batches())
    finally:
        own.unlink()
        own.parent.rmdir()


def _closed_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0)


DENIED: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], str]] = {
    "file": (plan, lambda path: path.chmod(0), "right: you have no permission to read {}"),
    "folder": (plan, _closed_folder, "right: you have no permission to read {}"),
    "between plan and read": (
        read, lambda path: None, "left: you have no permission to read /",
    ),
    "output": (
        enter, lambda path: path.with_name("results").chmod(0o555),
        "you have no permission to write the output {0.parent}/results/out",
    ),
}  # fmt: skip


def test_without_permission(open_folders: list[Path]) -> None:
    for folder, (_, spoil, _) in zip(open_folders, DENIED.values(), strict=True):
        spoil(folder / "right.parquet")
    told = run("as_nobody", str(open_folders[0].parent))
    for folder, (_, _, words) in zip(open_folders, DENIED.values(), strict=True):
        assert f"{folder.name} refused {words.format(folder / 'right.parquet')}" in told
        assert list((folder / "results").iterdir()) == []


def start(function: str, *words: str, **more: str) -> subprocess.Popen[str]:
    """Call a function of this module in a process of its own."""
    arguments = f"*{words[:-1]!r}, t.Path({words[-1]!r})"
    code = f"import {__name__} as t; t.{function}({arguments})"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=spark_environment(**more),
    )  # fmt: skip


def run(function: str, *words: str, **more: str) -> str:
    with start(function, *words, **more) as process:
        told, said = process.communicate(timeout=240)
    assert process.returncode == 0, said[-3000:]
    return told


# A full disk


def test_no_room_for_a_file(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Limited(FileTask):
        """As its base, but one slice has no room."""

        def write(self, number: int) -> SliceReport:
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            if number == 2:
                resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
            try:
                return super().write(number)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

    # Spark sends a class of a function by its content: workers do not know this module.
    with monkeypatch.context() as patched:
        patched.setattr(direct, "FileTask", Limited)
        with pytest.raises(DataError, match=r"cannot write .*/part-00002-.*: File too large"):
            correlate(spark, folder)
    assert names(folder) == ["left.parquet", "right.parquet"]
    assert_whole(folder, correlate(spark, folder))


def fill_the_disk(folder: Path) -> None:
    """In a process of its own, whose output folder is small: join on both engines."""
    from coincide.command_line import run as coincide
    from spark_plugin.cluster.session import local_session

    spark = local_session("local[2]", "coincide-faults")
    try:
        correlate(spark, folder, output=folder / "results" / "out")
    except DataError as error:
        print("refused", error)
    spark.stop()
    files = [str(folder / f"{side}.parquet") for side in ("left", "right")]
    window = ["--within=-300us", "100us", "--unit", "us", "--confidence", "0.7"]
    for engine in ("local", "spark"):
        out = str(folder / "results" / f"{engine}.parquet")
        print(engine, coincide(["join", *files, "-o", out, *window, "--engine", engine]))
    print("left", names(folder / "results"))


def can_mount() -> bool:
    try:
        tried = subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False
        )
    except FileNotFoundError:
        return False
    return tried.returncode == 0


@pytest.mark.slow
def test_a_full_disk(folder: Path, java_home: str) -> None:
    if not can_mount():
        pytest.skip("needs a file system of its own: unshare and mount are not allowed here")
    (folder / "results").mkdir()
    code = f"import {__name__} as t; t.fill_the_disk(t.Path({str(folder)!r}))"
    script = f'mount -t tmpfs -o size=24k tmpfs "{folder}/results" && exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, sys.executable, code],
        env=spark_environment(JAVA_HOME=java_home),
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    full = "No space left on device"
    told = done.stdout.splitlines()
    assert told[0].startswith(f"refused cannot write {folder}/results/.out.coincide-")
    assert told[0].endswith(full)
    assert told[1:] == ["local 2", "spark 2", "left []"]
    said = [line for line in done.stderr.splitlines() if line.startswith("coincide: ")]
    assert [line.endswith(full) for line in said] == [True, True], done.stderr


# Attempts and killed drivers


class NeverEnds(FileTask):
    """As its base, but no slice after the first one ends."""

    def write(self, number: int) -> SliceReport:
        report = super().write(number)
        if number:
            (Path(os.environ[NOTES]) / "written").touch()
            time.sleep(600)
        return report


def _wait_until(happens: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def join_with(task: str, folder: Path) -> None:
    """In a process of its own: join by a task of this module."""
    from spark_plugin.cluster.session import local_session

    direct.FileTask = globals()[task]
    spark = local_session("local[2]", "coincide-faults")
    correlate(spark, folder, overwrite=True)


def test_two_attempts_that_both_finish(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with speculation, where Spark takes one result; it makes no copies on one machine."""

    class Twice(FileTask):
        """As its base, but another attempt has written each slice before."""

        def write(self, number: int) -> SliceReport:
            super().write(number)
            return super().write(number)

    aside: list[str] = []
    publish = Output.publish

    def noted(output: Output, paths: set[str]) -> None:
        aside.extend(names(Path(output.aside)))
        publish(output, paths)

    monkeypatch.setattr(direct, "FileTask", Twice)
    monkeypatch.setattr(Output, "publish", noted)
    assert_whole(folder, correlate(spark, folder))
    assert len([name for name in aside if name.startswith("part-")]) == 2 * SLICES


@pytest.mark.slow
@pytest.mark.parametrize("older", [False, True])
def test_a_killed_driver(spark: SparkSession, folder: Path, java_home: str, older: bool) -> None:
    notes = folder / "notes"
    notes.mkdir()
    before = correlate(spark, folder, emit="counts") if older else None
    more = {NOTES: str(notes), "JAVA_HOME": java_home}
    with start("join_with", "NeverEnds", str(folder), **more) as process:
        _wait_until(lambda: (notes / "written").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()[1][-3000:]
        process.send_signal(signal.SIGKILL)
    left = [name for name in names(folder) if name.startswith(".out.coincide-")]
    assert len(left) == 1
    assert any(name.startswith("part-") for name in names(folder / left[0] / "new"))
    if before is None:
        assert not (folder / "out").exists()
    else:
        assert pq.read_table(folder / "out").num_rows == before.rows
    assert_whole(folder, correlate(spark, folder, overwrite=True))
    assert names(folder) == ["left.parquet", "notes", "out", "right.parquet"]
