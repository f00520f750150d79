"""Docstrings that say "As in `coincide.NAME`." of parameters: `help` shows the text that is there."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
_SECTIONS = ("Parameters", "Returns")
_WIDTH = 104
_AS_IN = re.compile(r"As in `coincide\.(\w+)`\.\s*")
"""How the text of an entry begins that is written elsewhere; what follows belongs to it, too."""


class _Entry(NamedTuple):
    """Some parameters, or what is returned, with the lines about them."""

    header: str
    text: list[str]

    @property
    def names(self) -> list[str]:
        """The names of the parameters."""
        return [name.strip() for name in self.header.partition(" : ")[0].split(",")]

    def of(self, names: Sequence[str]) -> _Entry:
        """The same about some of them."""
        kind = self.header.partition(" : ")[2]
        header = ", ".join(name for name in self.names if name in names)
        return self._replace(header=f"{header} : {kind}" if kind else header)

    @property
    def lines(self) -> list[str]:
        """As they are written."""
        return [self.header, *(f"    {line}".rstrip() for line in self.text)]


def documented(*sources: Any) -> Callable[[T], T]:
    """Complete a docstring by those of functions or classes that it names.

    An entry is replaced by those of the source about the same parameters, and a result by what the source
    says of its own. The text after the reference is added.
    """
    known = {source.__name__: source.__doc__ or "" for source in sources}

    def completed(target: T) -> T:
        if target.__doc__ is not None:  # as it is with python -OO
            target.__doc__ = "\n".join(_completed(inspect.cleandoc(target.__doc__), known))
        return target

    return completed


def _completed(text: str, known: dict[str, str]) -> Iterator[str]:
    for part in _parts(text):
        if isinstance(part, str):
            yield part
            continue
        section, entry = part
        found = _AS_IN.match(" ".join(entry.text))
        if found is None:
            yield from entry.lines
            continue
        more = textwrap.wrap(" ".join(entry.text)[found.end() :].strip(), _WIDTH)
        *before, last = _meant(section, entry, known[found[1]])
        for each in (*before, last._replace(text=[*last.text, *more])):
            yield from each.lines


def _meant(section: str, entry: _Entry, source: str) -> list[_Entry]:
    """What a source says of the parameters of an entry, or of what it returns."""
    found = [
        part[1]
        for part in _parts(inspect.cleandoc(source))
        if not isinstance(part, str) and part[0] == section
    ]
    if section == "Returns":
        return [entry._replace(text=found[0].text)]
    return [each.of(entry.names) for each in found if {*each.names} & {*entry.names}]


def _parts(text: str) -> Iterator[str | tuple[str, _Entry]]:
    """The lines of a docstring, with the entries of sections in place of theirs."""
    lines = text.splitlines()
    section, entry = "", None
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        is_title = bool(following) and set(following) == {"-"}
        if entry is not None and line.startswith(" "):
            entry.text.append(line[4:])
            continue
        if entry is not None:
            yield section, entry
            entry = None
        if is_title:
            section = line if line in _SECTIONS else ""
        if section and line and not is_title and set(line) != {"-"}:
            entry = _Entry(line, [])
        else:
            yield line
    if entry is not None:
        yield section, entry
