"""A file that is another when it is read than when the join was planned is an error, on every way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, within
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.footers import FileStamps, _ParsedFooters, read_footers
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, Places
from coincide.model.errors import DataError
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.joins import join_files, local_files_join

CONDITION = TimingCondition(within(-300, 100), 0.7)
OPTIONS = CorrelateOptions(slices=3)
CHANGED = r"right: .*right\.parquet has changed since planning"


def table(shift: int = 0, seed: int = 0, n: int = 2000) -> pa.Table:
    times = np.arange(n) * 20 + shift
    return pa.table(
        {
            "id": np.random.default_rng(seed).permutation(n),
            "min_time": times,
            "max_time": times + 60,
        }
    )


def write(path: Path, content: pa.Table) -> None:
    """So that the footer tells nothing of the ids, and is as long as ever."""
    pq.write_table(
        content, path, row_group_size=250, compression="none", use_dictionary=False,
        write_statistics=["min_time", "max_time"],
    )  # fmt: skip


def test_footers_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A footer of many row groups takes longer to parse than a slice takes to read."""
    parsed = []
    parse = pq.read_metadata
    monkeypatch.setattr(pq, "read_metadata", lambda source: parsed.append(1) or parse(source))
    paths = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for seed, path in enumerate(paths, 100):
        write(path, table(seed))
    job = local_files_join(*map(str, paths), CONDITION, options=CorrelateOptions(slices=6))
    assert sum(batch.num_rows for batch in job.batches())
    assert len(parsed) == 2


def test_few_bytes_of_footers_are_kept(tmp_path: Path) -> None:
    footers = []
    for shift in range(3):
        write(tmp_path / "a.parquet", table(shift))
        content = (tmp_path / "a.parquet").read_bytes()
        footers.append(content[-int.from_bytes(content[-8:-4], "little") - 8 :])
    kept = _ParsedFooters(2 * len(footers[0]))
    first, *_ = [kept.metadata(i, footer) for i, footer in enumerate(footers)]
    assert kept._bytes <= kept._most_bytes
    assert kept.metadata(2, footers[2]) is kept.metadata(2, b"")
    assert kept.metadata(0, footers[0]) is not first
    assert kept.metadata(0, footers[0]).equals(first)


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "left.parquet", tmp_path / "right.parquet"
    for path in paths:
        write(path, table())
        # Long ago: clocks of file systems tell milliseconds apart at best.
        os.utime(path, (10**9, 10**9))
    return paths


def _in_place(path: Path, content: pa.Table) -> None:
    other = path.with_suffix(".new")
    write(other, content)
    path.write_bytes(other.read_bytes())
    other.unlink()


def _renamed(path: Path, content: pa.Table) -> None:
    write(path.with_suffix(".new"), content)
    path.with_suffix(".new").rename(path)


