"""The output of a join of files: a folder that appears whole or not at all."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from pyarrow import fs

from coincide.errors import DataError
from spark_plugin.worker.files.credentials import NOT_FOR_SPARK, Redactor, holds_settings, shown
from spark_plugin.worker.files.finding import Given, find_files, place_of, words_of
from spark_plugin.worker.files.publishing import Publication, foreign

_WITHOUT_RENAME = ("s3", "gcs")


class OutputFolder(Publication):
    """Where files are written aside, and then published.

    As a context manager: leaving it takes away what was not published.

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
        self._given, self._overwrite = os.fspath(output), overwrite
        self.text = Redactor.of([self._given])(shown(self._given))
        filesystem, path = place_of("output", self._given)
        self._check_parent(filesystem, path)
        super().__init__(f"the output {self.text}", filesystem, path, self._check_old, True)

    @property
    def uri(self) -> str:
        """`aside` as Spark names it."""
        if self.filesystem.type_name == "local":
            return f"file://{self.aside}"
        if holds_settings(self._given):
            raise DataError(f"{self.name} {NOT_FOR_SPARK}")
        parent = self._given.rstrip("/").rpartition("/")[0]
        return "/".join([parent, *PurePosixPath(self.aside).parts[-2:]])

    def publish_all(self) -> tuple[int, int]:
        """Publish all Parquet files that are aside; their rows, and their bytes."""
        files, rows = self.results(), self.rows()
        self.publish({info.path for info in files})
        return rows, sum(info.size for info in files)

    def check_inputs(self, side: str, given: Given) -> None:
        """Refuse an output in which an input lies, or which lies in one.

        Raises
        ------
        DataError
        """
        output = PurePosixPath(self.path)
        folders = [_real(*place_of(side, word)) for word in words_of(given)]
        found = find_files(side, given)
        files = [_real(found.filesystem, path) for path in found.paths]
        if any(output.is_relative_to(one) for one in folders) or any(
            one.is_relative_to(output) for one in files
        ):
            raise DataError(f"the output {self.text} and the {side} input overlap; write elsewhere")

    def _check_parent(self, filesystem: fs.FileSystem, path: str) -> None:
        if filesystem.type_name in _WITHOUT_RENAME:
            raise DataError(
                f"the output {self.text} lies where folders cannot be renamed, so it could be seen half"
                " written; write to a local or HDFS folder and copy it, or write the DataFrame with Spark"
            )
        try:
            parent = filesystem.get_file_info(str(PurePosixPath(path).parent))
        except PermissionError as error:
            raise DataError(f"no permission to look at the output {self.text}") from error
        if parent.type != fs.FileType.Directory:
            raise DataError(f"the folder of the output {self.text} does not exist; make it first")

    def _check_old(self, there: fs.FileInfo) -> None:
        """Refuse to replace what must not, or cannot be."""
        if not self._overwrite:
            raise DataError(
                f"the output {self.text} exists already; pass overwrite=True to replace it"
            )
        if there.type != fs.FileType.Directory:
            raise DataError(f"the output {self.text} is a file; name a folder, or remove it")
        other = foreign(self.filesystem, self.path)
        if other is not None:
            raise DataError(
                f"the output {self.text} holds {other}, which is no result of a join; only such are"
                " replaced. Remove it yourself, or write elsewhere"
            )


def _real(filesystem: fs.FileSystem, path: str) -> PurePosixPath:
    """A path as that of a publication, without links."""
    return PurePosixPath(os.path.realpath(path) if filesystem.type_name == "local" else path)
