"""A folder of result files that appears whole or not at all."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import PurePosixPath

import pyarrow.parquet as pq
from pyarrow import fs

from event_model.errors import DataError
from spark_plugin.credentials import without_credentials
from spark_plugin.direct.files import Given, find_files, place_of, words_of
from spark_plugin.parquet_rows import writing

SUCCESS = "_SUCCESS"
_ASIDE = ".coincide-"
_WITHOUT_RENAME = ("s3", "gcs")
_RESULT = re.compile(r"\.?part-.*(\.parquet|\.crc)|\._SUCCESS\.crc|_SUCCESS")


class OutputFolder:
    """Where files are written aside, and then published.

    As a context manager: leaving it takes away what was not published. One run at a time may write to
    an output; entering takes away what a killed run has left.

    Parameters
    ----------
    output : str or path
        A path of this machine or a URI.
    overwrite : bool
        Whether an older folder of results may be replaced.

    Raises
    ------
    DataError
        If it exists and must not, or cannot be, replaced, or its parent is missing.
    """

    def __init__(self, output: str | os.PathLike[str], overwrite: bool) -> None:
        self._given = os.fspath(output)
        self.text = without_credentials(self._given)
        self.filesystem, self.path = place_of("output", self._given)
        parent, name = str(PurePosixPath(self.path).parent), PurePosixPath(self.path).name
        self._parent, self._prefix = parent, f"{parent}/.{name}{_ASIDE}"
        self.aside = self._prefix + uuid.uuid4().hex
        self._old = self._prefix + "old-"
        self._check_place()
        self._restore()
        self._check(overwrite)

    def __enter__(self) -> OutputFolder:
        with self._writing():
            self._clean()
            self.filesystem.create_dir(self.aside)
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._clean()

    @property
    def uri(self) -> str:
        """`aside` as Spark names it."""
        if self.filesystem.type_name == "local":
            return f"file://{self.aside}"
        parent = self._given.rstrip("/").rpartition("/")[0]
        return f"{parent}/{PurePosixPath(self.aside).name}"

    def publish_all(self) -> tuple[int, int]:
        """Publish all Parquet files that are aside; their rows, and their bytes."""
        files = [info for info in self._listed(self.aside) if info.path.endswith(".parquet")]
        rows = 0
        for info in files:
            with self.filesystem.open_input_file(info.path) as source:
                rows += pq.read_metadata(source).num_rows
        self.publish({info.path for info in files})
        return rows, sum(info.size for info in files)

    def publish(self, paths: Collection[str]) -> None:
        """Put exactly these files in place, then the mark of success, instead of an older folder.

        Parameters
        ----------
        paths : collection of str
            Files in `aside`. Others there come from attempts that were given up, and go.

        Raises
        ------
        DataError
            If the file system refuses; an older folder is in its place then.
        """
        with self._writing():
            self._keep(self.aside, paths)
            with self.filesystem.open_output_stream(f"{self.aside}/{SUCCESS}"):
                pass
            self._replace()
            # An attempt that was given up late may have begun a file meanwhile.
            self._keep(self.path, {SUCCESS, *paths})

    def _keep(self, folder: str, paths: Collection[str]) -> None:
        """Remove all files of a folder that have other names than these."""
        names = {PurePosixPath(path).name for path in paths}
        for info in self._listed(folder):
            if PurePosixPath(info.path).name not in names:
                self.filesystem.delete_file(info.path)

    def _replace(self) -> None:
        """Rename `aside` to the output; an older output goes, or stays if that fails."""
        old = self._old + uuid.uuid4().hex
        replaced = self._type(self.path) != fs.FileType.NotFound
        if replaced:
            self.filesystem.move(self.path, old)
        try:
            self.filesystem.move(self.aside, self.path)
        except BaseException:
            if replaced:
                self.filesystem.move(old, self.path)
            raise

    def check_inputs(self, side: str, given: Given) -> None:
        """Refuse an output in which an input lies, or which lies in one.

        Raises
        ------
        DataError
        """
        output = PurePosixPath(self.path)
        folders = [PurePosixPath(place_of(side, word)[1]) for word in words_of(given)]
        files = map(PurePosixPath, find_files(side, given).paths)
        if any(output.is_relative_to(one) for one in folders) or any(
            one.is_relative_to(output) for one in files
        ):
            raise DataError(f"the output {self.text} and the {side} input overlap; write elsewhere")

    def _restore(self) -> None:
        """Put back what a run that was killed between taking away and replacing has taken away."""
        if self._type(self.path) != fs.FileType.NotFound:
            return
        taken = [
            info.path for info in self._listed(self._parent) if info.path.startswith(self._old)
        ]
        if taken:
            self.filesystem.move(taken[0], self.path)

    def _check_place(self) -> None:
        if self.filesystem.type_name in _WITHOUT_RENAME:
            raise DataError(
                f"the output {self.text} lies where folders cannot be renamed, so it could be seen half"
                " written; write to a local or HDFS folder and copy it, or write the DataFrame with Spark"
            )
        if self._type(self._parent) != fs.FileType.Directory:
            raise DataError(f"the folder of the output {self.text} does not exist; make it first")

    def _check(self, overwrite: bool) -> None:
        there = self._type(self.path)
        if there == fs.FileType.NotFound:
            return
        if not overwrite:
            raise DataError(
                f"the output {self.text} exists already; pass overwrite=True to replace it"
            )
        if there != fs.FileType.Directory:
            raise DataError(f"the output {self.text} is a file; name a folder, or remove it")
        names = [PurePosixPath(info.path).name for info in self._listed(self.path)]
        foreign = next((name for name in names if not _RESULT.fullmatch(name)), None)
        if foreign is not None:
            raise DataError(
                f"the output {self.text} holds {foreign}, which is no result of a join; only such are"
                " replaced. Remove it yourself, or write elsewhere"
            )

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"the output {self.text}")

    def _type(self, path: str) -> fs.FileType:
        try:
            return self.filesystem.get_file_info(path).type
        except PermissionError as error:
            raise DataError(f"no permission to look at the output {self.text}") from error

    def _listed(self, folder: str) -> list[fs.FileInfo]:
        return self.filesystem.get_file_info(fs.FileSelector(folder))

    def _clean(self) -> None:
        """Take away what this run, or one that was killed, has left aside."""
        for info in self._listed(self._parent):
            if info.path.startswith(self._prefix):
                self.filesystem.delete_dir(info.path)
