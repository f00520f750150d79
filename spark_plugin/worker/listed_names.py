"""Lists of names in one text: separated by commas, in double quotes where a name holds one."""

from __future__ import annotations

import re

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_WHOLE_NAME = re.compile(rf"(?:^|(?<=[,=]))\s*{_QUOTED.pattern}\s*(?=[,=]|$)")


def parted(text: str, mark: str) -> list[str]:
    """The parts of a text between marks, of which those in a quoted name are none."""
    hidden = _WHOLE_NAME.sub(lambda name: " " * len(name[0]), text)
    ends = [found.start() for found in re.finditer(re.escape(mark), hidden)]
    return [text[a + 1 : b] for a, b in zip([-1, *ends], [*ends, len(text)], strict=True)]


def plain(name: str) -> str:
    """A name without its quotes and the blanks around them; quotes within it are doubled."""
    found = _QUOTED.fullmatch(name.strip())
    return found[1].replace('""', '"') if found else name.strip()
