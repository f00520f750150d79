"""Where the inputs are and what they are: files, folders, globs and URIs."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa

from coincide.engine.files.credentials import SCHEME, Redactor, check_encoded, shown
from coincide.engine.files.csv_rules import BY_COMMAS, COMMA, PLAIN, TAB, CsvRules, check_apart
from coincide.engine.files.finding import ParquetFiles, find_files, local_path
from coincide.model.errors import DataError, first_line
from coincide.model.remembered import remembered


class Format(NamedTuple):
    """A format of files: how names end, and first bytes, and the module of its reader.

    Text may be compressed, and is in a dialect that names no types. For files with row groups footers
    tell: tasks read these alone, and Spark takes them.
    """

    module: str
    endings: tuple[str, ...]
    magic: tuple[bytes, ...] = ()
    is_text: bool = False
    has_row_groups: bool = False


FORMATS = {
    "parquet": Format(
        ".parquet_input", (".parquet", ".parq", ".pq"), (b"PAR1",), has_row_groups=True
    ),
    "csv": Format(".csv_input", (".csv", ".tsv"), is_text=True),
    "arrow": Format(
        ".ipc_input", (".arrow", ".arrows", ".feather", ".ipc"), (b"ARROW1", b"\xff" * 4)
    ),
}
"""All formats: a new one is a line here, and a module with an `ArrowInput`."""
STANDARD_INPUT = "-"
COMPRESSED = (".gz", ".bz2", ".zst")


@dataclass(frozen=True)
class Source:
    """One input."""

    side: str
    text: str
    file_format: str
    given_files: ParquetFiles | None = None
    csv: CsvRules = BY_COMMAS
    held: object = field(default=None, repr=False, compare=False)
    skipped: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def format(self) -> Format:
        """What is known of its format."""
        return FORMATS[self.file_format]

    @property
    def is_uri(self) -> bool:
        """Whether the input lies elsewhere."""
        return self.given_files is None

    @remembered
    def found(self) -> ParquetFiles:
        """The files."""
        return self.given_files or find_files(self.side, self.text)

    @property
    def paths(self) -> list[str]:
        """What to open: the folder that was given, or the files."""
        return list(self.found.paths) if self.found.folder is None else [self.found.folder]


def find_source(
    side: str, text: str, file_format: str | None = None, csv: CsvRules = PLAIN
) -> Source:
    """Look up what an input word names."""
    if not text.strip():
        raise DataError(f"the {side} input has no name. Name a file, a folder, a glob or a URI.")
    if local_path(text) is None:
        check_encoded(f"the {side} input", text)
        return Source(side, text, file_format or _guess(side, text, [shown(text).rstrip("/*")]))
    return source_of(text, find_files(side, text), file_format, csv)


def source_of(
    text: str,
    found: ParquetFiles,
    file_format: str | None = None,
    csv: CsvRules = PLAIN,
    held: object = None,
) -> Source:
    """The input that files are; as `find_source`."""
    if not csv.delimiter:
        csv = replace(csv, delimiter=TAB if all(map(_has_tabs, found.paths)) else COMMA)
    side = found.side
    source = Source(side, text, file_format or _guess(side, text, found.paths), found, csv, held)
    if source.format.is_text:
        check_apart(side, csv)
    return source


def path_keys(source: Source) -> dict[str, tuple[str, ...]]:
    """For each file of a folder the columns that the names of its subfolders hold."""
    # As in ``day=1/hour=2/a.parquet``; an empty text stands for a subfolder of a plain name.
    keys = {}
    root = None if source.is_uri else source.found.folder
    for file in source.found.paths if root else ():
        *folders, _ = os.path.relpath(file, root).split(os.sep)
        keys[file] = tuple(
            key if sign else "" for key, sign, _ in (f.partition("=") for f in folders)
        )
    return keys


def as_parquet(text: str, file_format: str | None = None, delimiter: str = COMMA) -> str:
    """The cure where Parquet alone is read: a line for a shell that makes it of files."""
    if SCHEME.match(text) or glob.has_magic(text) or text == STANDARD_INPUT:
        text = "FOLDER"
    kind = json.dumps(file_format or format_of([text]) or "csv")
    if kind == '"csv"' and (delimiter != COMMA or _has_tabs(text)):
        mark = TAB if _has_tabs(text) else delimiter
        kind = f"d.CsvFileFormat(pyarrow.csv.ParseOptions(delimiter={json.dumps(mark)}))"
    made = json.dumps(text.rstrip("/") + ".parquet")
    return (
        "Convert it to Parquet, for example by: python -c 'import pyarrow.csv, pyarrow.dataset as"
        f" d; d.write_dataset(d.dataset({json.dumps(text)}, format={kind}), {made},"
        ' format="parquet")\''
    )


def path_columns(source: Source) -> set[str]:
    """The columns that are in the paths of a folder's files."""
    return {key for keys in path_keys(source).values() for key in keys if key}


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn failures to read into a `DataError` that names the input."""
    hide, text = Redactor.of([source.text]), shown(source.text)
    try:
        yield
    except PermissionError as error:
        raise DataError(
            f"{source.side}: you have no permission to read {error.filename or text}. Ask its"
            " owner."
        ) from error
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"{source.side}: cannot read {text} ({first_line(error)}). If lists or structs of one"
            " row group hold more than 2 GiB of text, write it in smaller row groups."
        ) from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        other = " Check that the file is complete."
        if isinstance(error, UnicodeError):
            other = " Set the encoding, such as latin-1 or cp1252."
        elif isinstance(error, pa.ArrowInvalid):
            other = " If it has another format, name that with --format, or rename the file."
        why = hide(first_line(error)).rstrip(".")
        raise DataError(
            f"{source.side}: cannot read {text} as {source.file_format}: {why}.{other}"
        ) from hide.cause(error)


def format_of(files: Sequence[str]) -> str | None:
    """The format that names of files tell; None if they tell none, or several."""
    found = {_format_of(file) for file in files}
    return found.pop() if len(found) == 1 else None


def _guess(side: str, text: str, files: Sequence[str]) -> str:
    found = {_format_of(file) for file in files}
    if len(found) == 1 and None not in found:
        return str(found.pop())
    known = ", ".join(ending for each in FORMATS.values() for ending in each.endings)
    if found == {None}:
        raise DataError(
            f"{side}: {text} has an unknown format. Name it with --format, such as --format csv, or"
            f" rename the files to end in {known}."
        )
    raise DataError(
        f"{side}: {text} holds files of several formats. Name some of them with a glob, or rename"
        f" the files to end in {known}."
    )


def _format_of(file: str) -> str | None:
    name = _plain_name(file)
    found = next((kind for kind, each in FORMATS.items() if name.endswith(each.endings)), None)
    is_packed = name != file.lower()
    return None if found is None or (is_packed and not FORMATS[found].is_text) else found


def _has_tabs(file: str) -> bool:
    return _plain_name(file).endswith(".tsv")


def _plain_name(file: str) -> str:
    """Without the ending of what compressed it."""
    name = file.lower()
    return next((name.removesuffix(end) for end in COMPRESSED if name.endswith(end)), name)
