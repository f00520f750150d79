"""Commands whose help shows flags without a type, and which take one duration for a window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

_BOUND = re.compile(r"[+-]?\.?\d|\s*$")
"""How a bound of a window begins; an empty one is an error of its own."""
_TRUTHS = ("true", "false", "yes", "no")


class _PlainFlags:
    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Group(_PlainFlags, TyperGroup):
    """The program."""


class Command(_PlainFlags, TyperCommand):
    """One command of the program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed.

        Raises
        ------
        CoincideError
            If a flag has a value, or an option lacks its second value.
        """
        options = [each for each in self.get_params(ctx) if each.param_type_name == "option"]
        return super().parse_args(ctx, list(_spelled_out(args, options)))


def _spelled_out(args: Sequence[str], options: Sequence[Any]) -> Iterator[str]:
    """The words, with both ends of a window of one duration."""
    by_name = {name: option for option in options for name in option.opts}
    words = list(args)
    while words:
        word = words.pop(0)
        if word == "--":
            yield from (word, *words)
            return
        name, sign, value = word.partition("=")
        option = by_name.get(name)
        if option is not None and option.nargs == 2:
            words[:0] = [value] if sign else []
            yield from (name, *_two(name, option.metavar, words, by_name))
            continue
        if option is not None and option.is_flag:
            _check_alone(name, value if sign else next(iter(words), ""), bool(sign))
        yield word


def _check_alone(flag: str, value: str, is_meant: bool) -> None:
    if is_meant or value.lower() in _TRUTHS:
        raise _problem(
            f"{flag} takes no value (found {value!r}). Write {flag} alone, or leave it out"
        )


def _two(name: str, called: str, words: list[str], by_name: dict[str, Any]) -> tuple[str, str]:
    """Take the two values of an option from the words that follow it; of one duration -D and D."""
    found = words[:2]
    for i, word in enumerate(found):
        if word.startswith("--") or word in by_name:
            del found[i:]
            break
    if len(found) == 2 and (name != "--within" or _BOUND.match(found[1])):
        del words[:2]
        return found[0], found[1]
    if not found or name != "--within":
        instead = repr(found[0]) if found else "none"
        if name == "--within":
            raise _problem(f"{name} takes one duration or two (found {instead}). Write one")
        raise _problem(f"{name} takes two values, {called} (found {instead}). Write both")
    from spark_plugin.worker.words import both_ends

    return both_ends(words.pop(0))


def _problem(text: str) -> Exception:
    from spark_plugin.command_line.problems import Problem

    return Problem(text)
