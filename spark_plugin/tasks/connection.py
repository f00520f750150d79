"""The connection between Spark and its Python workers, and their reuse."""

from __future__ import annotations

import ctypes
import gc
import io
import itertools
import socket
import sys
import zipimport
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pyarrow as pa

_ACKNOWLEDGE_NOW = getattr(socket, "TCP_QUICKACK", None)
"""Linux only; the kernel takes it back by and by."""
_WORKER = "pyspark.worker"
_READER = "infile"
_ON = ctypes.c_int(1)


def acknowledged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches. What has been received is acknowledged now, and about each batch."""
    connection = _connection()
    if connection is None or _ACKNOWLEDGE_NOW is None:
        return iter(batches)
    acknowledge(connection)
    return _acknowledged(batches, connection)


def _acknowledged(batches: Iterable[pa.RecordBatch], connection: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        acknowledge(connection)
        yield batch
        acknowledge(connection)


def acknowledge(connection: int) -> None:
    """Acknowledge what has been received, if a descriptor is that of a TCP connection."""
    # By the C library: a socket object would end Spark's blocking where a default timeout is set.
    _set_option()(connection, socket.IPPROTO_TCP, _ACKNOWLEDGE_NOW, ctypes.byref(_ON), 4)


@cache
def _set_option() -> Any:
    return ctypes.CDLL(None).setsockopt


def _connection() -> int | None:
    """The descriptor that Spark's worker reads, by the frame of the function that runs tasks; or None."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == _WORKER and _READER in frame.f_locals:
            try:
                descriptor: int = frame.f_locals[_READER].fileno()
            except (AttributeError, io.UnsupportedOperation):
                return None
            return descriptor
    return None


_tasks = itertools.count(1)


def begin_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """To be called at the begin of each task; gives the batches to go through instead of these."""
    prepare_task()
    return acknowledged(batches)


def prepare_task() -> None:
    """To be called at the begin of each task that is given no batches: `begin_task` is for the others."""
    forget_archive_finders()
    if next(_tasks) == 2:
        # Spark's worker collects garbage after each task, which takes 50 to 100 ms for what is imported
        # here alone. By now all is loaded; from here on none of it is looked through.
        gc.freeze()


def forget_archive_finders() -> None:
    """Drop the finders of folders inside zip archives, which read their archive anew in each task."""
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            sys.path_importer_cache.pop(path, None)
