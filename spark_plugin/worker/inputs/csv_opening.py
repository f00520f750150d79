"""Files of CSV that hold no row yet, as PyArrow reads them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from spark_plugin.worker.inputs.csv_rules import CsvRules

_LINE_BYTES = 1 << 12
"""A file that is no longer is looked at, whether it is a header alone."""


def with_a_line(opened: Callable[[], pa.NativeFile], rules: CsvRules) -> pa.NativeFile:
    """A file that is open, with an end of its line where it is a header alone, or no row below names.

    PyArrow refuses both, as what a logger has written so far often is.
    """
    stream = opened()
    begin = bytes(stream.read(_LINE_BYTES) or b"")
    stream.close()
    text = begin.decode(rules.encoding, errors="replace")
    if len(begin) < _LINE_BYTES and _has_no_row(text, rules):
        return pa.BufferReader(f"{text}\n".encode(rules.encoding))
    return opened()


def _has_no_row(text: str, rules: CsvRules) -> bool:
    """Whether nothing stands below the names, and the last line has no end."""
    if rules.names:
        return not any(text.split("\n")[rules.skip :])
    lines = text.split("\n")
    return len(lines) == rules.skip + 1 and bool(lines[-1].strip())
