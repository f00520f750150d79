"""Which Parquet files a side consists of: files, folders, globs, on any file system of PyArrow."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs

from coincide.errors import DataError
from spark_plugin.worker.files.credentials import SCHEME, Redactor, check_encoded, shown

PARQUET_ENDINGS = (".parquet", ".parq", ".pq")
HIDDEN = ("_", ".")
"""How names begin that Spark passes over in folders."""

Given = str | os.PathLike[str] | Sequence[str]
"""What names the files of a side."""


@dataclass(frozen=True)
class ParquetFiles:
    """The files of one side, in order of their names.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``, for messages.
    filesystem : pyarrow.fs.FileSystem
    paths : tuple of str
    hide : Redactor
        Takes the secrets of what names the files out of a text.
    """

    side: str
    filesystem: fs.FileSystem
    paths: tuple[str, ...]
    hide: Redactor = field(default_factory=Redactor)

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Turn failures to read a file into a `DataError` that names it."""
        try:
            yield
        except FileNotFoundError as error:
            raise DataError(f"{self.side}: {path} is gone; was it replaced?") from error
        except PermissionError as error:
            raise DataError(f"{self.side}: no permission to read {path}") from error
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                self.hide(f"{self.side}: cannot read {path} as Parquet: {error}")
            ) from self.hide.cause(error)


def find_files(side: str, given: Given) -> ParquetFiles:
    """Look up files.

    Parameters
    ----------
    side : str
    given : str or path, or a sequence of them
        A file, a folder (with all below, names beginning with ``_`` or ``.`` apart), or a glob; a path
        of this machine or a URI that PyArrow understands. Several must be on one file system.

    Raises
    ------
    DataError
        If nothing is there.
    """
    words = words_of(given)
    if not words:
        raise DataError(f"{side}: no files were given")
    places = [place_of(side, word) for word in words]
    filesystem = places[0][0]
    if any(not other.equals(filesystem) for other, _ in places[1:]):
        raise DataError(
            f"{side}: files must be on one file system; found {', '.join(map(shown, words))}"
        )
    paths = [
        path
        for place, word in zip(places, words, strict=True)
        for path in _found(side, word, *place)
    ]
    return ParquetFiles(side, filesystem, tuple(sorted(set(paths))), Redactor.of(words))


def words_of(given: Given) -> list[str]:
    """What was given for a side, one word for each file, folder or glob."""
    return [os.fspath(one) for one in ([given] if isinstance(given, str | os.PathLike) else given)]


def place_of(what: str, word: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path that a word names.

    Parameters
    ----------
    what : str
        A side or ``"output"``, for messages.
    word : str
        A path of this machine or a URI.

    Raises
    ------
    DataError
        If PyArrow cannot open the file system.
    """
    if not word.strip():  # would be the working folder
        raise DataError(f"{what}: an empty name; name a path or a URI")
    if not SCHEME.match(word):
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(word))
    check_encoded(f"{what}:", word)
    try:
        filesystem, path = fs.FileSystem.from_uri(word)
    except (pa.ArrowException, OSError) as error:
        hide = Redactor.of([word])
        said = hide(f"{what}: cannot open {shown(word)}: {error}")
        raise DataError(said) from hide.cause(error)
    return filesystem, path.rstrip("/") or path


def _found(side: str, word: str, filesystem: fs.FileSystem, path: str) -> list[str]:
    name, hide = shown(word), Redactor.of([word])
    try:
        there = filesystem.get_file_info(path)
        if there.type == fs.FileType.File:
            return [path]
        if there.type == fs.FileType.Directory:
            paths = _visible(filesystem, path)
            if not paths:
                raise DataError(f"{side}: the folder {name} holds no files")
            return paths
        if glob.has_magic(path):
            paths = _matching(filesystem, path)
            if paths:
                return paths
            raise DataError(f"{side}: no file matches {name}")
    except PermissionError as error:
        raise DataError(f"{side}: no permission to read {name}") from error
    except (pa.ArrowException, OSError) as error:
        said = hide(f"{side}: cannot look at {name}: {error}")
        raise DataError(said) from hide.cause(error)
    raise DataError(f"{side}: {name} does not exist")


def _visible(filesystem: fs.FileSystem, folder: str) -> list[str]:
    """Files below a folder, without those that Spark passes over."""
    below = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    files = [info.path for info in below if info.type == fs.FileType.File]
    root = PurePosixPath(folder)
    return [
        path
        for path in files
        if not any(part.startswith(HIDDEN) for part in PurePosixPath(path).relative_to(root).parts)
    ]


def _matching(filesystem: fs.FileSystem, pattern: str) -> list[str]:
    """Files that a glob names, and those in folders that it names."""
    if "**" in pattern:
        raise DataError(
            f"** has no meaning in {pattern}; name a folder, which is all that is below it"
        )
    parts = PurePosixPath(pattern).parts
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    base = str(PurePosixPath(*parts[:first]))
    if filesystem.get_file_info(base).type != fs.FileType.Directory:
        return []
    found: list[str] = []
    for info in filesystem.get_file_info(fs.FileSelector(base, recursive=len(parts) > first + 1)):
        # A star stands for no hidden file, such as a mark of success, unless the pattern names it so.
        named = parts[-1].startswith(HIDDEN) or not info.base_name.startswith(HIDDEN)
        if named and PurePosixPath(info.path).match(pattern):
            folder = info.type == fs.FileType.Directory
            found += _visible(filesystem, info.path) if folder else [info.path]
    return found
