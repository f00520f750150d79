"""Where the output goes: it is written aside and takes its place at the end, or not at all."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Collection, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from pyarrow import fs

from spark_plugin.command_line.inputs import Source, local_path
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.files.credentials import (
    NOT_FOR_SPARK,
    check_encoded,
    holds_settings,
    shown,
)
from spark_plugin.worker.files.finding import place_of
from spark_plugin.worker.files.publishing import Publication, foreign

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OTHER_FORMATS = (".csv", ".arrow", ".arrows", ".feather", ".ipc", ".json")


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

    def publish(self, paths: Collection[str] | None = None) -> None:
        """Spark has done it."""


def local_output(text: str, overwrite: bool, sources: Sequence[Source]) -> Publication:
    """Where the local engine writes its file. Raises `Problem` if it cannot."""
    _check_name(text)
    path = local_path(text)
    if path is not None:
        return _on_this_machine(text, path, overwrite, sources, is_folder=False)
    _check_uri_inputs(text, sources)
    filesystem, place = place_of("output", text)
    check = partial(_check_old_file, text, overwrite)
    return Publication(f"the output {shown(text)}", filesystem, place, check, is_folder=False)


def spark_output(text: str, overwrite: bool, sources: Sequence[Source]) -> Publication | SparkUri:
    """Where Spark writes its folder. Raises `Problem` if it cannot."""
    _check_name(text)
    path = local_path(text)
    if path is not None:
        return _on_this_machine(text, path, overwrite, sources, is_folder=True)
    check_encoded("the output", text)
    if holds_settings(text):
        raise Problem(f"the output {text} {NOT_FOR_SPARK}")
    _check_uri_inputs(text, sources)
    return SparkUri(text, overwrite)


def _on_this_machine(
    text: str, path: str, overwrite: bool, sources: Sequence[Source], is_folder: bool
) -> Publication:
    _check_inputs(text, path, sources)
    folder, name = os.path.split(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise Problem(f"the folder of the output {text} does not exist; make it first")
    if not name:
        raise Problem(f"the output {text} is no name for a file or folder")
    check = partial(_check_old, text, overwrite)
    filesystem = fs.LocalFileSystem()
    output = Publication(f"the output {text}", filesystem, path, check, is_folder)
    if not os.access(folder, os.W_OK):
        raise Problem(f"no permission to write the output {text}")
    return output


def write_frame(frame: DataFrame, output: Publication | SparkUri) -> None:
    """Let Spark write a DataFrame to an output."""
    if isinstance(output, SparkUri):
        frame.write.mode(output.mode).parquet(output.text)
    else:
        frame.write.mode("append").parquet("file://" + output.aside)


def _check_name(text: str) -> None:
    if not text.strip():
        raise Problem("the output has no name; say where to write, with -o")
    if text.lower().endswith(_OTHER_FORMATS):
        raise Problem(f"the output is Parquet, but {text} is named otherwise; end it in .parquet")


def _check_old(text: str, overwrite: bool, there: fs.FileInfo) -> None:
    """Refuse to replace what is in the place of an output of this machine, if it must not be."""
    if there.type not in (fs.FileType.File, fs.FileType.Directory):
        raise Problem(
            f"the output {text} is there and is neither a file nor a folder; write elsewhere"
        )
    if not overwrite:
        raise Problem(_exists(text))
    if there.type == fs.FileType.Directory:
        other = foreign(fs.LocalFileSystem(), there.path)
        if other is not None:
            raise Problem(
                f"the output {text} is a folder that holds {other}, which is no output of a join;"
                " --overwrite replaces only what Spark wrote (part-*.parquet, _SUCCESS). Remove it"
                " yourself, or write elsewhere"
            )


def _check_old_file(text: str, overwrite: bool, there: fs.FileInfo) -> None:
    """The same, of a file elsewhere."""
    if there.type == fs.FileType.Directory:
        raise Problem(f"the output {text} is a folder; name a file")
    if not overwrite:
        raise Problem(_exists(text))


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
