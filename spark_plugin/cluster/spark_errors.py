"""What Spark raises, in our words: from a worker's error, or a condition of Spark's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from coincide.model import errors
from coincide.model.errors import CoincideError, DataError, SchemaError, first_line

_ERROR_FROM_WORKER = re.compile(r"coincide\.model\.errors\.(\w+): (.+)")
_BUG_IN_WORKER = re.compile(r"^(?!org\.|java\.|py4j\.)[\w.]+(?:Error|Exception): .+$", re.MULTILINE)
_SPARK_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\] ([^\n]*)")
_STREAM_FAILED = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_OTHER_SOURCES = re.compile(
    r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\] sources"
)
_OTHER_STATE = re.compile(r"\[STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE\]")
_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme \"?([\w.+-]+)")
_FILE_NOT_READ = re.compile(r"\[FAILED_READ_FILE[\w.]*\] [^\n]*? file ([^\n]+?)\.(?:\s|$)")
_OVERFLOW = "java.lang.ArithmeticException: long overflow"
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

SPARK_COUNTS = "Spark counts times in microseconds, in 64 bits"


class BeyondMicroseconds(DataError):
    """Files hold times that Spark cannot."""


def explain_spark(error: BaseException) -> tuple[bool, str]:
    """Whether what Spark raised is about the data or the request, and the words for it."""
    text = _STREAM_FAILED.sub("", str(error))
    raised = _ERROR_FROM_WORKER.findall(text)
    if raised:
        return True, raised[-1][1]
    sources = _OTHER_SOURCES.search(text)
    if sources:
        return True, (
            f"the checkpoint was begun with other streams to read (found {sources[1]} in it, and"
            f" {sources[2]} now). Give the earlier clocks and idle_after, or begin with a new"
            " checkpoint."
        )
    if _OTHER_STATE.search(text):
        return True, (
            "the checkpoint was begun by another version, whose state has another form (found other"
            " columns in it). Begin with a new checkpoint."
        )
    unknown = _NO_FILE_SYSTEM.search(text)
    if unknown:
        return True, (
            f"Spark has no file system {unknown[1]}://. Use another, or add its library, for"
            " example with --conf spark.jars.packages=..."
        )
    if (file := _file_of_overflow(text)) is not None:
        return True, (
            f"{file} holds times that Spark cannot read, as {SPARK_COUNTS}. Remove such rows from"
            " the file, or join it without Spark."
        )
    conditions = [
        (name, _SQL_STATE.sub("", words)) for name, words in _SPARK_CONDITION.findall(text)
    ]
    bad = [words for name, words in conditions if name.startswith(_BAD_DATA_CONDITIONS)]
    if bad:
        return True, "Spark: " + " ".join(dict.fromkeys(bad))
    bugs = _BUG_IN_WORKER.findall(text)
    if bugs:
        return False, f"in a Spark worker: {bugs[-1]}"
    words = conditions[0][1] if conditions else first_line(error)
    return type(error).__name__ == "AnalysisException", f"Spark: {words}"


def as_ours(error: BaseException) -> CoincideError | None:
    """What Spark says of the data as an error of this package; None for what is a failure."""
    is_bad_use, words = explain_spark(error)
    if not is_bad_use:
        return None
    text = str(error)
    raised = _ERROR_FROM_WORKER.findall(text)
    if raised:
        return getattr(errors, raised[-1][0], DataError)(words)
    if _file_of_overflow(text) is not None:
        return BeyondMicroseconds(words)
    of_types = type(error).__name__ == "AnalysisException" or "[PARQUET_TYPE" in text
    return (SchemaError if of_types else DataError)(words)


def _file_of_overflow(text: str) -> str | None:
    """The file with a time that is too many microseconds, if Spark says that there is one."""
    found = _FILE_NOT_READ.search(text)
    return found[1] if found and _OVERFLOW in text else None


@contextmanager
def spark_errors_as_ours() -> Iterator[None]:
    """Raise what Spark says of the data as errors of Coincide, while a result is computed.

    Spark runs a job when its result is used, so an invalid row comes to light in `collect`, `write` or
    `awaitTermination`. The error is Spark's then, with a trace of its workers. Within this it is the error
    that Coincide raised, and Spark's is its `__cause__`. Failures that are not about the data or the
    arguments pass as they are.

    Raises
    ------
    DataError, ConditionError, SchemaError, BackendError, MemoryBudgetError
        What a worker raised, or what Spark says of its inputs.

    Examples
    --------
    >>> query = found.writeStream.option("checkpointLocation", "state").start("found")
    >>> with coincide.spark_errors_as_ours():
    ...     query.awaitTermination()
    """
    try:
        yield
    except SPARK_ERRORS as error:
        ours = as_ours(error)
        if ours is None:
            raise
        raise ours from error


try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
except ModuleNotFoundError:  # pyspark-client comes without it

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Never raised."""


SPARK_ERRORS = (PySparkException, Py4JError)
"""Whatever Spark raises."""
