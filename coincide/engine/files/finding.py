"""Which files a side consists of, what their names tell, and which columns they hold."""

from __future__ import annotations

import fnmatch
import glob
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from coincide.engine.files.credentials import SCHEME, Redactor, check_encoded, shown
from coincide.engine.files.file_constants import NO_CONSTANTS, FileConstants
from coincide.engine.files.lake_tables import (
    LOG,
    METADATA,
    METADATA_FILE,
    refuse_table_inside,
    table_files,
)
from coincide.model.errors import DataError

FILENAME = "filename"
"""Without folders: so it is the same by every way, and the same of both sides."""


def lacks_name(asked: Collection[str], own: Collection[str]) -> bool:
    """Whether `FILENAME` is asked for and is no column of the files."""
    return FILENAME in asked and FILENAME not in own


def with_name(schema: pa.Schema) -> pa.Schema:
    """A schema with `FILENAME` behind its columns."""
    return schema.append(pa.field(FILENAME, pa.string()))


def without_name(schema: pa.Schema) -> pa.Schema:
    """A schema without `FILENAME`."""
    return pa.schema([field for field in schema if field.name != FILENAME])


def named(table: pa.Table, path: str, names: Sequence[str]) -> pa.Table:
    """Columns of rows of a file, the name of the file among them."""
    name = file_name(path, table.num_rows)
    return pa.table([name if each == FILENAME else table[each] for each in names], list(names))


def file_name(path: str, rows: int) -> pa.Array:
    """The name of a file, for some rows of it."""
    return pa.repeat(pa.scalar(path.rpartition("/")[2]), rows)


@dataclass(frozen=True)
class ColumnNames:
    """Where columns come from: what files call them, and which have one value in each file."""

    stored: Mapping[str, str] = field(default_factory=dict)
    constants: FileConstants = NO_CONSTANTS

    @classmethod
    def of(cls, stored: Mapping[str, str], constants: FileConstants = NO_CONSTANTS) -> ColumnNames:
        """The names, none where all columns are called as in the files."""
        as_stored = all(name == of_file for name, of_file in stored.items())
        return cls({} if as_stored else stored, constants)

    def of_column(self, name: str) -> str:
        """What a column is called in files, or in the names of their folders."""
        return self.stored.get(name, name)

    def in_files(self, names: Sequence[str]) -> list[str]:
        """What files call the columns that they hold: each once."""
        stored = dict.fromkeys(map(self.of_column, names))
        return [name for name in stored if name not in self.constants]

    def here(self, in_files: Collection[str]) -> frozenset[str]:
        """What columns of files are called here."""
        held = frozenset(name for name in in_files if name not in self.constants)
        if not self.stored:
            return held
        return frozenset(name for name, of_file in self.stored.items() if of_file in held)

    def schema(self, of_file: pa.Schema) -> pa.Schema:
        """The schema of a file, by the names here."""
        own = self.constants.schema(of_file)
        if not self.stored:
            return own
        return pa.schema(
            f.with_name(name)
            for name, stored in self.stored.items()
            for f in own
            if f.name == stored
        )

    def table(self, of_file: pa.Table, names: Sequence[str], path: str) -> pa.Table:
        """Columns that were read by the names of `in_files`, by those here, with what is in no file."""
        own = set(of_file.column_names)
        if own.issuperset(names) and not self.stored and not len(self.constants):
            return of_file

        def column(name: str) -> pa.ChunkedArray | pa.Array:
            stored = self.of_column(name)
            if stored in self.constants:
                return self.constants.column(stored, path, of_file.num_rows)
            if stored == FILENAME and stored not in own:
                return file_name(path, of_file.num_rows)
            return of_file.column(stored)

        return pa.table([column(name) for name in names], names=list(names))


HIDDEN = ("_", ".")
"""How names begin that Spark passes over in folders."""

Given = str | os.PathLike[str] | Sequence[str]
"""What names the files of a side."""


