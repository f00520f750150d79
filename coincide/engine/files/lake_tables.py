"""Delta's and Iceberg's tables: which files of a folder are the rows of a table as it is now."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape, glob
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from coincide.engine.files.file_constants import NO_CONSTANTS, FileConstants
from coincide.model.errors import CoincideError, DataError, first_line
from coincide.model.extras import LAKE, require

LOG = "_delta_log"
"""The folder in which Delta says which files are rows of a table."""
METADATA = "metadata"
METADATA_FILE = ".metadata.json"
"""How the names of Iceberg's files end that say the same."""
_LOCAL = re.compile("^(?:file:/*)?/(?=[^/])")
_UNDERSTOOD = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""What a Delta table may use that leaves Parquet as it is; whether rows are deleted is looked at."""


class TableFiles(NamedTuple):
    """The files of a table, and columns that they do not hold."""

    paths: list[str]
    constants: FileConstants = NO_CONSTANTS


def table_files(side: str, filesystem: fs.FileSystem, path: str) -> TableFiles | None:
    """The files of a table that a path names; None if it names something else."""
    if str(filesystem.type_name) != "local":
        _refuse_remote(side, filesystem, path)
        return None
    if path.endswith(METADATA_FILE) and os.path.isfile(path):
        return _of_iceberg(side, path)
    if os.path.isdir(os.path.join(path, LOG)):
        return delta_files(side, path)
    told = glob(os.path.join(escape(path), METADATA, f"*{METADATA_FILE}"))
    return _of_iceberg(side, _current(side, path, told)) if told else None


def refuse_table_inside(side: str, folder: str, kind: str = "a Delta") -> None:
    """Refuse a folder that holds a table: files that its log has removed lie there, too."""
    raise DataError(
        f"{side}: {folder} is {kind} table, which lies in the folder that you name. Name the table."
    )


def _refuse_remote(side: str, filesystem: fs.FileSystem, path: str) -> None:
    log, metadata = filesystem.get_file_info([f"{path}/{LOG}", f"{path}/{METADATA}"])
    folder = fs.FileType.Directory
    kind = "a Delta table" if log.type == folder else None
    if kind is None and metadata.type == folder:
        inside = filesystem.get_file_info(fs.FileSelector(metadata.path))
        kind = "an Iceberg table" if any(i.path.endswith(METADATA_FILE) for i in inside) else None
    if kind is not None:
        raise DataError(
            f"{side}: {path} is {kind}, and only those of this machine are read. Name its files, or"
            " read it by Spark and use correlate."
        )


@contextmanager
def _opening(side: str, kind: str, path: str) -> Iterator[None]:
    """Turn what a library says of a table into a `DataError`."""
    try:
        yield
    except CoincideError:
        raise
    except Exception as error:
        raise DataError(
            f"{side}: cannot read {path} as {kind} table: {first_line(error)}"
        ) from error


def _refuse(side: str, kind: str, path: str, why: str, cure: str) -> None:
    raise DataError(f"{side}: {path} is {kind} table {why}. {cure}, or read it by Spark.")


def delta_files(side: str, path: str, version: int | None = None) -> TableFiles:
    """The files of a Delta table of this machine as it is, or was in a version."""
    require(LAKE, "deltalake")
    from deltalake import DeltaTable

    with _opening(side, "a Delta", path):
        # A plain path would be decoded as if it were an URI.
        table = DeltaTable(Path(path).as_uri(), version)
        features = set(table.protocol().reader_features or ())
        mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
        if mode != "none":
            why = f"whose files call columns differently (delta.columnMapping.mode is {mode})"
            _refuse(side, "a Delta", path, why, "Write it to a new table without this")
        if strange := sorted(features - _UNDERSTOOD - {"columnMapping"}):
            why = f"with what is not read here (found {', '.join(strange)})"
            _refuse(side, "a Delta", path, why, "Write it to a new table without this")
        if "deletionVectors" in features and any(b.num_rows for b in table.deletion_vectors()):
            why = "with deleted rows in its files (deletion vectors)"
            cure = "Rewrite these files by REORG TABLE ... APPLY (PURGE)"
            _refuse(side, "a Delta", path, why, cure)
        added = pa.table(table.get_add_actions(flatten=True))
        columns = {name: f"partition.{name}" for name in table.metadata().partition_columns}
        paths = [_beside(side, path, each) for each in added.column("path").to_pylist()]
        _check_some(side, "a Delta", path, paths)
        values = pa.table({name: added.column(told) for name, told in columns.items()})
        if not columns:
            return TableFiles(paths)
        return TableFiles(paths, FileConstants(values, {each: i for i, each in enumerate(paths)}))


def _beside(side: str, path: str, told: str) -> str:
    """The path of a file that a log tells, as a URI has it."""
    found = unquote(told)
    if _LOCAL.match(found):
        return _LOCAL.sub("/", found)
    if "://" in found:
        _refuse(side, "a Delta", path, f"whose files lie elsewhere (found {found})", "Copy it")
    return os.path.join(path, found)


def _check_some(side: str, kind: str, path: str, paths: list[str]) -> None:
    if not paths:
        raise DataError(f"{side}: {path} is {kind} table without rows. Name another one.")


def _current(side: str, path: str, told: list[str]) -> str:
    """The metadata of a table as it is now: with a catalog, no file in the folder says which that is."""
    hint = os.path.join(path, METADATA, "version-hint.text")
    if os.path.exists(hint):
        with open(hint, encoding="utf-8") as file:
            version = file.read().strip()
        numbers = {os.path.basename(each).split(".")[0].removeprefix("v"): each for each in told}
        # A writer tells the version after it has written it, so the next one may be there.
        while version.isdecimal() and str(int(version) + 1) in numbers:
            version = str(int(version) + 1)
        if version in numbers:
            return numbers[version]
    if len(told) == 1:
        return told[0]
    newest = max(told, key=os.path.getmtime)
    raise DataError(
        f"{side}: {path} is an Iceberg table, and only its catalog knows which of its"
        f" {len(told)} metadata files is the newest. Name that one, such as {newest}; in PyIceberg it"
        " is catalog.load_table(NAME).metadata_location."
    )


def _of_iceberg(side: str, path: str) -> TableFiles:
    require(LAKE, "pyiceberg")
    from pyiceberg.table import StaticTable

    with _opening(side, "an Iceberg", path):
        table = StaticTable.from_metadata(path)
        _refuse_renamed(side, path, table.metadata.schemas)
        paths = []
        for task in table.scan().plan_files():
            if task.delete_files:
                why, cure = "with deleted rows in its files", "Rewrite its data files"
                _refuse(side, "an Iceberg", path, why, cure)
            found, kind = task.file.file_path, task.file.file_format.name
            if kind != "PARQUET" or not _LOCAL.match(found):
                why = f"with a file that is no Parquet of this machine (found {found})"
                _refuse(side, "an Iceberg", path, why, "Write it as such")
            paths.append(_LOCAL.sub("/", found))
        _check_some(side, "an Iceberg", path, paths)
        return TableFiles(paths)


def _refuse_renamed(side: str, path: str, schemas: list[Any]) -> None:
    """Refuse columns that were renamed, or given a new type: older files have them as they were."""
    seen: dict[str, tuple[int, str]] = {}
    names: dict[int, str] = {}
    for schema in schemas:
        for field in schema.fields:
            is_new = seen.setdefault(field.name, (field.field_id, str(field.field_type)))
            if (
                is_new != (field.field_id, str(field.field_type))
                or names.setdefault(field.field_id, field.name) != field.name
            ):
                why = f"in which the column {field.name!r} had another name or type"
                _refuse(side, "an Iceberg", path, why, "Write it to a new table")
