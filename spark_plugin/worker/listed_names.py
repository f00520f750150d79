"""Lists of names in one text: separated by commas, in double quotes where a name holds one."""

from __future__ import annotations

import re

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def parted(text: str, mark: str) -> list[str]:
    """The parts of a text between marks, of which those within double quotes are none."""
    return re.split(rf'{re.escape(mark)}(?=(?:[^"]*"[^"]*")*[^"]*$)', text)


def plain(name: str) -> str:
    """A name without its quotes and the blanks around them; quotes within it are doubled."""
    found = _QUOTED.fullmatch(name.strip())
    return found[1].replace('""', '"') if found else name.strip()
