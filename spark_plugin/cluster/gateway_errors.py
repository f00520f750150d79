"""What Spark's JVM raises here; thin clients of Spark Connect have no way to one."""

from __future__ import annotations

from pyspark.errors import PySparkException

try:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
except ModuleNotFoundError:  # pyspark-client comes without it

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Never raised."""


SPARK_ERRORS = (PySparkException, Py4JError)
"""Whatever Spark raises."""
