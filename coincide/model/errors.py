"""The one tree of errors, the one of warnings, and how both name arguments.

A message holds arguments as marked text, made by `argument`. Users of Python read it as it is, without
the marks; another front end gives `worded` a function that says how an argument is called there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, TypeAlias


class Argument(NamedTuple):
    """An argument that a message speaks of."""

    name: str
    shown: str = ""
    """Its value as Python writes it, cut where it is long; nothing where only the name is said."""
    options: str = ""
    """The class of options that it is a field of."""

    @property
    def value(self) -> Any:
        """What `shown` stands for; itself where it was cut."""
        try:
            return ast.literal_eval(self.shown)
        except (SyntaxError, ValueError):
            return self.shown

    @property
    def typed(self) -> str:
        """The value as one types it where all is text: ``us``, ``true``, ``0s,30s``, ``LEFT=RIGHT``."""
        value = self.value
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, (list, tuple)):
            return ",".join("=".join(v) if isinstance(v, tuple) else str(v) for v in value)
        return str(value)


Naming: TypeAlias = Callable[[Argument], str]
"""How a front end calls an argument, with its value if it has one."""

# Invisible, so that text of a Spark worker, which others print, reads well with them.
_OPEN, _NEXT, _CLOSE = "\u2061", "\u2063", "\u2062"
_PART = f"([^{_OPEN}{_NEXT}{_CLOSE}]*)"
_MARKED = re.compile(f"{_OPEN}{_PART}{_NEXT}{_PART}{_NEXT}{_PART}{_NEXT}{_PART}{_CLOSE}")
_NO_MARKS = dict.fromkeys(map(ord, (_OPEN, _NEXT, _CLOSE)))
_ABSENT: Any = object()


def argument(name: str, value: Any = _ABSENT) -> str:
    """An argument for a message, marked: ``k``, or ``k=3``."""
    if not name.isidentifier():
        return name  # what another front end has named already
    return _mark("", name, "" if value is _ABSENT else f"={brief(value)}", "")


def option(name: str, value: Any, of: str = "CorrelateOptions") -> str:
    """A field of `options` for a message, marked: ``options=CorrelateOptions(unit='us')``."""
    return _mark(f"options={of}(", name, f"={brief(value)}", ")")


def call(function: str, value: Any = _ABSENT) -> str:
    """A call of a public function for a message, marked: ``Sphere()``, or ``around('seen')``."""
    return _mark("", function, "(" if value is _ABSENT else f"({brief(value)}", ")")


def _mark(before: str, name: str, shown: str, after: str) -> str:
    return f"{_OPEN}{before}{_NEXT}{name}{_NEXT}{shown}{_NEXT}{after}{_CLOSE}"


def worded(said: object, naming: Naming) -> str:
    """The message of an error, a warning or `Words`, with arguments as a front end calls them."""

    def named(match: re.Match[str]) -> str:
        options = match[1].removeprefix("options=").removesuffix("(")
        return naming(Argument(match[2], match[3][1:], options))

    return _MARKED.sub(named, marked(said))


def with_options(said: object, of: str) -> str:
    """A message with its marks, in which options have another class, or are arguments ("")."""

    def other(match: re.Match[str]) -> str:
        before, name, shown, after = match.groups()
        if before:
            before, after = (f"options={of}(", ")") if of else ("", "")
        return _mark(before, name, shown, after)

    return _MARKED.sub(other, marked(said))


@contextmanager
def options_called(of: str) -> Iterator[None]:
    """Errors from within name another class of options."""
    try:
        yield
    except CoincideError as error:
        raise type(error)(with_options(error, of)) from None


@contextmanager
def said_of(name: str) -> Iterator[None]:
    """Errors from within begin with an argument, which what raises them does not know."""
    try:
        yield
    except CoincideError as error:
        raise type(error)(f"{argument(name)}: {marked(error)}") from None


def marked(said: object) -> str:
    """The message of an error, a warning or `Words` with its marks, to be part of another one."""
    if isinstance(said, BaseException):
        said = said.args[0] if said.args and isinstance(said.args[0], Words) else str(said)
    return said.marked if isinstance(said, Words) else str(said)


class Words(str):
    """Text for users of Python, from marked text, which it keeps for other front ends."""

    keep_marks = False
    """True in a Spark worker of a command, which words the text of its errors."""

    marked: str

    def __new__(cls, text: str = "") -> Words:
        """Make it from marked text, or from other `Words`."""
        text = marked(text)
        plain = text if cls.keep_marks else _MARKED.sub(_without_marks, text)
        words = super().__new__(cls, plain)
        words.marked = text
        return words


def _without_marks(match: re.Match[str]) -> str:
    return match[0].translate(_NO_MARKS)


class CoincideError(Exception):
    """Base of every error that Coincide raises on purpose."""

    def __init__(self, *said: Any) -> None:
        super().__init__(*(Words(each) if isinstance(each, str) else each for each in said))


class SchemaError(CoincideError, TypeError):
    """A column is missing, or has a type that does not fit its use."""


class ConditionError(CoincideError, ValueError):
    """A predicate, threshold, duration or option that makes no sense."""


class DataError(CoincideError, ValueError):
    """Rows that cannot be joined: min > max, NaN, a time out of range."""


class BackendError(CoincideError, RuntimeError):
    """The asked-for backend is not here."""


class MemoryBudgetError(CoincideError, MemoryError):
    """The work does not fit the memory that the options allow."""


_LONGEST_SHOWN = 60


def brief(value: object) -> str:
    """As `repr`, cut where it is long: a value that someone else made up may be of any length."""
    # An int of more digits than Python writes down has no `repr` at all.
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_SHOWN:
        return f"an int of {value.bit_length():,} bits"
    if isinstance(value, (FunctionType, BuiltinFunctionType)):
        return f"the function {value.__name__}"
    try:
        text = repr(value)
    except ValueError:  # a number holds such an int
        text = f"a {type(value).__name__} of too many digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def percent(confidence: float) -> str:
    """What else to say of a confidence that is too large to be one."""
    return f"; {confidence:g} % is {confidence / 100:g}" if 1 < confidence <= 100 else ""


def found_instead(value: object) -> str:
    """What is found where something else should be, in one short line: its `repr`, or its type."""
    text = brief(value)
    if "\n" not in text and "..." not in text:
        return text
    package, name = type(value).__module__.split(".")[0], type(value).__name__
    return name if package == "builtins" else f"{package}.{name}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


class CoincideWarning(UserWarning):
    """Base of every warning that Coincide gives on purpose."""

    def __init__(self, *said: Any) -> None:
        super().__init__(*(Words(each) if isinstance(each, str) else each for each in said))


class DroppedRowsWarning(CoincideWarning):
    """Invalid rows were skipped, because of ``invalid="drop"``."""


class LateRowsWarning(CoincideWarning):
    """Rows were skipped: they came later than a delay allows, or repeat a time of their stream."""


class AheadRowsWarning(CoincideWarning):
    """Rows of a stream were set aside: they are too far ahead of the last rows of their side."""


class AmbiguousCrossingsWarning(CoincideWarning):
    """Events are reported as crossed and as stayed, since the confidence is at most 0.5."""


class UnmatchableRowsWarning(CoincideWarning):
    """Rows match nothing: a time or key is null, or the timestamp is longer than any match can be."""


class RoundedTimesWarning(CoincideWarning):
    """Float times were changed by rounding them to ticks."""


class ShortShiftsWarning(CoincideWarning):
    """Shifts are so short that true pairs may be counted as accidental ones."""


class EarlyAnswersWarning(CoincideWarning):
    """Answers that are stamped before what they answer count as missing, as a window begins at 0."""


class ClockLimitsWarning(CoincideWarning):
    """Limits of clock errors are too narrow for the answer, or too wide for the data."""


class DistanceUnitWarning(CoincideWarning):
    """Places or a radius look like they were meant in another unit, such as degrees for metres."""


class CopiedRowsWarning(CoincideWarning):
    """A join on Spark sends rows to many more slices than pay, since workers have no room for fewer."""


class LargeSlicesWarning(CoincideWarning):
    """A task of a planned exchange holds more than options allow: its rows are in reach of each other."""


class KernelCacheWarning(CoincideWarning):
    """Compiled code cannot be kept on disk, or was damaged there: Coincide compiles it again."""


class NoPairsWarning(CoincideWarning):
    """A join, or a search for crossings, finds nothing; the text says why."""


def several(count: int, thing: str) -> str:
    """``0 rows``, ``1 row``, ``1,200 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
