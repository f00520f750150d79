"""Where the inputs are and what they are: files, folders, globs and URIs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from spark_plugin.cluster.spark_errors import first_line
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.files.credentials import SCHEME, check_encoded, shown
from spark_plugin.worker.files.finding import HIDDEN, PARQUET_ENDINGS

FORMATS = {
    "parquet": PARQUET_ENDINGS,
    "csv": (".csv",),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
}
"""Endings of file names, by format."""
_COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True)
class Source:
    """One input.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``, for messages.
    text : str
        As the user wrote it.
    file_format : str
        A key of `FORMATS`.
    files : tuple of str
        Absolute paths on this machine; empty for a URI.
    folder : str or None
        The folder that was given, if it was one.
    """

    side: str
    text: str
    file_format: str
    files: tuple[str, ...] = ()
    folder: str | None = None

    @property
    def is_uri(self) -> bool:
        """Whether the input lies elsewhere."""
        return not self.files

    @property
    def paths(self) -> list[str]:
        """What to open: the folder, the files, or the URI."""
        if self.folder is not None:
            return [self.folder]
        return list(self.files) or [self.text]


def find_source(side: str, text: str, file_format: str | None = None) -> Source:
    """Look up what an input word names.

    Parameters
    ----------
    side : str
    text : str
        A path, a glob, or a URI with a scheme.
    file_format : str or None
        A key of `FORMATS`; None: from the names of the files.

    Raises
    ------
    Problem
        If nothing is there, or its format cannot be told.
    """
    if not text.strip():
        raise Problem(f"the {side} input has no name; name a file, a folder, a glob or a URI")
    path = local_path(text)
    if path is None:
        check_encoded(f"the {side} input", text)
        return Source(side, text, file_format or _guess(side, text, [shown(text).rstrip("/*")]))
    folder, files = _files(side, text, path)
    return Source(side, text, file_format or _guess(side, text, files), tuple(files), folder)


def local_path(text: str) -> str | None:
    """Absolute path of a word that names something on this machine; None for other URIs."""
    if text.startswith("file:"):
        # Not urlsplit: a glob may hold a question mark.
        host, _, path = text.removeprefix("file:").removeprefix("//").partition("/")
        return os.path.abspath(
            unquote(f"/{path}" if text.startswith("file:/") else host + "/" + path)
        )
    if SCHEME.match(text):
        return None
    return os.path.abspath(os.path.expanduser(text))


def visible_files(folder: str) -> list[str]:
    """Files in a folder and below, in order, without those that Spark hides (`_` and `.`).

    Links to folders are followed, as PyArrow and Spark do, but for one that leads back to where it is.
    """
    found = []
    above = {folder: {os.path.realpath(folder)}}
    for root, folders, names in os.walk(folder, followlinks=True):
        own = above.pop(root)
        real = {name: os.path.realpath(os.path.join(root, name)) for name in folders}
        folders[:] = [n for n in folders if not n.startswith(HIDDEN) and real[n] not in own]
        above |= {os.path.join(root, name): own | {real[name]} for name in folders}
        found += [os.path.join(root, name) for name in names if not name.startswith(HIDDEN)]
    return sorted(found)


def path_keys(source: Source) -> dict[str, tuple[str, ...]]:
    """For each file of a folder the columns that the names of its subfolders hold.

    As in ``day=1/hour=2/a.parquet``; an empty text stands for a subfolder of a plain name.
    """
    keys = {}
    for file in source.files if source.folder else ():
        *folders, _ = os.path.relpath(file, source.folder).split(os.sep)
        keys[file] = tuple(
            key if sign else "" for key, sign, _ in (f.partition("=") for f in folders)
        )
    return keys


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn failures to read into a `Problem` that names the input."""
    try:
        yield
    except PermissionError as error:
        raise Problem(
            f"{source.side}: no permission to read {error.filename or source.text}"
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise Problem(
            f"{source.side}: cannot read {source.text}, perhaps since lists or structs of one row group"
            f" hold more than 2 GiB of text; write it in smaller row groups ({first_line(error)})"
        ) from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise Problem(
            f"{source.side}: cannot read {source.text} as {source.file_format}: {first_line(error)}"
        ) from error


def _files(side: str, text: str, path: str) -> tuple[str | None, list[str]]:
    if os.path.isdir(path):
        files = visible_files(path)
        if not files:
            raise Problem(f"{side}: the folder {text} holds no files")
        return path, files
    if os.path.lexists(path):
        return None, [path]
    if glob.has_magic(path):
        found = sorted(glob.glob(path, recursive=True))
        files = [
            file for one in found for file in (visible_files(one) if os.path.isdir(one) else [one])
        ]
        if files:
            return None, files
        raise Problem(f"{side}: no file matches {text}")
    raise Problem(f"{side}: {text} does not exist")


def _guess(side: str, text: str, files: Sequence[str]) -> str:
    found = {_format_of(file) for file in files}
    if len(found) == 1 and None not in found:
        return str(found.pop())
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    what = "is of unknown format" if found == {None} else "holds files of several formats"
    raise Problem(
        f"{side}: {text} {what}; names that end in {known} are understood. Say --format, or"
        " name the files with a glob"
    )


def _format_of(file: str) -> str | None:
    name = file.lower()
    for ending in _COMPRESSED:
        if name.endswith(".csv" + ending):
            return "csv"
    return next((name_ for name_, endings in FORMATS.items() if name.endswith(endings)), None)
