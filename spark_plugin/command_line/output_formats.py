"""What the output is: Parquet, CSV or Arrow IPC, by its name or as asked."""

from __future__ import annotations

from coincide.options import check_choice
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.inputs.source import COMPRESSED, FORMATS

STDOUT = "-"
_UNWRITTEN = (".tsv", ".json", ".jsonl", ".txt", ".xlsx", ".orc", ".avro")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def format_of_output(text: str, asked: str | None) -> str:
    """A key of `FORMATS`.

    Parameters
    ----------
    text : str
        The output, as it was typed.
    asked : str or None
        What `--output-format` says.

    Raises
    ------
    CoincideError
        If both differ, or the name is that of another format.
    """
    if asked is not None:
        check_choice("--output-format", asked, tuple(FORMATS))
    if text == STDOUT:
        return asked or "csv"
    name = text.lower().rstrip("/")
    if name.endswith(_UNWRITTEN):
        raise Problem(
            f"the output {text} is named as a format that is not written; end it in .parquet, .csv or"
            " .arrow"
        )
    named = _named(name)
    if asked is not None and named not in (None, asked):
        raise Problem(
            f"the output {text} is named as {named}, and --output-format says {asked}; leave one out"
        )
    return asked or named or "parquet"


def compression_of(text: str) -> str | None:
    """How a file of CSV is compressed, by its name."""
    return next((how for end, how in _PACKED.items() if text.lower().endswith(end)), None)


def _named(name: str) -> str | None:
    packed = next((end for end in COMPRESSED if name.endswith(end)), "")
    bare = name.removesuffix(packed)
    found = next((kind for kind, ends in FORMATS.items() if bare.endswith(ends)), None)
    if packed and found != "csv":
        raise Problem(
            f"the output {name} would be compressed, which only .csv can be; leave {packed} out"
        )
    return found
