"""From an exception, a warning or a signal to what the user sees."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from coincide.command_line.interruption import BAD_USE, INTERRUPTED, OUR_FAILURE
from coincide.engine.files.credentials import Redactor
from coincide.model.errors import (
    Argument,
    CoincideError,
    CoincideWarning,
    first_line,
    marked,
    worded,
)

DEBUG_VARIABLE = "COINCIDE_DEBUG"
RUNNING: ContextVar[str] = ContextVar("running", default="")
"""The command at work, whose options messages name."""


_CURES = {
    "unexpected extra argument": "--within takes LO HI, or one duration. Put a glob in quotes,"
    " like 'events/*.parquet'",
    "Missing option '--output'": "Name the output, for example -o out.parquet, or -o - for standard output",
    "Missing option '--max-offset'": "Say how far apart the clocks may be, for example --max-offset 10s",
    "Missing argument 'INPUTS": "Give two inputs or more, for example a.parquet b.parquet",
    "Missing option '--within'": "Say how long may pass: --within 0s 5s for each step of a sequence,"
    " --within 50ms for coincidences",
    "Missing argument 'RIGHT'": "Give two inputs, LEFT and RIGHT, for example a.parquet b.parquet",
    "No such option: --png": "coincide explore writes a page. For pictures use Exploration.save in Python",
    "'--confidence'": "Write a number between 0 and 1, such as 0.9, or 90%",
    "valid number": "Write digits without a unit, such as 0.5",
    "valid integer": "Write it as 8",
}
"""What to add to what the argument parser says, by a part of it."""


class Problem(CoincideError):
    """A file or an argument that the command cannot work with."""


def cannot_print(what: str, error: OSError, more: str = "") -> Problem:
    """That something could not be printed, and what else is to be said."""
    return Problem(f"{what} cannot be printed (found: {error.strerror or error}).{more}")


_SINGLE = ("left", "right", "causes", "effects", "events", "readings", "queries")
_INPUTS = {name: name.upper() for name in _SINGLE} | {"tables": "INPUTS"}
_CLOCKS = ("around", "resolution")
_SIDES = {"left_": "cause_", "right_": "effect_"}
_CAUSAL = {
    "time": "propagation_time", "speed": "propagation_speed", "v_min": "speed", "v_max": "speed",
    "duration": "ellipsoid", "lo": "delta", "hi": "delta",
}  # fmt: skip
"""Fields of predicates whose options have other names."""
_CALLED = {"aggregates": "aggregate", "windows": "within"}
"""Options that are typed once for each of several."""
_COMMANDS = {"correlate_tables": "coincide join", "sequence_tables": "coincide sequence"}
"""Functions that messages of other commands speak of."""
_PLAIN = re.compile(r"[\w.,:=+-]+")


def as_option(argument: Argument, command: str) -> str:
    """How a command calls an argument: ``--unit us``, ``--probability``, ``RIGHT``."""
    name, shown = argument.name, argument.shown
    if name in _CLOCKS and shown:
        return f"the clock {shown}"
    if (called := _alone(name, shown)) is not None:
        return called
    if command == "causality":
        name = _CAUSAL.get(name, name)
        for side, other in _SIDES.items():
            name = name.replace(side, other)
    elif command == "clusters":
        name = name.removeprefix("cause_").removeprefix("left_")
    elif command in ("sequence", "coincidence"):
        name = name.removeprefix("left_").removeprefix("right_")
    flag = f"--{_CALLED.get(name, name).replace('_', '-')}"
    return flag if shown in ("", "True") else _with_value(flag, argument)


def _alone(name: str, shown: str) -> str | None:
    """What is no option with a value, as a command calls it."""
    if name in _INPUTS:
        return _INPUTS[name]
    if name == "Sphere":
        return "--lat-lon"
    return "--stream -" if (name, shown) == ("stream", "None") else _COMMANDS.get(name)


def _with_value(flag: str, argument: Argument) -> str:
    """An option with its value, as one types it."""
    name, value, typed = argument.name, argument.value, argument.typed
    if name == "windows" and isinstance(value, list):
        return " ".join(f"{flag} {lo} {hi}" for lo, hi in value)
    if name == "columns" and isinstance(value, dict):
        return " ".join(f"{flag} {own}={','.join(each)}" for own, each in value.items())
    if name in ("within", "total") and typed.count(",") == 1:
        return f"{flag} {typed.replace(',', ' ')}"
    return f"{flag} {typed if _PLAIN.fullmatch(typed) else argument.shown}"


def in_options(said: object, command: str | None = None) -> str:
    """A message as a command says it, the running one if no other is named."""
    running = RUNNING.get() if command is None else command
    return worded(said, lambda argument: as_option(argument, running))


def report(error: BaseException, debug: bool, words: Sequence[str] = ()) -> int:
    """Print one line about an error to stderr, without the secrets of `words`; its exit code."""
    hide = Redactor.of(words)
    code, message = explain(error)
    if debug:
        print(hide("".join(traceback.format_exception(error))), file=sys.stderr)
    elif code == OUR_FAILURE:
        notes = [message, *getattr(error, "__notes__", ())]
        message = f"{'. '.join(notes)}. Use --debug or {DEBUG_VARIABLE}=1 to see where it happened"
    message = hide(in_options(message, next(iter(words), "")))
    print(f"coincide: {' '.join(message.split())}", file=sys.stderr)
    return code


def tell_closed(why: str) -> None:
    """Say on stderr, before a slower way begins, why it is taken, and what would help."""
    print(
        "coincide: the files cannot be joined slice by slice, so another way is taken:"
        f" {in_options(why)}",
        file=sys.stderr,
    )


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code of an error and the words for it."""
    # The argument parser takes an early end of any file for one of what is typed, and aborts.
    if type(error).__name__ == "Abort" and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return INTERRUPTED, "interrupted. The output was not written"
    if hasattr(error, "format_message"):  # the argument parser's own errors
        return BAD_USE, _with_cure(str(error.format_message()))
    if isinstance(error, CoincideError):
        return BAD_USE, marked(error)
    if isinstance(error, PermissionError):
        return BAD_USE, f"no permission: {error.filename or error}"
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        from spark_plugin.cluster.spark_errors import explain_spark  # imports pyspark

        is_bad_use, words = explain_spark(error)
        return (BAD_USE if is_bad_use else OUR_FAILURE), words
    if isinstance(error, OSError) and error.strerror:
        where = error.filename or "an input, the output, or standard output"
        return OUR_FAILURE, f"{error.strerror}: {where}"
    return OUR_FAILURE, f"{type(error).__name__}: {first_line(error)}"


def _with_cure(said: str) -> str:
    """What the argument parser says, and what to do about it."""
    cure = next((cure for sign, cure in _CURES.items() if sign in said), "")
    return f"{said.rstrip('.')}. {cure}." if cure else said


def wants_debug(arguments: list[str]) -> bool:
    """Whether tracebacks are wanted."""
    return "--debug" in arguments or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Tell warnings, of short shifts say, as lines like all others, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoincideWarning)
        yield
    ours = [
        in_options(each.message) for each in caught if issubclass(each.category, CoincideWarning)
    ]
    for text in dict.fromkeys(ours):
        print(f"coincide: {text}", file=sys.stderr)
    for each in caught:
        if not issubclass(each.category, CoincideWarning):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
