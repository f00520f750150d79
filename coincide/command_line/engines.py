"""Which engine a command runs on, where nobody says: this process if the inputs fit it, else Spark."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq

from coincide.command_line.requests import Request
from coincide.engine.files.finding import place_of
from coincide.engine.files.source import COMPRESSED, Source, reading
from coincide.model.errors import DataError

AUTO = "auto"
BYTES_OF_A_ROW = 200
"""Memory that a join in one process takes for a row beside its columns: sorted, counted and matched."""
COPIES = 2
"""Of the columns, which are read and then sorted."""
BYTES_OF_A_BYTE = 8
"""Memory for each byte of a file without a footer, whose rows may be short."""
_UNPACKED = 5
_THREADS = 16
CONTROL_GROUP = Path("/sys/fs/cgroup")
_SHARE = 2
"""One part in this many of what is free may be taken."""

_Request = TypeVar("_Request", bound=Request)


def settled(request: _Request, sources: Sequence[Source]) -> _Request:
    """The request with an engine instead of ``"auto"``, and why it is this one."""
    if request.engine != AUTO:
        return request
    engine, why = _chosen(request, sources)
    return replace(request, engine=engine, engine_why=request.hide(why))


def _chosen(request: Request, sources: Sequence[Source]) -> tuple[str, str]:
    if not opens("output", request.output):
        return "spark", f"PyArrow cannot open {request.output}"
    for source in sources:
        if source.is_uri and not opens(source.side, source.text):
            return "spark", f"PyArrow cannot open {source.text}"
    columns = request.read_columns or [None] * len(sources)
    sizes, needed = zip(*map(_size, sources, columns), strict=False)
    told = f"{bytes_words(sum(sizes))} of input"
    if not any(source.format.has_row_groups for source in sources):
        # Spark would read them into the memory of this process, and then copy them.
        return "local", told
    free = free_memory() // _SHARE
    if sum(needed) <= free:
        return "local", told
    return "spark", (
        f"{told} would need about {bytes_words(sum(needed))} of memory in one process, and"
        f" {bytes_words(free)} is half of the free memory"
    )


def opens(what: str, text: str) -> bool:
    """Whether PyArrow reads and writes there."""
    with suppress(DataError):
        return bool(place_of(what, text)) if text.strip() else True
    return False


def _size(source: Source, columns: Collection[str] | None) -> tuple[int, int]:
    """Bytes of an input as it lies there, and as a join in one process needs them, about."""
    files = source.found
    infos = files.filesystem.get_file_info(list(files.paths))
    stored = sum(info.size or 0 for info in infos)
    if not source.format.has_row_groups:
        packed = sum(info.size or 0 for info in infos if info.path.lower().endswith(COMPRESSED))
        return stored, BYTES_OF_A_BYTE * (stored + (_UNPACKED - 1) * packed)

    def told(path: str) -> tuple[int, int]:
        with reading(source), files.filesystem.open_input_file(path) as opened:
            return _rows_and_bytes(pq.read_metadata(opened), columns)

    with ThreadPoolExecutor(_THREADS) as pool:
        rows, plain = map(sum, zip(*pool.map(told, files.paths), strict=True))
    return stored, BYTES_OF_A_ROW * rows + COPIES * plain


def _rows_and_bytes(footer: pq.FileMetaData, columns: Collection[str] | None) -> tuple[int, int]:
    """Rows of a Parquet file, and bytes of some columns, or all, before they were compressed."""
    size = 0
    for i in range(footer.num_row_groups):
        group = footer.row_group(i)
        chunks = map(group.column, range(group.num_columns))
        size += sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if columns is None or chunk.path_in_schema.partition(".")[0] in columns
        )
    return footer.num_rows, size


def bytes_words(size: float) -> str:
    """A number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


def free_memory() -> int:
    """Bytes that this process may still take, by the machine and by its control group."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError, KeyError):
        found.append(_numbers(Path("/proc/meminfo"))["MemAvailable:"] << 10)
    with suppress(OSError, ValueError, KeyError):  # "max" is no number
        limit, used = (
            int((CONTROL_GROUP / name).read_text(encoding="ascii"))
            for name in ("memory.max", "memory.current")
        )
        # Files that were read count as used, and give way.
        given_way = _numbers(CONTROL_GROUP / "memory.stat")["inactive_file"]
        found.append(max(0, limit - used + given_way))
    return min(found)


def _numbers(file: Path) -> dict[str, int]:
    """The numbers of a file of names and numbers."""
    lines = map(str.split, file.read_text(encoding="ascii").splitlines())
    return {words[0]: int(words[1]) for words in lines}
