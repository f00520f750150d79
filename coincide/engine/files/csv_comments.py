"""Lines of CSV that begin with a mark are comments: they become empty lines, which are no rows."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

_CHARACTERS = 1 << 20


MARKS = ("#", "%", "!", ";", "*")
"""What comments mostly begin with."""


class Uncommented(io.RawIOBase):
    """A stream of text in UTF-8 without comments, line by line as it was."""

    def __init__(self, stream: io.RawIOBase, encoding: str, mark: str, quote: str) -> None:
        self._text = io.TextIOWrapper(
            io.BufferedReader(stream), encoding=encoding, errors="strict", newline=""
        )
        self._parts = (part.encode() for part in _uncommented(self._text, mark, quote))
        self._rest = b""

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """The next bytes."""
        while not self._rest:
            part = next(self._parts, None)
            if part is None:
                return 0
            self._rest = part
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close what it reads."""
        self._text.close()
        super().close()


def _uncommented(text: io.TextIOWrapper, mark: str, quote: str) -> Iterator[str]:
    comments, held = Comments(mark, quote), text.read(1).removeprefix("\ufeff")
    while chunk := text.read(_CHARACTERS):
        whole, end, held = (held + chunk).rpartition("\n")
        yield comments.without(whole + end)
    yield comments.without(held)


class Comments:
    """Which lines are comments, part by part: a line within a quoted cell is no comment."""

    def __init__(self, mark: str, quote: str) -> None:
        self._line = re.compile(rf"(?m)^{re.escape(mark)}.*$")
        self._quote, self._is_quoted = quote, False

    def without(self, part: str) -> str:
        """Whole lines, with nothing in those that are comments."""
        kept: list[str] = []
        at = 0
        for found in self._line.finditer(part):
            self._look(kept, part[at : found.start()])
            at = found.start() if self._is_quoted else found.end()
        self._look(kept, part[at:])
        return "".join(kept)

    def _look(self, kept: list[str], text: str) -> None:
        kept.append(text)
        if self._quote and text.count(self._quote) % 2:
            self._is_quoted = not self._is_quoted
