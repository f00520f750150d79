"""What a process of its own needs for Spark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.helpers.places import ROOT

DAEMON = {"spark.python.daemon.module": "tests.helpers.spark_daemon"}
"""With it Python workers find their imports done. It stays as it was when Spark started."""
QUICK = {
    # Small joins wait for the compiler of plans longer than for anything else.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nor is a plan written down at length for pages that no test looks at, anew for each stage.
    "spark.sql.ui.explainMode": "simple",
}
"""Settings for joins of few rows."""


def quick_defaults(folder: Path) -> dict[str, str]:
    """Variables with which `spark-submit` and plain programs have the settings for joins of few rows.

    They read them from a file in this folder; PYSPARK_SUBMIT_ARGS is not for `spark-submit`.
    """
    folder.mkdir()
    lines = (f"{name} {value}\n" for name, value in (QUICK | DAEMON).items())
    (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
    return {"SPARK_CONF_DIR": str(folder)}


def spark_environment(**more: str) -> dict[str, str]:
    """Ours, with this Python and our packages for Spark's workers, and settings for joins of few rows."""
    settings = " ".join(f"--conf {name}={value}" for name, value in (QUICK | DAEMON).items())
    own = {
        "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell",
    }  # fmt: skip
    return {**os.environ, **own, **more}