@dataclass(frozen=True)
class ParquetFiles:
    """The files of one side, in order of their names."""

    side: str
    filesystem: fs.FileSystem
    paths: tuple[str, ...]
    words: tuple[str, ...] = field(default=(), repr=False)
    folder: str | None = None
    names: ColumnNames = field(default=ColumnNames(), repr=False)

    @property
    def hide(self) -> Redactor:
        """Takes the secrets of what names the files out of a text."""
        return Redactor.of(self.words)

    def check_held(self, names: Collection[str]) -> None:
        """Refuse columns that files do not hold, where Spark reads the files of a table one by one."""
        told = [name for name in names if name in self.names.constants]
        if told:
            raise DataError(
                f"{self.side}: only the table's log tells {' and '.join(told)}, and Spark reads the"
                " files alone. Work in one process (--engine local), or read the table by Spark and"
                " use correlate."
            )

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Turn failures to read a file into a `DataError` that names it."""
        try:
            yield
        except FileNotFoundError as error:
            raise DataError(
                f"{self.side}: {path} is gone. If it was replaced, run the job again."
            ) from error
        except PermissionError as error:
            raise DataError(
                f"{self.side}: you have no permission to read {path}. Ask its owner."
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                self.hide(f"{self.side}: cannot read {path} as Parquet: {error}")
            ) from self.hide.cause(error)


def find_files(side: str, given: Given) -> ParquetFiles:
    """Look up files."""
    words = words_of(given)
    if not words:
        raise DataError(f"{side}: the list of files is empty. Give at least one.")
    places = [place_of(side, word) for word in words]
    filesystem = places[0][0]
    if any(not other.equals(filesystem) for other, _ in places[1:]):
        raise DataError(
            f"{side}: files must be on one file system (found {', '.join(map(shown, words))})."
        )
    found = [_found(side, word, *place) for place, word in zip(places, words, strict=True)]
    paths = sorted({path for each in found for path in each.paths})
    told = [each.constants for each in found if len(each.constants)]
    if told and len(found) > 1:
        raise DataError(
            f"{side}: a table whose folders name columns is given next to other files (found"
            f" {', '.join(map(shown, words))}). Give it alone."
        )
    folder = found[0].folder if len(found) == 1 else None
    names = ColumnNames(constants=told[0] if told else NO_CONSTANTS)
    return ParquetFiles(side, filesystem, tuple(paths), tuple(words), folder, names)


def local_files(side: str, paths: Sequence[str]) -> ParquetFiles:
    """The same of absolute paths of this machine, each of a file: none is looked for."""
    return ParquetFiles(side, fs.LocalFileSystem(), tuple(sorted(set(paths))), tuple(paths))


def words_of(given: Given) -> list[str]:
    """What was given for a side, one word for each file, folder or glob."""
    return [os.fspath(one) for one in ([given] if isinstance(given, str | os.PathLike) else given)]


def local_path(word: str) -> str | None:
    """Absolute path of a word that names something on this machine; None for other URIs."""
    if word.startswith("file:"):
        # Not urlsplit: a glob may hold a question mark.
        host, _, path = word.removeprefix("file:").removeprefix("//").partition("/")
        return os.path.abspath(
            unquote(f"/{path}" if word.startswith("file:/") else host + "/" + path)
        )
    if SCHEME.match(word):
        return None
    return os.path.abspath(os.path.expanduser(word))


def place_of(what: str, word: str) -> tuple[fs.FileSystem, str]:
    """The file system and the path that a word names."""
    if not word.strip():  # would be the working folder
        raise DataError(f"{what}: a name is empty. Give a path or a URI.")
    here = local_path(word)
    if here is not None:
        return fs.LocalFileSystem(), here
    check_encoded(f"{what}:", word)
    try:
        filesystem, path = fs.FileSystem.from_uri(word)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        hide = Redactor.of([word])
        said = hide(f"{what}: cannot open {shown(word)}: {error}")
        raise DataError(said) from hide.cause(error)
    return filesystem, path.rstrip("/") or path


def is_local(filesystem: fs.FileSystem) -> bool:
    """Whether paths are on this machine."""
    return str(filesystem.type_name) == "local"


class _Found(NamedTuple):
    """What a word names: its files, the folder of all if it is one, and what files do not hold."""

    paths: list[str]
    folder: str | None = None
    constants: FileConstants = NO_CONSTANTS


def _found(side: str, word: str, filesystem: fs.FileSystem, path: str) -> _Found:
    name, hide = shown(word), Redactor.of([word])
    try:
        there = filesystem.get_file_info(path)
        is_folder = there.type == fs.FileType.Directory
        if is_folder or path.endswith(METADATA_FILE):
            table = table_files(side, filesystem, path)
            if table is not None:
                return _Found(table.paths, constants=table.constants)
        if is_folder:
            paths = _visible(side, filesystem, path)
            if not paths:
                raise DataError(f"{side}: the folder {name} holds no files. Name another one.")
            return _Found(paths, path)
        if there.type != fs.FileType.NotFound:
            return _Found([path])
        if glob.has_magic(path):
            paths = _matching(side, filesystem, path)
            if paths:
                return _Found(paths)
            raise DataError(f"{side}: no file matches {name}. Check the pattern.")
    except PermissionError as error:
        raise DataError(
            f"{side}: you have no permission to read {name}. Ask its owner for it."
        ) from error
    except (pa.ArrowException, OSError) as error:
        said = hide(f"{side}: cannot list {name}: {error}")
        raise DataError(said) from hide.cause(error)
    raise DataError(f"{side}: {name} does not exist. Check its name.")


def _visible(side: str, filesystem: fs.FileSystem, folder: str) -> list[str]:
    """Files below a folder, without those that Spark passes over."""
    if is_local(filesystem):
        return list(_visible_here(side, folder))
    below = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
    files = [info.path for info in below if info.type == fs.FileType.File]
    root = PurePosixPath(folder)
    tables = (path.partition(f"/{LOG}/") for path in files)
    if table := next((table for table, log, _ in tables if log), None):
        refuse_table_inside(side, table)
    return [
        path
        for path in files
        if not any(part.startswith(HIDDEN) for part in PurePosixPath(path).relative_to(root).parts)
    ]


def _visible_here(side: str, folder: str, above: frozenset[str] = frozenset()) -> Iterator[str]:
    """The same on this machine. Links are followed, but for those that lead back to a folder above."""
    above |= {os.path.realpath(folder)}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == LOG and entry.is_dir():
                refuse_table_inside(side, folder)
            if entry.name.endswith(METADATA_FILE) and os.path.basename(folder) == METADATA:
                refuse_table_inside(side, os.path.dirname(folder), "an Iceberg")
            if entry.name.startswith(HIDDEN):
                continue
            if not entry.is_dir():
                yield entry.path
            elif os.path.realpath(entry.path) not in above:
                yield from _visible_here(side, entry.path, above)


def _matching(side: str, filesystem: fs.FileSystem, pattern: str) -> list[str]:
    """Files that a glob names, and those in folders that it names."""
    parts = PurePosixPath(pattern).parts
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    base = str(PurePosixPath(*parts[:first]))
    if filesystem.get_file_info(base).type != fs.FileType.Directory:
        return []
    if is_local(filesystem):
        named = filesystem.get_file_info(list(_matching_here(base, parts[first:])))
    elif "**" in pattern:
        raise DataError(
            f"** has no meaning in {pattern}. Name a folder, which includes all below it."
        )
    else:
        selector = fs.FileSelector(base, recursive=len(parts) > first + 1)
        named = [
            info
            for info in filesystem.get_file_info(selector)
            if _all_fit(PurePosixPath(info.path).parts, parts)
        ]
    found: list[str] = []
    for info in named:
        folder = info.type == fs.FileType.Directory
        found += _visible(side, filesystem, info.path) if folder else [info.path]
    return found


def _matching_here(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """What the parts of a glob name below a folder of this machine."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if not glob.has_magic(part):
        path = os.path.join(folder, part)
        if os.path.exists(path):
            yield from _matching_here(path, rest)
        return
    if part == "**":
        yield from _matching_here(folder, rest)
    with os.scandir(folder) as entries:
        for entry in entries:
            if part == "**":
                if entry.is_dir(follow_symlinks=False) and _fits(entry.name, "*"):
                    yield from _matching_here(entry.path, parts)
            elif _fits(entry.name, part) and (not rest or entry.is_dir()):
                yield from _matching_here(entry.path, rest)


def _all_fit(names: Sequence[str], parts: Sequence[str]) -> bool:
    return len(names) == len(parts) and all(map(_fits, names, parts))


def _fits(name: str, part: str) -> bool:
    """Whether a part of a glob names this; a star stands for nothing hidden, such as a mark of success."""
    hidden = name.startswith(HIDDEN) and not part.startswith(HIDDEN)
    return not hidden and fnmatch.fnmatchcase(name, part)
