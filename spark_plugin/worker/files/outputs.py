"""Where results may go: what may be replaced, and what must not, is checked before anything is written."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import PurePosixPath

from pyarrow import fs

from coincide.errors import DataError
from spark_plugin.worker.files.credentials import NOT_FOR_SPARK, Redactor, holds_settings, shown
from spark_plugin.worker.files.finding import ParquetFiles, is_local, place_of
from spark_plugin.worker.files.publishing import Publication, foreign

_WITHOUT_RENAME = ("s3", "gcs")


class Output(Publication):
    """A file, or a folder of files, which are written aside, and then published.

    As a context manager: leaving it takes away what was not published.

    Parameters
    ----------
    output : str or path
        A path of this machine or a URI.
    overwrite : bool
        Whether older results may be replaced.
    inputs : iterable of ParquetFiles
        None of them may be replaced, nor get the output among its files.
    is_folder : bool
        Whether it is to be a folder.
    replaces_files : bool
        Whether it may replace a file, too: nobody can tell whether that is a result.

    Raises
    ------
    DataError
        If something is there that must not, or cannot, be replaced, or the parent is missing.
    """

    def __init__(
        self,
        output: str | os.PathLike[str],
        overwrite: bool,
        inputs: Iterable[ParquetFiles] = (),
        *,
        is_folder: bool = True,
        replaces_files: bool = False,
    ) -> None:
        self._given, self._overwrite = os.fspath(output), overwrite
        self._replaces_files = replaces_files
        self.text = Redactor.of([self._given])(shown(self._given))
        filesystem, path = place_of("output", self._given)
        self._can_move_folders = filesystem.type_name not in _WITHOUT_RENAME
        for found in inputs:
            _check_apart(self.text, filesystem, path, found)
        if is_folder and not self._can_move_folders:
            raise DataError(
                f"the output {self.text} lies where folders cannot be renamed, so it could be seen half"
                " written; write to a local or HDFS folder and copy it, or write the DataFrame with Spark"
            )
        if self._can_move_folders:
            self._check_parent(filesystem, path)
        super().__init__(f"the output {self.text}", filesystem, path, self._check_old, is_folder)
        parent = os.path.dirname(self.path)
        if is_local(filesystem) and not os.access(parent, os.W_OK):
            raise DataError(f"no permission to write the output {self.text}")

    @property
    def uri(self) -> str:
        """`aside` as Spark names it."""
        return self.uri_of(self.aside)

    def uri_of(self, path: str) -> str:
        """A path of this run as Spark names it.

        Raises
        ------
        DataError
            If the output's URI holds what Spark would not understand.
        """
        if is_local(self.filesystem):
            return f"file://{path}"
        if holds_settings(self._given):
            raise DataError(f"{self.name} {NOT_FOR_SPARK}")
        parent = self._given.rstrip("/").rpartition("/")[0]
        return "/".join([parent, *PurePosixPath(path).parts[-2:]])

    def _check_parent(self, filesystem: fs.FileSystem, path: str) -> None:
        real = _real(filesystem, path)
        if not real.name:
            raise DataError(f"the output {self.text} is no name for a file or folder")
        try:
            parent = filesystem.get_file_info(str(real.parent))
        except PermissionError as error:
            raise DataError(f"no permission to look at the output {self.text}") from error
        if parent.type != fs.FileType.Directory:
            raise DataError(f"the folder of the output {self.text} does not exist; make it first")

    def _check_old(self, there: fs.FileInfo) -> None:
        """Refuse to replace what must not, or cannot be."""
        if there.type not in (fs.FileType.File, fs.FileType.Directory):
            raise DataError(
                f"the output {self.text} is there and is neither a file nor a folder; write elsewhere"
            )
        if there.type == fs.FileType.Directory and not self._can_move_folders:
            raise DataError(f"the output {self.text} is a folder; name a file")
        if not self._overwrite:
            raise DataError(
                f"the output {self.text} exists already; write elsewhere, or pass overwrite=True to"
                " replace it"
            )
        if there.type == fs.FileType.File:
            if not self._replaces_files:
                raise DataError(f"the output {self.text} is a file; name a folder, or remove it")
            return
        other = foreign(self.filesystem, there.path)
        if other is not None:
            raise DataError(
                f"the output {self.text} is a folder that holds {other}, which is no output of a join;"
                " only what a join or Spark wrote is replaced (part-*.parquet, _SUCCESS). Remove it"
                " yourself, or write elsewhere"
            )


def _check_apart(text: str, filesystem: fs.FileSystem, path: str, found: ParquetFiles) -> None:
    """Refuse an output that is an input, or lies in one, or around one, or would be one next time."""
    if filesystem.type_name != found.filesystem.type_name:
        return
    side, out = found.side, _real(filesystem, path)
    files = [_real(filesystem, file) for file in found.paths]
    given = [place_of(side, word)[1] for word in found.words]
    folders = [_real(filesystem, one) for one in given]
    if out in (*folders, *files) or (is_local(filesystem) and _is_linked(out, files)):
        raise DataError(f"the output {text} is the {side} input; write elsewhere")
    if any(map(out.is_relative_to, folders)):
        raise DataError(f"the output {text} lies inside the {side} input; write elsewhere")
    if any(one.is_relative_to(out) for one in files):
        raise DataError(f"the {side} input lies inside the output {text}; write elsewhere")
    for word, pattern in zip(found.words, given, strict=True):
        if pattern not in found.paths and fnmatch.fnmatch(path, pattern):
            raise DataError(
                f"the output {text} matches the {side} input {shown(word)}; write elsewhere"
            )


def _is_linked(path: PurePosixPath, others: list[PurePosixPath]) -> bool:
    """Whether a file of this machine is one of others by another name: hard links share no path."""
    if not os.path.exists(path):
        return False
    own = os.stat(path)
    return any(os.path.samestat(own, os.stat(other)) for other in others)


def _real(filesystem: fs.FileSystem, path: str) -> PurePosixPath:
    """A path as that of a publication, without links."""
    return PurePosixPath(os.path.realpath(path) if is_local(filesystem) else path)
