"""An input that comes in on standard input: kept in a file, since it is read more than once."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Collection

from pyarrow import fs

from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.files.finding import ParquetFiles
from spark_plugin.worker.inputs.csv_rules import CsvRules
from spark_plugin.worker.inputs.source import STANDARD_INPUT, Source, source_of

_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
_PARQUET = b"PAR1"
_PACKED = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
_MOST = 6


def check_once(inputs: Collection[str]) -> None:
    """Refuse two inputs from one standard input.

    Raises
    ------
    Problem
    """
    if sum(text == STANDARD_INPUT for text in inputs) > 1:
        raise Problem("standard input is one input; name a file for the other one")


def read_in(side: str, file_format: str | None, csv: CsvRules) -> Source:
    """What comes in, as an input whose file goes when the input does.

    Parameters
    ----------
    side : str
    file_format : str or None
        None: from its first bytes, Arrow IPC or else CSV.
    csv : CsvRules

    Raises
    ------
    Problem
        If nothing is sent there, or Parquet, which is read from its end.
    """
    if sys.stdin.isatty():
        raise Problem(
            f"{side}: nothing is sent to standard input; pipe CSV or Arrow IPC in, or name a file"
        )
    begin = sys.stdin.buffer.read(_MOST)
    if file_format == "parquet" or begin.startswith(_PARQUET):
        raise Problem(
            f"{side}: standard input is read as CSV or Arrow IPC, not as Parquet; name the file"
        )
    packed = next((end for sign, end in _PACKED.items() if begin.startswith(sign)), "")
    kept = tempfile.NamedTemporaryFile(prefix="coincide-", suffix=packed)  # noqa: SIM115
    kept.write(begin)
    shutil.copyfileobj(sys.stdin.buffer, kept)
    kept.flush()
    found = ParquetFiles(side, fs.LocalFileSystem(), (kept.name,), (STANDARD_INPUT,))
    kind = file_format or ("arrow" if begin.startswith(_ARROW) else "csv")
    return source_of(STANDARD_INPUT, found, kind, csv, held=kept)
