"""Coincide on Spark: the DataFrame API, the planner, the Arrow worker and the command line.

Names are loaded when first used, so that the worker half never needs pyspark.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "JoinReport": "spark_plugin.reports",
    "JoinSummary": "spark_plugin.reports",
    "correlate": "spark_plugin.correlation",
    "correlate_files": "spark_plugin.direct.correlation",
    "correlate_tables": "spark_plugin.worker",
    "register_source": "spark_plugin.direct.source",
    "stream_correlator": "spark_plugin.streams",
}

__all__ = [
    "JoinReport",
    "JoinSummary",
    "correlate",
    "correlate_files",
    "correlate_tables",
    "register_source",
    "stream_correlator",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
