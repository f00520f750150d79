"""How options are declared: as rows of a table, which become keywords that Typer reads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Annotated, Any, NamedTuple

import typer

LIST, TWO, TWOS = list[str], tuple[str, str], list[tuple[str, str]]
"""Kinds of values: of an option that may be repeated, of one that takes two words, and of both."""
_BETWEEN = "\x1f"
"""Between two words that go through the parser as one, which has no lists of twos."""


class Flag(NamedTuple):
    """An option as it is typed: its name, and what its value is called; without a value it is a switch."""

    name: str
    metavar: str | None
    help: str
    kind: Any = str
    default: str | float | None = None
    is_needed: bool = False
    short: str | None = None

    @property
    def value(self) -> Any:
        """What the keyword of the option is where it is not typed."""
        if self.is_needed:
            return Parameter.empty
        return False if self.metavar is None else self.default


_NAMES = {
    "--format": "file_format", "--json": "as_json", "--time-format": "csv_time_format",
    "--repeated-hour": "csv_repeated_hour", "--aggregate": "aggregates",
}  # fmt: skip
"""What options are called inside, where that is not as they are typed."""


def switch(name: str, help: str) -> Flag:
    """An option without a value."""
    return Flag(name, None, help)


def group(panel: str, flags: Sequence[Flag], **more: Any) -> list[Parameter]:
    """Options of a panel."""
    return [_option(panel, flag, more) for flag in flags]


def _option(panel: str, flag: Flag, more: dict[str, Any]) -> Parameter:
    typed = [flag.name, *filter(None, [flag.short])]
    name = _NAMES.get(flag.name, flag.name.lstrip("-").replace("-", "_"))
    shown = typer.Option(
        *typed, metavar=flag.metavar, help=flag.help, rich_help_panel=panel, **more
    )
    kind = LIST if flag.kind == TWOS else flag.kind
    return _parameter(name, flag.value, bool if flag.metavar is None else kind, shown)


def takes_twos(option: Any) -> bool:
    """Whether an option of the parser takes two words each time that it is typed."""
    return getattr(option, "multiple", False) and " " in str(option.metavar)


def as_one(two: tuple[str, str]) -> str:
    """Two words, as the parser takes them."""
    return _BETWEEN.join(two)


def twos(words: Sequence[str]) -> list[tuple[str, str]]:
    """What was typed of an option of two words, from what the parser gives."""
    parts = [word.partition(_BETWEEN) for word in words]
    return [(first, second) for first, _, second in parts]


def _parameter(name: str, default: Any, kind: Any, shown: Any) -> Parameter:
    """A keyword of a command, as Typer reads it; with None as its default it may be left out."""
    kind = kind | None if default is None else kind
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, shown]
    )


def typed(name: str, options: Sequence[Parameter], words: Mapping[str, Any]) -> str:
    """What was typed, in one order, without what is as its default."""
    found = ["coincide", name]
    for each in options:
        word = words.get(each.name, each.default)
        if word == each.default:
            continue
        (shown,) = each.annotation.__metadata__
        # Typer has the first flag as `default` here; an input has none.
        flags = (shown.default, *(shown.param_decls or ()))
        flag = [each for each in flags if isinstance(each, str)][-1:]
        for one in word if isinstance(word, list) else [word]:
            values = one if isinstance(one, tuple) else () if one is True else (one,)
            found += [*flag, *map(str, values)]
    return shlex.join(found)


def input_of(name: str, help: str, default: Any = Parameter.empty, kind: Any = str) -> Parameter:
    """An argument without a name, such as the file of an input."""
    return _parameter(name, default, kind, typer.Argument(metavar=name.upper(), help=help))
