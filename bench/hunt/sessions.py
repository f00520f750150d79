"""The Spark sessions of a hunt: one that compiles its plans, and one that interprets them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from bench.hunt.cases import Case
from spark_plugin.cluster.session import local_session
from spark_plugin.ways.exchange import planning as slices
from spark_plugin.ways.files.source import CoincideSource

SETTINGS = {
    # What could go unseen shows here: wall clocks that jump, checked arithmetic, many batches.
    "spark.sql.session.timeZone": "Europe/Rome",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.shuffle.partitions": "3",
}
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Jobs are too short for Java's second compiler, and for threads that collect garbage. Without it
Java has little room for code, and stops compiling when that is full."""
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@dataclass(frozen=True)
class Sessions:
    """Two sessions of one JVM."""

    compiling: SparkSession
    interpreting: SparkSession

    def of(self, case: Case) -> SparkSession:
        """The session of a case."""
        compiles = case.chance("session").happens(25)
        return self.compiling if compiles else self.interpreting


@contextmanager
def hunting_sessions(cores: int) -> Iterator[Sessions]:
    """Quiet sessions, since errors are expected and judged; stopped afterwards."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", _JVM)
    compiling = local_session(f"local[{cores}]", "hunt", log=os.devnull, **SETTINGS)
    compiling.sparkContext.setLogLevel("OFF")
    interpreting = compiling.newSession()
    for name, value in SETTINGS.items():
        interpreting.conf.set(name, value)
    interpreting.conf.set("spark.sql.codegen.wholeStage", "false")
    compiling.dataSource.register(CoincideSource)
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    # Cells of a few rows count as heavy, so that small data meet buckets of keys, and splits.
    heavy = patch.object(slices, "_SMALLEST_SLICE_WORK", 5.0)
    try:
        with heavy:
            yield Sessions(compiling, interpreting)
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
        compiling.stop()
