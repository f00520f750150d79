"""What reports and summaries print: lines, each with a name and what there is to say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from html import escape

from coincide.model.errors import Words

Line = tuple[str, str]


class Told(ABC):
    """What can be printed: below each other, or in a notebook as a table."""

    @property
    @abstractmethod
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""

    def __str__(self) -> str:
        return aligned(self.lines)

    def _repr_html_(self) -> str:
        return as_html(self.lines)


def under(name: str, words: Sequence[str]) -> list[Line]:
    """Lines of which the first one alone has a name."""
    return [("" if i else name, line) for i, line in enumerate(words)]


def aligned(lines: Sequence[Line], said: Callable[[str], str] = Words) -> str:
    """Lines below each other; `said` gives what is said as a front end says it."""
    width = max((len(name) for name, _ in lines), default=0)
    return "\n".join(f"{name:<{width}}  {said(text)}".rstrip() for name, text in lines)


def as_html(lines: Sequence[Line]) -> str:
    """The same as a table."""
    rows = (
        f"<tr><th>{escape(name)}</th><td>{escape(Words(text))}</td></tr>" for name, text in lines
    )
    return f"<table>{''.join(rows)}</table>"
