"""The extras of the distribution: what each brings, and the one message about what is missing.

It imports no package, so that it can speak of any that is missing.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from coincide.model.errors import BackendError


class Extra(NamedTuple):
    """An extra: its name, who needs it, and the requirement that brings each of its modules."""

    name: str
    needs: str
    requirements: Mapping[str, str]


LEAST_SPARK = (4, 0, 1)
SPARK = Extra(
    "spark",
    "Spark needs",
    {
        "pyspark": "pyspark>=4.0.1,<4.3",
        "pandas": "pandas>=2.2,<3",
        "google.protobuf": "protobuf>=6.33.5,<8",
    },
)
EXPLORE = Extra(
    "explore",
    "charts need",
    {"altair": "altair>=5.5", "vl_convert": "vl-convert-python>=1.7"},
)
LAKE = Extra(
    "lake",
    "tables of Delta and Iceberg need",
    {"deltalake": "deltalake>=1.6", "pyiceberg": "pyiceberg>=0.9"},
)


def how_to_install(extra: str) -> str:
    """The command that installs an extra: of an installed Coincide, however it came, or of its sources."""
    try:
        distribution("coincide")
    except PackageNotFoundError:
        return f"pip install '.[{extra}]' in the folder of Coincide's sources"
    return f"pip install 'coincide[{extra}]'"


def missing(extra: Extra, module: str, why: object = None) -> BackendError:
    """The error about a module of an extra that is missing, or cannot be imported: `why`."""
    requirement = extra.requirements[module]
    cure = how_to_install(extra.name)
    if extra is SPARK and module != "pyspark":
        # The extra could replace a PySpark that came with a cluster.
        cure = f"pip install '{requirement}' next to your PySpark, or {cure}"
    found = f"found no {module.partition('.')[0]}" if why is None else f"found: {why}"
    package = requirement.partition(">")[0]
    return BackendError(f"{extra.needs} the package {package} ({found}). Use {cure}.")


def require(extra: Extra, *modules: str) -> None:
    """Refuse to go on where modules of an extra are missing, all if none is named; imports none."""
    for module in modules or extra.requirements:
        if not is_there(module):
            raise missing(extra, module)
        if module == "pyspark" and (old := old_pyspark()) is not None:
            raise missing(extra, module, f"version {old}, which is too old")


def old_pyspark() -> str | None:
    """The version of a PySpark that is older than Coincide takes; None if it is not, or does not say."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    # A PySpark of a cluster may have no metadata, and importing it takes long.
    told = Path(found.origin).with_name("version.py")
    version = re.search(
        r"[\"'](\d+)\.(\d+)\.(\d+)", told.read_text("utf-8") if told.exists() else ""
    )
    if version is None or tuple(map(int, version.groups())) >= LEAST_SPARK:
        return None
    return ".".join(version.groups())


def is_there(module: str) -> bool:
    """Whether a module can be found; of a module in a package, that package."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):  # no package above it; a module without a spec
        return False
