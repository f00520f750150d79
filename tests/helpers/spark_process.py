"""What a process of its own needs for Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.helpers.places import ROOT


def spark_environment(**more: str) -> dict[str, str]:
    """Ours, with this Python and our packages for Spark's workers, and settings for joins of few rows."""
    own = {
        "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(Path(__file__).parent / "quick_spark"),
    }  # fmt: skip
    return {**os.environ, **own, **more}
