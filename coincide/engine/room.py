"""Whether pairs have room: what is free of memory and of a disk, and how many pairs a join may have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coincide.model.counters import Sums
from coincide.model.errors import MemoryBudgetError, option
from coincide.model.options import OUTPUT_ROWS

CONTROL_GROUP = Path("/sys/fs/cgroup")
_SMALL = 64 << 20
"""Bytes for which nothing needs to be looked up."""
_CANDIDATE = 110
"""Bytes of a pair that may be chosen: rows, ranks, groups and gains, and copies on the way."""


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


def bytes_words(size: float) -> str:
    """A number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"


@dataclass(frozen=True)
class Expected(Sums):
    """What is known of an answer once its pairs are counted, before any is made."""

    pairs: int = 0
    rows: int = 0
    size: int = 0  # Bytes of the rows in memory, about


class DiskUse(NamedTuple):
    """Bytes of an output that is being written, and those that are free where it lies."""

    written: int
    free: int


class PairLimit:
    """The pairs that a join may have, in all its parts together: `CorrelateOptions.max_pairs`.

    Without such a number they have to fit: into memory if the answer is collected there, else on the
    disk to which it is written.
    """

    def __init__(self, most: int | None) -> None:
        self.expected = Expected()
        self.is_all = False
        """Whether all parts were counted."""
        self.is_collected = False
        self._most = most

    def expect(self, part: Expected | None, is_last: bool) -> None:
        """Pairs of one more part; None where a left event has a few rows, however many pairs there are."""
        self.is_all = is_last
        if part is None:
            return
        self.expected += part
        check_most(self.expected.pairs, self._most)
        if self._most is None and self.is_collected and self.expected.size > _SMALL:
            self._check("memory", self.expected.size, free_memory())

    @property
    def rows(self) -> int | None:
        """Rows of the answer, where they are known."""
        return self.expected.rows if self.is_all and self.expected.rows else None

    def check_disk(self, rows: int, use: DiskUse | None) -> None:
        """Refuse rows that have no room, by what those take that were written."""
        if self._most is not None or use is None or not 0 < rows < self.expected.rows:
            return
        size = use.written * self.expected.rows // rows
        self._check("disk space", size, use.written + use.free)

    def _check(self, what: str, size: int, free: int) -> None:
        if size > free:
            raise _lack_of_room("of this join", self.expected.pairs, what, size, free)


_CURE = (
    "Narrow the window, raise the confidence, join by more keys, ask for"
    f" {OUTPUT_ROWS['counts'].said} or {OUTPUT_ROWS['best'].said}"
)


def _lack_of_room(called: str, pairs: int, what: str, size: int, free: int) -> MemoryBudgetError:
    return MemoryBudgetError(
        f"the {pairs:,} pairs {called} would take about {bytes_words(size)} of {what} (found"
        f" {bytes_words(free)}). {_CURE}, or allow them by {option('max_pairs', pairs)}."
    )


def check_candidates(pairs: int, most: int | None) -> None:
    """Refuse pairs that are all held before some are chosen, if memory or a limit forbids them."""
    check_most(pairs, most)
    size = pairs * _CANDIDATE
    if most is None and size > _SMALL and size > (free := free_memory()):
        raise _lack_of_room("to choose from", pairs, "memory", size, free)


_LINK = 16
"""Bytes of a link between two streams, where each is written: a row, and a probability."""


def check_links(links: int, most: int | None) -> None:
    """Refuse links that are all held while sequences are made of them, if memory forbids them."""
    size = links * _LINK
    is_allowed = most is not None and links <= most
    if not is_allowed and size > _SMALL and size > (free := free_memory()):
        raise _lack_of_room("of two streams", links, "memory", size, free)


def check_most(pairs: int, most: int | None, what: str = "pairs", cure: str = _CURE) -> None:
    """Refuse more pairs, or whatever is made of them, than are allowed."""
    if most is not None and pairs > most:
        raise MemoryBudgetError(
            f"the join has more {what} than {option('max_pairs', most)} allows (found {pairs:,})."
            f" {cure}, or allow more."
        )


def fixed_bytes(kinds: Sequence[pa.DataType]) -> int:
    """Bytes of a row in columns whose values have one size; offsets of all others."""
    return sum(map(_fixed, kinds))


_OFFSET = 4


def _fixed(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width + 7) // 8
    except ValueError:
        return _OFFSET


def bytes_of_rows(sizes: np.ndarray, counts: np.ndarray) -> int:
    """Bytes of rows that come this many times, from those of each."""
    return int(sizes.astype(np.float64) @ counts)
