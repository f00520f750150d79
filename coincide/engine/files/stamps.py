"""By what a file is known again: whether what is read is what was planned with."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from coincide.model.errors import DataError

_TAIL = 1 << 16
"""Bytes to read at the end of a file, which hold most footers."""
_FOOTER_END = 8
"""The length of the footer, and PAR1."""
_UNKNOWN = -1


@dataclass(frozen=True)
class FileStamp:
    """A file at some time."""

    size: int
    modified: int
    digest: int

    def with_digest(self, digest: int) -> FileStamp:
        """As if only its footer had changed, if that."""
        return replace(self, digest=digest)


@dataclass(frozen=True, eq=False)
class FileStamps:
    """The stamps of all files of a side: int64 arrays, shape (files,)."""

    size: np.ndarray
    modified: np.ndarray
    digest: np.ndarray

    @classmethod
    def of(cls, stamps: Sequence[FileStamp]) -> FileStamps:
        """Of each file, in their order."""
        rows = [(stamp.size, stamp.modified, stamp.digest) for stamp in stamps]
        return cls(*np.array(rows, np.int64).reshape(-1, 3).T.copy())

    def __getitem__(self, file: int) -> FileStamp:
        return FileStamp(int(self.size[file]), int(self.modified[file]), int(self.digest[file]))


def open_footer(source: pa.NativeFile) -> tuple[pq.FileMetaData, int]:
    """The footer of an open file, and its digest, in one read where it is not long."""
    size = source.size()
    tail = source.read_at(min(size, _TAIL), max(0, size - _TAIL))
    length = int.from_bytes(tail[-_FOOTER_END:-4], "little") + _FOOTER_END
    if len(tail) < length <= size:
        tail = source.read_at(length, size - length)
    footer = tail[-length:]
    digest = _digest(footer, _etag(source))
    return _parsed_lately.metadata(digest, footer), digest


def stamp_of(filesystem: fs.FileSystem, path: str, digest: int) -> FileStamp:
    """The stamp of a file as it is now, the digest of its footer being known."""
    there = filesystem.get_file_info(path)
    if there.type == fs.FileType.NotFound:
        raise FileNotFoundError(path)
    size, modified = (_UNKNOWN if told is None else told for told in (there.size, there.mtime_ns))
    return FileStamp(size, modified, digest)


def check_unchanged(side: str, path: str, planned: FileStamp, found: FileStamp) -> None:
    """Refuse a file that is not the one that was planned with."""
    if planned != found:
        raise DataError(
            f"{side}: {path} has changed since the join was planned. Run the join again. A"
            " DataFrame or view that reads it needs a new plan."
        )


class _ParsedFooters:
    """Footers parsed lately, by their digest: of many row groups that takes longer than reading them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[int, tuple[int, pq.FileMetaData]] = OrderedDict()
        self._lock = threading.Lock()

    def metadata(self, digest: int, footer: bytes) -> pq.FileMetaData:
        """What a footer says; a file that is no Parquet is refused, in words of the library."""
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest][1]
        metadata = pq.read_metadata(pa.BufferReader(footer))
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = len(footer), metadata
                self._bytes += len(footer)
            while self._bytes > self._most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][0]
        return metadata


_parsed_lately = _ParsedFooters(64 << 20)


def _digest(footer: bytes, etag: bytes) -> int:
    found = hashlib.blake2b(footer, digest_size=8, key=etag[:64]).digest()
    return int.from_bytes(found, "little", signed=True)


def _etag(source: pa.NativeFile) -> bytes:
    """What an object store calls this content; empty where there is no such name."""
    told = source.metadata() or {}
    names = {_text(name).lower(): value for name, value in told.items()}
    return _text(names.get("etag", "")).encode()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
