"""Whether the Python of Spark's workers can run our tasks. Imports no pyspark, for `coincide doctor`."""

from __future__ import annotations

import logging
import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spark_plugin.cluster.connect import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VARIABLE = "PYSPARK_PYTHON"
DEFAULT = "python3"
"""What Spark takes where the variable is not set."""

_WORKER_HALF = "coincide.engine.join.join"
_DISTRIBUTION = "coincide"
_COLUMNS = ("python", "lacks", "has")
_PROBE_SECONDS = 60
_ONE_MACHINE = re.compile(r"local(\[.*\])?")
_FAULTS = (
    (r"Python in worker has different version: '?([\d.]+)", "run Python {}"),
    (r"No module named '([\w.]+)'", "have no module {}"),
    (r'Cannot run program "([^"]+)"', "cannot start, as there is no program {}"),
)
_checked: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""The command that was found to do, by Spark context; by session on Spark Connect."""
_log = logging.getLogger(__name__)


def check_workers(spark: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run our tasks; by a job of one row, once a session."""
    context = context_of(spark)
    owner, command = (spark, "") if context is None else (context, context.pythonExec)
    if _checked.get(owner) == command:
        return
    is_local = bool(_ONE_MACHINE.fullmatch(spark.conf.get("spark.master", None) or ""))
    if context is None or not is_local or not is_this_python(command):
        fault = _fault(spark)
        if fault is not None:
            from coincide.model.errors import BackendError  # brings Numba, which may be missing

            raise BackendError(f"Spark's Python workers {fault}. {_remedy(context, is_local)}")
    _checked[owner] = command


def is_this_python(command: str) -> bool:
    """Whether a command runs this Python, of this environment, and finds our packages there."""
    found = shutil.which(command)
    if found is None or not sys.executable:
        return False
    # The environments' links to one Python differ in their folders; one folder has several Pythons.
    alike = os.path.realpath(found) == os.path.realpath(sys.executable)
    return alike and Path(found).parent.samefile(Path(sys.executable).parent) and _is_installed()


def fault_of(command: str) -> str | None:
    """What keeps a Python on this machine from running our tasks; None: nothing."""
    if is_this_python(command):
        return None
    code = f"import {_WORKER_HALF}, sys; print(*sys.version_info[:2], sep='.')"
    try:
        answer = subprocess.run(
            [command, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=_PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot start: {error}"
    if answer.returncode:
        said = answer.stderr.strip().splitlines()
        return _known(answer.stderr) or (said[-1] if said else f"ends with {answer.returncode}")
    other = answer.stdout.strip()
    return (
        None if other == _python_version() else f"run Python {other} instead of {_python_version()}"
    )


def _is_installed() -> bool:
    """Whether a new process of this Python finds our packages, wherever it starts."""
    places = {*site.getsitepackages(), site.getusersitepackages()}
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(Path(__file__).resolve().parents[2]) in (*paths, *places):
        return True
    try:
        return str(distribution(_DISTRIBUTION).locate_file("")) in places
    except PackageNotFoundError:
        return False


def _fault(spark: SparkSession) -> str | None:
    """What keeps a session's workers from running our tasks; None: nothing that we know."""
    from spark_plugin.cluster.spark_errors import SPARK_ERRORS

    try:
        probe = _probe(_WORKER_HALF, _DISTRIBUTION, _COLUMNS)
        schema = ", ".join(f"{name} string" for name in _COLUMNS)
        (told,) = spark.range(0, 1, 1, 1).mapInArrow(probe, schema).collect()
    except SPARK_ERRORS as error:
        fault = _known(str(error))
        if fault is None:  # no news of the Python: whatever it is, the join will tell
            _log.warning("the Python of Spark's workers could not be checked: %s", error)
        return fault
    if told["lacks"]:
        return f"({told['python']}) cannot load Coincide: {told['lacks']}"
    ours = _own_version()
    if ours and told["has"] and ours != told["has"]:
        return f"({told['python']}) have Coincide {told['has']}, but this process has {ours}"
    return None


def _probe(
    module: str, package: str, columns: tuple[str, ...]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function of the job. It is sent by its content: workers may not have this module."""

    def probe(batches: Iterable[Any]) -> Iterator[Any]:
        import importlib
        import importlib.metadata
        import sys

        import pyarrow

        lacks, has = "", ""
        try:
            importlib.import_module(module)
            has = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass  # not installed, but found: on PYTHONPATH or sent along
        except ImportError as error:
            lacks = str(error)
        for _ in batches:
            told = [pyarrow.array([one]) for one in (sys.executable, lacks, has)]
            yield pyarrow.RecordBatch.from_arrays(told, names=list(columns))

    return probe


def _known(text: str) -> str | None:
    """A fault in our words, from what Python or Spark says of it."""
    for pattern, words in _FAULTS:
        found = re.search(pattern, text)
        if found:
            return words.format(found[1])
    return None


def _remedy(context: Any, is_local: bool) -> str:
    if context is not None and is_local:
        return (
            f"They run {context.pythonExec}, and need Coincide for Python {_python_version()}."
            f" Start the session with {VARIABLE}={os.path.normpath(sys.executable)} in the environment."
        )
    where = "in the environment of the Spark Connect server" if context is None else "or"
    named = f"by {VARIABLE} {where}" + ("" if context is None else " spark.pyspark.python")
    return (
        f"They need Coincide for Python {_python_version()}. Before the session starts, name a"
        f" Python on the cluster that has it {named}. Or send an environment along with"
        " spark.archives, or Coincide alone with spark.submit.pyFiles."
    )


def _own_version() -> str:
    try:
        return version(_DISTRIBUTION)
    except PackageNotFoundError:
        return ""


def _python_version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"
