"""Local Spark sessions with settings that suit joins, and the Java that they need."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coincide.model.errors import BackendError
from coincide.model.extras import SPARK, missing
from spark_plugin.cluster.worker_python import VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED_JAVA = (17, 21)
JVM_FOLDER_VARIABLE = "COINCIDE_JVM_ROOT"
"""Where to look for installed JVMs, instead of /usr/lib/jvm."""
DRIVER_MEMORY_VARIABLE = "COINCIDE_DRIVER_MEMORY"
"""Spark's spark.driver.memory for sessions on this machine, such as 4g."""

_GIB = 1 << 30
_JAVA_SECONDS = 30
_GET_JAVA = (
    "Install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; conda: conda install"
    " -c conda-forge openjdk=17), or set JAVA_HOME to it"
)


@dataclass(frozen=True)
class Java:
    """An installed Java."""

    home: str
    major: int
    version: str

    @property
    def supported(self) -> bool:
        """Whether Spark runs on it."""
        return self.major in SUPPORTED_JAVA


def describe_java(command: str | Path) -> Java | None:
    """The Java behind a command, None if no Java runs."""
    try:
        answer = subprocess.run(
            [str(command), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_JAVA_SECONDS,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = dict(re.findall(r"^\s*(java\.\S+) = (.*)$", answer.stdout + answer.stderr, re.MULTILINE))
    number = told.get("java.specification.version", "").removeprefix("1.")
    if not number.isdigit() or "java.home" not in told:
        return None
    return Java(told["java.home"].strip(), int(number), told.get("java.version", number).strip())


def find_java() -> Java:
    """The Java that Spark will use: of JAVA_HOME, else on PATH, else among the installed JVMs."""
    found = java_or_fault()
    if isinstance(found, Java):
        return found
    raise BackendError(f"Spark needs Java 17 or 21, but {'. '.join(found)}.")


def java_or_fault() -> Java | tuple[str, str]:
    """As `find_java`; what is wrong and what to do about it, where Java is missing."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return _chosen(home)
    on_path = shutil.which("java")
    java = describe_java(on_path) if on_path else None
    if java is not None and java.supported:
        return java
    other = installed_java()
    if other is not None:
        return other
    return f"java on PATH is version {java.version}" if java else "there is no Java", _GET_JAVA


def installed_java() -> Java | None:
    """A supported Java among the installed JVMs, 17 before 21."""
    root = Path(os.environ.get(JVM_FOLDER_VARIABLE, "/usr/lib/jvm"))
    found = [describe_java(command) for command in sorted(root.glob("*/bin/java"))]
    usable = [java for java in found if java is not None and java.supported]
    return min(usable, key=lambda java: java.major, default=None)


def _chosen(home: str) -> Java | tuple[str, str]:
    java = describe_java(Path(home, "bin", "java"))
    if java is not None and java.supported:
        return java
    what = f"is Java {java.version}" if java else "has no Java that runs"
    other = installed_java()
    return f"JAVA_HOME={home} {what}", f"Set it to {other.home}" if other else _GET_JAVA


def active_session() -> SparkSession | None:
    """The session of this process, if there is one; does not import pyspark to find out."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def local_session(
    master: str | None = None, app_name: str = "coincide", *, log: str | None = None, **conf: str
) -> SparkSession:
    """Start a Spark session with settings that suit joins."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing(SPARK, "pyspark", error) from error
    # PySpark would not read the setting of a session that it starts itself.
    os.environ.setdefault(VARIABLE, conf.get("spark.pyspark.python", sys.executable))
    builder = SparkSession.builder.appName(app_name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    remote = master.startswith("sc://") if master else "SPARK_REMOTE" in os.environ
    if remote:
        builder = builder.remote(master) if master else builder
        try:
            return _configured(builder, {**_session_settings(), **conf})
        except ImportError as error:
            raise BackendError(
                f"a client of Spark Connect lacks packages ({str(error).splitlines()[0]}). Use"
                " pip install 'pyspark[connect]'."
            ) from error
    if importlib.util.find_spec("pyspark.core") is None:
        raise BackendError(
            "the installed pyspark-client has no Spark of its own. Name a server of Spark"
            " Connect, as master 'sc://HOST' or in SPARK_REMOTE, or use pip install"
            f" '{SPARK.requirements['pyspark']}'."
        )
    if master:
        builder = builder.master(master)
    settings = {**_session_settings(), **conf}
    if not submitted:
        _prepare_jvm()
        settings = {**_launch_settings(master), **settings}
    with _stderr_to(None if submitted else log):
        spark = _configured(builder, settings)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _configured(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _session_settings() -> dict[str, str]:
    """Settings of a session, on any cluster."""
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # Spark's default, INT96, names no zone: most other readers take it for wall-clock times.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


def _launch_settings(master: str | None) -> dict[str, str]:
    """Settings for a JVM that we start."""
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    if master is None or master.startswith("local"):
        settings |= {
            "spark.driver.memory": os.environ.get(DRIVER_MEMORY_VARIABLE) or _driver_memory(),
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(_cores(master)),
        }
    return settings


def _cores(master: str | None) -> int:
    numbers = [int(number) for number in re.findall(r"\d+", master or "")]
    if master and master.startswith("local-cluster") and len(numbers) >= 2:
        return numbers[0] * numbers[1]
    return numbers[0] if numbers else len(os.sched_getaffinity(0))


def _driver_memory() -> str:
    """A quarter of this machine's memory, between 1 and 16 GiB: Python workers need the rest."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(16, max(1, total // 4 // _GIB))}g"


def _prepare_jvm() -> None:
    """Environment of the JVM that will be started, and of its Python workers."""
    java = find_java()
    os.environ.setdefault("JAVA_HOME", java.home)
    # Workers are new processes: they must find our packages where this process found them.
    here = str(Path(__file__).resolve().parents[2])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if here not in (*paths, *site.getsitepackages()):
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, paths)])


@contextmanager
def _stderr_to(log: str | None) -> Iterator[None]:
    """Let processes that are started meanwhile write their stderr to a file."""
    if log is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    sys.stderr.flush()
    ours = os.dup(2)
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
