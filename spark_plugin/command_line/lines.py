"""Warnings as the lines of a command."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from coincide.warnings import CoincideWarning
from spark_plugin.worker.reports.wording import for_command_line


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Tell warnings, of short shifts say, as lines like all others, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoincideWarning)
        yield
    ours = [str(each.message) for each in caught if issubclass(each.category, CoincideWarning)]
    for text in dict.fromkeys(ours):
        print(f"coincide: {for_command_line(text)}", file=sys.stderr)
    for each in caught:
        if not issubclass(each.category, CoincideWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
