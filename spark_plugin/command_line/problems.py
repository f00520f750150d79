"""From an exception to what the user sees: an exit code and one line."""

from __future__ import annotations

import os
import re
import sys
import traceback

from event_model import errors
from event_model.errors import CoincideError, DataError, SchemaError
from spark_plugin.command_line.exit_codes import BAD_USE, INTERRUPTED, OUR_FAILURE
from spark_plugin.credentials import without_credentials

DEBUG_VARIABLE = "COINCIDE_DEBUG"

_ERROR_FROM_WORKER = re.compile(r"event_model\.errors\.(\w+): (.+)")
_BUG_IN_WORKER = re.compile(r"^(?!org\.|java\.|py4j\.)[\w.]+(?:Error|Exception): .+$", re.MULTILINE)
_SPARK_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme \"?([\w.+-]+)")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")
_BAD_DATA_CONDITIONS = (
    "CANNOT_READ_FILE_FOOTER",
    "FAILED_READ_FILE",
    "MALFORMED_CSV_RECORD",
    "MALFORMED_RECORD_IN_PARSING",
    "PARQUET_TYPE",
    "PATH_",
    "UNABLE_TO_INFER_SCHEMA",
    "USER_RAISED_EXCEPTION",
)


class Problem(CoincideError):
    """A file or an argument that the command cannot work with."""


def report(error: BaseException, debug: bool) -> int:
    """Print one line about an error to stderr and return the exit code for it."""
    code, message = explain(error)
    if debug:
        print(without_credentials("".join(traceback.format_exception(error))), file=sys.stderr)
    elif code == OUR_FAILURE:
        notes = [message, *getattr(error, "__notes__", ())]
        message = f"{'. '.join(notes)}. --debug or {DEBUG_VARIABLE}=1 shows where it happened"
    print(f"coincide: {without_credentials(' '.join(message.split()))}", file=sys.stderr)
    return code


def explain(error: BaseException) -> tuple[int, str]:
    """Exit code of an error and the words for it."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return INTERRUPTED, "interrupted; no output was left"
    if hasattr(error, "format_message"):  # the argument parser's own errors
        return BAD_USE, str(error.format_message())
    if isinstance(error, CoincideError):
        return BAD_USE, str(error)
    if isinstance(error, PermissionError):
        return BAD_USE, f"no permission: {error.filename or error}"
    if type(error).__module__.startswith(("pyspark.", "py4j.")):
        return _explain_spark(error)
    if isinstance(error, OSError) and error.strerror:
        return OUR_FAILURE, f"{error.strerror}: {error.filename or 'an input or the output'}"
    return OUR_FAILURE, f"{type(error).__name__}: {first_line(error)}"


def _explain_spark(error: BaseException) -> tuple[int, str]:
    text = str(error)
    raised = _ERROR_FROM_WORKER.findall(text)
    if raised:
        return BAD_USE, raised[-1][1]
    unknown = _NO_FILE_SYSTEM.search(text)
    if unknown:
        return BAD_USE, (
            f"Spark knows no file system {unknown[1]}://; name another, or add its library, for example"
            " with --conf spark.jars.packages=..."
        )
    conditions = [
        (name, _SQL_STATE.sub("", words)) for name, words in _SPARK_CONDITION.findall(text)
    ]
    bad = [words for name, words in conditions if name.startswith(_BAD_DATA_CONDITIONS)]
    if bad:
        return BAD_USE, "Spark: " + " ".join(dict.fromkeys(bad))
    bugs = _BUG_IN_WORKER.findall(text)
    if bugs:
        return OUR_FAILURE, f"in a Spark worker: {bugs[-1]}"
    words = conditions[0][1] if conditions else first_line(error)
    code = BAD_USE if type(error).__name__ == "AnalysisException" else OUR_FAILURE
    return code, f"Spark: {words}"


def as_ours(error: BaseException) -> CoincideError | None:
    """What Spark says of the data as an error of this package; None for what is a failure."""
    code, words = explain(error)
    if code != BAD_USE:
        return None
    text = str(error)
    raised = _ERROR_FROM_WORKER.findall(text)
    if raised:
        return getattr(errors, raised[-1][0], DataError)(words)
    of_types = type(error).__name__ == "AnalysisException" or "[PARQUET_TYPE" in text
    return (SchemaError if of_types else DataError)(words)


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def wants_debug(arguments: list[str]) -> bool:
    """Whether tracebacks are wanted."""
    return "--debug" in arguments or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
