"""Where the output goes: it is written aside and takes its place at the end, or not at all."""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from spark_plugin.command_line.inputs import Source, local_path, visible_files
from spark_plugin.command_line.problems import Problem
from spark_plugin.credentials import NOT_FOR_SPARK, holds_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHER_FORMATS = (".csv", ".arrow", ".arrows", ".feather", ".ipc", ".json")
_OURS = ("part-*.parquet", "_SUCCESS", ".*.crc")
"""What Spark writes into the folder of an output; it makes no subfolders."""


class LocalOutput:
    """A file or folder on this machine, as a context manager.

    Write to `aside`, then call `commit`. Leaving without it takes everything away again.

    Parameters
    ----------
    text : str
        As the user wrote it.
    path : str
        Absolute path.
    overwrite : bool
        Whether an older output may be replaced.

    Raises
    ------
    Problem
        If the output cannot go there.
    """

    def __init__(self, text: str, path: str, overwrite: bool) -> None:
        self.text, self.path = text, os.path.realpath(path)
        folder, name = os.path.split(self.path)
        if not os.path.isdir(folder):
            raise Problem(f"the folder of the output {text} does not exist; make it first")
        if not name:
            raise Problem(f"the output {text} is no name for a file or folder")
        if os.path.lexists(self.path):
            _check_replaceable(text, self.path, overwrite)
        if not os.access(folder, os.W_OK):
            raise Problem(f"no permission to write the output {text}")
        self.aside = os.path.join(folder, f".{name}.coincide-{os.getpid()}")
        self._old = self.aside + ".old"

    def __enter__(self) -> LocalOutput:
        _remove(self.aside)
        # Some folders take no files, whatever their permissions say.
        try:
            os.mkdir(self.aside)
            os.rmdir(self.aside)
        except OSError as error:
            raise Problem(f"cannot write the output {self.text}: {error.strerror}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _remove(self.aside)

    def open(self) -> tuple[fs.FileSystem, str]:
        """File system and path to write one file to."""
        return fs.LocalFileSystem(), self.aside

    def open_folder(self) -> tuple[fs.FileSystem, str]:
        """File system and path of a new folder to write files to."""
        os.mkdir(self.aside)
        return fs.LocalFileSystem(), self.aside

    def keep_only(self, files: Collection[str]) -> None:
        """Remove all files of the folder but these, and mark it as complete."""
        for file in visible_files(self.aside):
            if file not in files:
                os.remove(file)
        Path(self.aside, "_SUCCESS").touch()

    def rows(self) -> int | None:
        """Rows written so far, from the footers of the files."""
        files = visible_files(self.aside) if os.path.isdir(self.aside) else [self.aside]
        return sum(pq.read_metadata(file).num_rows for file in files)

    def commit(self) -> None:
        """Put the output in its place, instead of an older one."""
        if os.path.isdir(self.path) or (os.path.lexists(self.path) and os.path.isdir(self.aside)):
            os.rename(self.path, self._old)
            try:
                os.rename(self.aside, self.path)
            except BaseException:
                os.rename(self._old, self.path)
                raise
            _remove(self._old)
        else:
            os.replace(self.aside, self.path)


class UriFile:
    """One file in another file system, written by PyArrow. Used like `LocalOutput`."""

    def __init__(self, text: str, filesystem: fs.FileSystem, path: str, overwrite: bool) -> None:
        self.text, self.path, self._filesystem = text, path.rstrip("/"), filesystem
        there = filesystem.get_file_info(self.path)
        if there.type == fs.FileType.Directory:
            raise Problem(f"the output {text} is a folder; name a file")
        if there.type != fs.FileType.NotFound and not overwrite:
            raise Problem(_exists(text))
        folder, _, name = self.path.rpartition("/")
        self.aside = f"{folder}/.{name}.coincide-{os.getpid()}"

    def __enter__(self) -> UriFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._filesystem.get_file_info(self.aside).type != fs.FileType.NotFound:
            self._filesystem.delete_file(self.aside)

    def open(self) -> tuple[fs.FileSystem, str]:
        """File system and path to write one file to."""
        return self._filesystem, self.aside

    def commit(self) -> None:
        """Put the output in its place, instead of an older one."""
        self._filesystem.move(self.aside, self.path)


class SparkUri:
    """A folder in another file system. Spark's committer writes it; nothing is moved afterwards."""

    def __init__(self, text: str, overwrite: bool) -> None:
        self.text = text
        self.mode = "overwrite" if overwrite else "errorifexists"

    def __enter__(self) -> SparkUri:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def rows(self) -> int | None:
        """Unknown."""
        return None

    def commit(self) -> None:
        """Spark has done it."""


def local_output(text: str, overwrite: bool, sources: Sequence[Source]) -> LocalOutput | UriFile:
    """Where the local engine writes its file. Raises `Problem` if it cannot."""
    _check_name(text)
    path = local_path(text)
    if path is None:
        _check_uri_inputs(text, sources)
        try:
            filesystem, place = fs.FileSystem.from_uri(text)
            return UriFile(text, filesystem, place, overwrite)
        except (pa.ArrowException, OSError) as error:
            raise Problem(f"cannot write {text}: {error}") from error
    _check_inputs(text, path, sources)
    return LocalOutput(text, path, overwrite)


def spark_output(text: str, overwrite: bool, sources: Sequence[Source]) -> LocalOutput | SparkUri:
    """Where Spark writes its folder. Raises `Problem` if it cannot."""
    _check_name(text)
    path = local_path(text)
    if path is None:
        if holds_settings(text):
            raise Problem(f"the output {text} {NOT_FOR_SPARK}")
        _check_uri_inputs(text, sources)
        return SparkUri(text, overwrite)
    _check_inputs(text, path, sources)
    return LocalOutput(text, path, overwrite)


def write_frame(frame: DataFrame, output: LocalOutput | SparkUri) -> None:
    """Let Spark write a DataFrame to an output."""
    if isinstance(output, SparkUri):
        frame.write.mode(output.mode).parquet(output.text)
    else:
        frame.write.parquet("file://" + output.aside)


def _check_name(text: str) -> None:
    if not text.strip():
        raise Problem("the output has no name; say where to write, with -o")
    if text.lower().endswith(_OTHER_FORMATS):
        raise Problem(f"the output is Parquet, but {text} is named otherwise; end it in .parquet")


def _check_replaceable(text: str, path: str, overwrite: bool) -> None:
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise Problem(
            f"the output {text} is there and is neither a file nor a folder; write elsewhere"
        )
    if not overwrite:
        raise Problem(_exists(text))
    if os.path.isdir(path):
        _check_own(text, path)


def _check_own(text: str, folder: str) -> None:
    """Refuse to replace a folder with anything in it, hidden or below, that Spark did not write."""
    with os.scandir(folder) as entries:
        others = sorted(
            entry.name
            for entry in entries
            if not (entry.is_file() and any(fnmatch.fnmatchcase(entry.name, p) for p in _OURS))
        )
    if others:
        raise Problem(
            f"the output {text} is a folder that holds {others[0]}, which is no output of a join;"
            " --overwrite replaces only what Spark wrote (part-*.parquet, _SUCCESS). Remove it"
            " yourself, or write elsewhere"
        )


def _exists(text: str) -> str:
    return f"the output {text} exists already; write elsewhere, or add --overwrite to replace it"


def _check_inputs(text: str, path: str, sources: Sequence[Source]) -> None:
    out = os.path.realpath(path)
    for source in sources:
        if source.is_uri:
            continue
        given = [os.path.realpath(one) for one in (source.folder, *source.files) if one]
        if out in given or any(_is_same(path, one) for one in given):
            raise Problem(f"the output {text} is the {source.side} input; write elsewhere")
        if source.folder and _inside(out, given[0]):
            raise Problem(f"the output {text} lies inside the {source.side} input; write elsewhere")
        if any(_inside(one, out) for one in given):
            raise Problem(f"the {source.side} input lies inside the output {text}; write elsewhere")
        pattern = local_path(source.text)
        if pattern and pattern not in source.paths and fnmatch.fnmatch(path, pattern):
            raise Problem(
                f"the output {text} matches the {source.side} input {source.text}; write elsewhere"
            )


def _check_uri_inputs(text: str, sources: Sequence[Source]) -> None:
    for source in sources:
        if source.is_uri and _inside(text.rstrip("/"), source.text.rstrip("/*")):
            raise Problem(f"the output {text} lies inside the {source.side} input; write elsewhere")


def _is_same(path: str, other: str) -> bool:
    """Whether two names are of one file: links have no path in common."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.remove(path)
