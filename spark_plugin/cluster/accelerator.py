"""The RAPIDS Accelerator for Spark: what it is called, where its jar is, whether a session has it.

It is no part of us. Imports nothing of ours, so that `coincide doctor` can ask where much is missing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAPIDS_COORDINATES = "com.nvidia:rapids-4-spark_2.13:26.08.1"
"""Maven coordinates of the release that this is written for.

`spark.jars.packages` cannot resolve them: the POM names a parent that was never published.
"""
RAPIDS_PLUGIN = "com.nvidia.spark.SQLPlugin"
JAR_VARIABLE = "COINCIDE_RAPIDS_JAR"
"""Environment variable that says where the jar is."""


def is_accelerated(spark: SparkSession) -> bool:
    """Whether the Accelerator is loaded in a session and may change its plans."""
    plugins = (spark.conf.get("spark.plugins", None) or "").split(",")
    enabled = spark.conf.get("spark.rapids.sql.enabled", None) or "true"
    return RAPIDS_PLUGIN in map(str.strip, plugins) and enabled.lower() == "true"


def cached_jar() -> Path:
    """Where `make rapids-jar` keeps the jar."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    _, artifact, version = RAPIDS_COORDINATES.split(":")
    return cache / "coincide" / f"{artifact}-{version}.jar"


def find_jar() -> Path | None:
    """The Accelerator's jar on this machine: of COINCIDE_RAPIDS_JAR, else of `make rapids-jar`."""
    told = os.environ.get(JAR_VARIABLE)
    jar = Path(told) if told else cached_jar()
    return jar if jar.is_file() else None
