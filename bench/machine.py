"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    *("numpy", "numba", "pyarrow", "pyspark", "duckdb", "polars", "ncls"),
    *("numba-cuda", "cupy-cuda13x", "superintervals", "ruranges", "bioframe"),
)
ROOT = Path(__file__).resolve().parent.parent


def now() -> str:
    """Date and time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit(root: Path = ROOT) -> str:
    """The commit of a checkout, marked if its code differs; ``"unknown"`` without one.

    Recorded figures and pages are no code, so an experiment does not mark the one after it.
    """
    head = ["git", "rev-parse", "HEAD"]
    changes = ["git", "diff", "--quiet", "HEAD", "--", ".", ":!bench/results", ":!docs"]
    try:
        done = subprocess.run(head, cwd=root, capture_output=True, text=True, check=True)
        changed = subprocess.run(changes, cwd=root, capture_output=True, check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip() + ("-dirty" if changed else "")


def machine() -> dict[str, Any]:
    """Cores, processor, memory, system."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _cpu_name(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Versions of the packages that matter, those that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
