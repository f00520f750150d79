"""The process that Spark forks its Python workers from, with what their tasks import already there.

A worker takes a second for these imports, and tests end workers often: by each task that fails.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

from pyspark.daemon import manager

IMPORTED = (
    *("pandas", "pyarrow.compute", "cpu_fallback", "coincide.engine.join.join"),
    *(f"spark_plugin.tasks.{name}" for name in ("borders", "broadcast", "crossings", "exchange")),
    *(f"spark_plugin.tasks.{name}" for name in ("transitions", "windowed_causality")),
)

if __name__ == "__main__":
    # Where they are missing, workers say so.
    with suppress(ImportError):
        for module in IMPORTED:
            import_module(module)
    gc.freeze()
    manager()
