"""Sparing Spark's reused Python workers a part of what each task costs before and after it."""

from __future__ import annotations

import gc
import itertools
import sys
import zipimport
from collections.abc import Iterable, Iterator

import pyarrow as pa

from spark_plugin.worker.wire.connection import acknowledged

_tasks = itertools.count(1)


def begin_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """To be called at the begin of each task; gives the batches to go through instead of these."""
    forget_archive_finders()
    if next(_tasks) == 2:
        # Spark's worker collects garbage after each task, which takes 50 to 100 ms for what is imported
        # here alone. By now all is loaded; from here on none of it is looked through.
        gc.freeze()
    return acknowledged(batches)


def forget_archive_finders() -> None:
    """Drop the import system's finders of folders inside zip archives; they come back when needed.

    Spark's worker calls `importlib.invalidate_caches` before each task, upon which each such finder
    reads the archive's whole directory again (seen with Python 3.11). Of pyspark.zip there are sixteen:
    more processor time a task than joining a million events takes.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)
