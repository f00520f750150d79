"""Sparing Spark's reused Python workers a part of what each task costs before it begins."""

from __future__ import annotations

import sys
import zipimport


def forget_archive_finders() -> None:
    """Drop the import system's finders of folders inside zip archives; they come back when needed.

    Spark's worker calls `importlib.invalidate_caches` before each task, upon which each such finder
    reads the archive's whole directory again (seen with Python 3.11). Of pyspark.zip there are sixteen:
    more processor time a task than joining a million events takes.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)
