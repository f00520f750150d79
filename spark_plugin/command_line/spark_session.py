"""The Spark session of one command: quiet, and gone at the end, however that comes."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from spark_plugin.cluster.session import active_session, local_session
from spark_plugin.command_line.exit_codes import OUR_FAILURE
from spark_plugin.command_line.problems import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STOP_SECONDS = 30
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def session(master: str | None, conf: dict[str, str], debug: bool) -> Iterator[SparkSession]:
    """A Spark session for one command, stopped at its end unless it was there before.

    What the JVM says on its stderr goes to a file, which is kept only when we fail.
    """
    there = active_session()
    if there is not None:
        with _quiet(debug):
            yield there
        return
    handle, log = tempfile.mkstemp(prefix="coincide-spark-", suffix=".log")
    os.close(handle)
    spark, keep, stop = None, False, _stop
    try:
        with _same_handler():
            spark = local_session(master, "coincide", log=None if debug else log, **conf)
        with _quiet(debug):
            yield spark
    except Exception as error:
        keep = explain(error)[0] == OUR_FAILURE and os.path.getsize(log) > 0
        if keep:
            error.add_note(f"Spark's log: {log}")
        raise
    except BaseException:
        stop = _abandon
        raise
    finally:
        if spark is not None:
            stop(spark)
        if not keep:
            os.remove(log)


@contextmanager
def _quiet(debug: bool) -> Iterator[None]:
    """Keep PySpark from printing the errors that it raises, with their stack, as JSON."""
    from pyspark.logger import PySparkLogger

    # Through PySpark's own class: a plain logger of the name would not take what PySpark says.
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = logger.disabled or not debug
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextmanager
def _same_handler() -> Iterator[None]:
    """Undo PySpark's handler of SIGINT: it talks to the JVM in the middle of another talk."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _stop(spark: SparkSession) -> None:
    spark.stop()


def _abandon(spark: SparkSession) -> None:
    """Cancel what runs and stop, from another thread: this one's talk with the JVM was cut off."""
    context = getattr(spark, "_sc", None)

    def end() -> None:
        with suppress(Exception):
            if context is not None:
                context.cancelAllJobs()
        with suppress(Exception):
            spark.stop()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)
    jvm = getattr(getattr(context, "_gateway", None), "proc", None)
    if jvm is not None:
        # It ends with its stdin; nothing may go on writing when the output is taken away.
        with suppress(Exception):
            jvm.stdin.close()
            jvm.wait(_STOP_SECONDS)
