"""From an exception to what the user sees: an exit code and one line."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from coincide.errors import CoincideError, first_line
from spark_plugin.cluster.spark_errors import explain_spark
from spark_plugin.command_line.exit_codes import BAD_USE, INTERRUPTED, OUR_FAILURE
from spark_plugin.worker.files.credentials import Redactor
from spark_plugin.worker.reports.wording import for_command_line

DEBUG_VARIABLE = "COINCIDE_DEBUG"


_CURES = {
    "unexpected extra argument": "--within takes LO HI, or one duration; a glob needs quotes, such as"
    " 'events/*.parquet'",
    "Missing option '-o'": "say where to write, such as -o out.parquet, or -o - for standard output",
    "Missing argument 'RIGHT'": "two inputs are needed, LEFT and RIGHT, such as a.parquet b.parquet",
    "'--confidence'": "write it as 0.9",
    "valid number": "write digits without a unit, such as 80",
    "valid integer": "write it as 8",
}
"""What to add to what the argument parser says, by a part of it."""


class Problem(CoincideError):
    """A file or an argument that the command cannot work with."""


def report(error: BaseException, debug: bool, words: Sequence[str] = ()) -> int:
    """Print one line about an error to stderr, without the secrets of `words`; its exit code."""
    hide = Redactor.of(words)
    code, message = explain(error)
    if debug:
        print(hide("".join(traceback.format_exception(error))), file=sys.stderr)
    elif code == OUR_FAILURE:
        notes = [message, *getattr(error, "__notes__", ())]
        message = f"{'. '.join(notes)}. --debug or {DEBUG_VARIABLE}=1 shows where it happened"
    message = for_command_line(" ".join(hide(message).split()))
    print(f"coincide: {hide(message)}", file=sys.stderr)
    return code


def tell_closed(why: str) -> None:
    """Say on stderr, before a slower way begins, why it is taken, and what would help."""
    print(f"coincide: not directly: {for_command_line(why)}", file=sys.stderr)


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code of an error and the words for it."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return INTERRUPTED, "interrupted; no output was left"
    if hasattr(error, "format_message"):  # the argument parser's own errors
        return BAD_USE, _with_cure(str(error.format_message()))
    if isinstance(error, CoincideError):
        return BAD_USE, str(error)
    if isinstance(error, PermissionError):
        return BAD_USE, f"no permission: {error.filename or error}"
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        is_bad_use, words = explain_spark(error)
        return (BAD_USE if is_bad_use else OUR_FAILURE), words
    if isinstance(error, OSError) and error.strerror:
        return OUR_FAILURE, f"{error.strerror}: {error.filename or 'an input or the output'}"
    return OUR_FAILURE, f"{type(error).__name__}: {first_line(error)}"


def _with_cure(said: str) -> str:
    """What the argument parser says, and what to do about it."""
    cure = next((cure for sign, cure in _CURES.items() if sign in said), "")
    return f"{said.rstrip('.')}; {cure}" if cure else said


def wants_debug(arguments: list[str]) -> bool:
    """Whether tracebacks are wanted."""
    return "--debug" in arguments or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
