"""The RAPIDS Accelerator for Spark: where it is, and settings with which both use the same GPUs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal, get_args

from coincide.model.errors import ConditionError, argument
from coincide.model.options import check_choice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Master = Literal["local", "standalone", "yarn", "kubernetes"]

_FREE_SHARE = 0.02
"""Share of a GPU's memory left to CUDA contexts and to what the pools cannot hand back."""
_LEAST_JVM_SHARE = 0.05
_SHARE_DIGITS = 8


@dataclass(frozen=True)
class RapidsOptions:
    """How the executors of a cluster share GPUs: each has one, so a node runs as many as it has GPUs."""

    jar: str
    master: Master = "standalone"
    tasks_per_gpu: int = 2
    jvm_share: float = 0.5
    python_share: float = 0.4
    discovery_script: str = ""
    python_steps: int = 1
    explain_only: bool = False

    def __post_init__(self) -> None:
        check_choice("master", self.master, get_args(Master))
        self._check_jar()
        if not isinstance(self.explain_only, bool):
            raise ConditionError(
                f"explain_only must be True or False (found {self.explain_only!r})."
            )
        for name in ("tasks_per_gpu", "python_steps"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConditionError(
                    f"{argument(name)} must be an int of at least 1 (found {value!r})."
                )
        self._check_shares()
        if self.master in ("yarn", "kubernetes") and not self.discovery_script:
            raise ConditionError(
                f"on {self.master} executors need a script to find their GPU. Set"
                " discovery_script to scripts/discover-gpus.sh."
            )

    def _check_jar(self) -> None:
        given: object = self.jar
        if isinstance(given, os.PathLike):
            object.__setattr__(self, "jar", os.fspath(given))
        is_path = isinstance(self.jar, str) and PurePosixPath(self.jar).suffix == ".jar"
        if not is_path or "," in self.jar:
            name = RAPIDS_COORDINATES.split(":")[1]
            raise ConditionError(f"jar must be the path of {name}-….jar (found {given!r}).")
        if self.master == "local" and "://" in self.jar:
            raise ConditionError(
                f"a local session needs the plain path of the jar (found {given!r})."
            )

    def _check_shares(self) -> None:
        for name in ("jvm_share", "python_share"):
            share = getattr(self, name)
            if not isinstance(share, float) or not 0.0 < share < 1.0:
                raise ConditionError(
                    f"{argument(name)} must be a float between 0 and 1 (found {share!r})."
                )
        if self.jvm_share < _LEAST_JVM_SHARE:
            raise ConditionError(
                f"jvm_share must be at least {_LEAST_JVM_SHARE} (found {self.jvm_share})."
            )
        total = self.jvm_share + self.python_share
        if total > 1.0 - _FREE_SHARE:
            raise ConditionError(
                f"jvm_share and python_share must sum to {1.0 - _FREE_SHARE} at most (found"
                f" {total:.3g})."
            )


def rapids_settings(options: RapidsOptions) -> dict[str, str]:
    """Spark settings for the Accelerator and our kernels on the same GPUs.

    They must be set before the session starts: as ``--conf`` of spark-submit, or for a session that
    this process starts as ``local_session(master, **settings)``.
    """
    settings = {
        "spark.plugins": RAPIDS_PLUGIN,
        "spark.rapids.sql.mode": "explainOnly" if options.explain_only else "executeOnGPU",
        # The Accelerator takes timestamps in UTC sessions only.
        "spark.sql.session.timeZone": "UTC",
        **_jar(options),
    }
    if options.explain_only:
        return settings
    return {**settings, **_memory(options), **_python(options), **_resources(options)}


def _jar(options: RapidsOptions) -> dict[str, str]:
    if options.master == "local":
        # On the class path: spark.jars would copy 1 GB each time a session starts.
        return {"spark.driver.extraClassPath": options.jar}
    return {"spark.jars": options.jar}


def _memory(options: RapidsOptions) -> dict[str, str]:
    """The JVM takes its pool at start; the workers' limit is CuPy's, read when CuPy is imported."""
    jvm, python = f"{options.jvm_share:.4g}", f"{options.python_share:.4g}"
    each = 100 * options.python_share / options.tasks_per_gpu
    return {
        "spark.rapids.memory.gpu.allocFraction": jvm,
        "spark.rapids.memory.gpu.maxAllocFraction": jvm,
        # Its default, 0.25, would refuse a smaller share.
        "spark.rapids.memory.gpu.minAllocFraction": "0",
        "spark.rapids.python.memory.gpu.allocFraction": python,
        "spark.rapids.python.memory.gpu.maxAllocFraction": python,
        # Else the workers import RMM, which we neither need nor install.
        "spark.rapids.python.memory.gpu.pooling.enabled": "false",
        "spark.executorEnv.CUPY_GPU_MEMORY_LIMIT": f"{each:.4g}%",
    }


def _python(options: RapidsOptions) -> dict[str, str]:
    """Python workers on the executor's GPU, as many as tasks can ever want at once."""
    # A task holds a permit for each Python function of its stage: of fewer all would wait for each other.
    settings = {
        "spark.rapids.sql.python.gpu.enabled": "true",
        "spark.rapids.python.concurrentPythonWorkers": str(
            options.tasks_per_gpu * options.python_steps
        ),
        # The numbers of nvidia-smi, for the JVM and the workers alike.
        "spark.executorEnv.CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        # The workers' daemon is in the jar.
        "spark.executorEnv.PYTHONPATH": _jar_at_executors(options),
    }
    if options.master == "yarn":
        settings["spark.submit.pyFiles"] = options.jar
    return settings


def _jar_at_executors(options: RapidsOptions) -> str:
    in_place = options.master == "local" or options.jar.startswith("local:")
    if in_place:
        return options.jar.removeprefix("local://")
    return PurePosixPath(options.jar).name  # Spark brings it to the executor's own folder


def _resources(options: RapidsOptions) -> dict[str, str]:
    """What executors and tasks ask for; local sessions have no scheduler of GPUs."""
    if options.master == "local":
        return {}
    settings = {
        "spark.executor.resource.gpu.amount": "1",
        "spark.task.resource.gpu.amount": _share_of(options.tasks_per_gpu),
    }
    script = options.discovery_script
    if options.master == "yarn":
        settings["spark.files"] = script
        script = f"./{PurePosixPath(script).name}"
    if options.master == "kubernetes":
        settings["spark.executor.resource.gpu.vendor"] = "nvidia.com"
    if script and options.master != "standalone":
        settings["spark.executor.resource.gpu.discoveryScript"] = script
    return settings


def _share_of(tasks: int) -> str:
    """One of `tasks` equal shares, rounded down: with larger ones Spark lets one task fewer in."""
    return f"{10**_SHARE_DIGITS // tasks / 10**_SHARE_DIGITS:.{_SHARE_DIGITS}g}"


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