def _back_in_time(path: Path, content: pa.Table) -> None:
    """As a copy that keeps times does."""
    before = path.stat()
    _renamed(path, content)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], None]] = {
    "other times, in place": lambda path: _in_place(path, table(10**9)),
    "other times, by name": lambda path: _renamed(path, table(10**9)),
    "other times, as old": lambda path: _back_in_time(path, table(10**9)),
    "times a little later": lambda path: _renamed(path, table(1)),
    "other ids only": lambda path: _renamed(path, table(seed=1)),
    "fewer row groups": lambda path: _renamed(path, table(n=500)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_in_one_process(sides: tuple[Path, Path], change: str) -> None:
    job = local_files_join(*sides, CONDITION, options=OPTIONS)
    CHANGES[change](sides[1])
    with pytest.raises(DataError, match=CHANGED):
        list(job.batches())


def test_between_two_slices(sides: tuple[Path, Path]) -> None:
    options = CorrelateOptions(slices=8)
    batches = local_files_join(*sides, CONDITION, options=options).batches()
    assert next(batches).num_rows
    _in_place(sides[1], table(10**9))
    with pytest.raises(DataError, match=CHANGED):
        list(batches)


def test_a_file_that_no_left_event_reaches(sides: tuple[Path, Path]) -> None:
    """It was far from all left events when planned, and is not any more."""
    write(sides[1], table(10**9))
    job = local_files_join(*sides, CONDITION, options=OPTIONS)
    _renamed(sides[1], table())
    with pytest.raises(DataError, match=CHANGED):
        list(job.batches())


def test_files_beside_it_do_not_matter(sides: tuple[Path, Path], tmp_path: Path) -> None:
    """The plan names its files: one that comes later is not read."""
    folder = tmp_path / "right"
    folder.mkdir()
    sides[1].rename(folder / "a.parquet")
    job = local_files_join(sides[0], folder, CONDITION, options=OPTIONS)
    write(folder / "b.parquet", table(seed=1))
    assert sum(batch.num_rows for batch in job.batches()) == job.summary.counters.pairs > 0
    assert job.summary.right.rows == 2000


@pytest.mark.spark
def test_on_spark(spark: SparkSession, sides: tuple[Path, Path], tmp_path: Path) -> None:
    frame = join_files(spark, *sides, CONDITION, way="files", options=OPTIONS)
    assert frame.count() > 0
    kept = tmp_path / "kept"
    shutil.copy2(sides[1], kept)
    _renamed(sides[1], table(10**9))
    with pytest.raises(PySparkException, match=CHANGED):
        frame.count()
    # The same content at the same time is the same file.
    kept.rename(sides[1])
    assert frame.count() > 0


@pytest.mark.spark
def test_by_the_data_source(spark: SparkSession, sides: tuple[Path, Path]) -> None:
    spark.dataSource.register(CoincideSource)
    options = {"left": sides[0], "right": sides[1], "within": "-300,100", "confidence": "70%"}
    frame = spark.read.format("coincide").options(**options).load()
    assert frame.count() > 0
    _renamed(sides[1], table(10**9))
    with pytest.raises(PySparkException, match=CHANGED):
        frame.count()


# File systems that tell less


class Bare(fs.FileSystemHandler):
    """Files of this machine, without sizes and times; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.after_opening: Callable[[str], Any] = lambda path: None

    def get_type_name(self) -> str:
        return "bare"

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self.asked += paths
        kinds = {True: fs.FileType.File, False: fs.FileType.NotFound}
        return [fs.FileInfo(path, kinds[os.path.exists(path)]) for path in paths]

    def open_input_file(self, path: str) -> pa.NativeFile:
        file = pa.OSFile(path)
        self.after_opening(path)
        return file

    def _refused(self, *_: Any) -> Any:
        raise NotImplementedError

    get_file_info_selector = create_dir = delete_dir = delete_dir_contents = _refused
    delete_root_dir_contents = delete_file = move = copy_file = open_input_stream = _refused
    open_output_stream = open_append_stream = normalize_path = _refused


class Timed(Bare):
    """As its base, but it tells sizes and times."""

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self.asked += paths
        return [fs.LocalFileSystem().get_file_info(path) for path in paths]


def planned(handler: Bare, path: Path) -> tuple[PlannedFiles, Parts]:
    files = ParquetFiles("right", fs.PyFileSystem(handler), (str(path),))
    (footer,) = footers = read_footers(files, ["min_time", "max_time"])
    places = Places(np.zeros(footer.rows.size, np.int32), footer.index, footer.rows)
    found = PlannedFiles(files, footer.schema, FileStamps.of([one.stamp for one in footers]))
    return found, Parts.whole(places)


def read(files: PlannedFiles, parts: Parts) -> pa.Table:
    return files.read(parts, ["id", "min_time"], False)


def test_where_no_sizes_and_times_are_told(sides: tuple[Path, Path]) -> None:
    found, parts = planned(Bare(), sides[1])
    assert read(found, parts).num_rows == 2000
    os.utime(sides[1])
    assert read(found, parts).num_rows == 2000
    write(sides[1], table(1))
    with pytest.raises(DataError, match=CHANGED):
        read(found, parts)


def test_each_opening_asks_once(sides: tuple[Path, Path]) -> None:
    handler = Timed()
    found, parts = planned(handler, sides[1])
    assert len(handler.asked) == 1
    read(found, parts)
    assert len(handler.asked) == 2


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_a_file_that_changes_while_it_is_read(sides: tuple[Path, Path], how: str) -> None:
    handler = Timed()
    found, parts = planned(handler, sides[1])
    changes = {"changed": lambda path: _in_place(Path(path), table(seed=1)), "gone": os.unlink}
    handler.after_opening = changes[how]
    words = {"changed": CHANGED, "gone": r"right: .*right\.parquet is gone"}
    with pytest.raises(DataError, match=words[how]):
        read(found, parts)


def test_footers_longer_than_the_first_read(tmp_path: Path) -> None:
    path = tmp_path / "right.parquet"
    pq.write_table(table(), path, row_group_size=2)
    assert pq.read_metadata(path).serialized_size > 1 << 16
    found, parts = planned(Bare(), path)
    assert read(found, parts).equals(table().select(["id", "min_time"]))
