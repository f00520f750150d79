"""What all tests share: Hypothesis' profile, the seismic picks, Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import settings

from tests.helpers.shared_classes import jvm_options
from tests.helpers.spark_process import DAEMON, QUICK
from tests.tiers import FILES, ORDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.helpers.workplace import Workplace

os.environ.setdefault("SPARK_SUBMIT_OPTS", jvm_options())

# No deadline: the first example may have to wait for the compiler.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    # Small cases often find nothing, or hold nulls on purpose. Not in pyproject.toml: pytest would
    # import the package for it before Numba's cache is set.
    config.addinivalue_line("filterwarnings", "ignore::coincide.model.errors.CoincideWarning")


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in FILES:
            item.add_marker("slow")
    items.sort(key=lambda item: ORDER.get(item.path, len(ORDER)))  # all others stay in their order


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what each tier took, where both ran. Workers' reports come to the process that prints."""
    seconds = {"quick": 0.0, "slow": 0.0}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds["slow" if "slow" in report.keywords else "quick"] += report.duration
    if all(seconds.values()):
        took = ", ".join(f"{tier} tests {total:.0f} s" for tier, total in seconds.items())
        terminalreporter.write_line(f"tiers: {took}, summed over all workers")


class SeismicPicks(NamedTuple):
    """Picks of one day by two pickers, times widened by phase."""

    stalta: pa.Table
    phasenet: pa.Table


@pytest.fixture(scope="session")
def seismic() -> SeismicPicks:
    from bench.gpu.picks import PICKERS, read_picks

    assert SeismicPicks._fields == PICKERS
    try:
        return SeismicPicks(*read_picks())
    except FileNotFoundError as error:
        pytest.skip(f"the seismic picks are not here: {error}")


@pytest.fixture(scope="session")
def nab_series() -> pa.Table:
    """The NAB series: value and timestamp of each."""
    from bench.nab import read_series

    try:
        return read_series()
    except FileNotFoundError as error:
        pytest.skip(f"the NAB series are not here: {error}")


SPARK_SETTINGS = {
    # Compiled plans run with `compiled_spark` and wherever the command line starts Spark.
    **QUICK,
    # What could go unseen shows here: wall clocks that jump, checked arithmetic, many batches.
    "spark.sql.session.timeZone": "Europe/Rome",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def java_home() -> str:
    """Where Spark's Java is. Skips only if there is no Java."""
    from spark_plugin.cluster.session import Java, installed_java, java_or_fault

    java = java_or_fault()
    if not isinstance(java, Java):
        why, java = java, installed_java()
        if java is None:
            pytest.skip(f"Spark needs Java 17 or 21, but {': '.join(why)}")
    return java.home


@pytest.fixture(scope="session")
def _spark_session(java_home: str) -> Iterator[SparkSession]:
    from spark_plugin.cluster.session import local_session

    os.environ["JAVA_HOME"] = java_home
    os.environ["PYSPARK_PYTHON"] = sys.executable
    started = local_session("local[2]", "coincide-tests", **DAEMON)
    yield started.newSession()
    started.stop()


@pytest.fixture
def spark(_spark_session: SparkSession) -> SparkSession:
    """A session of its own settings, set again for each test; shares its JVM with all others."""
    for name, value in SPARK_SETTINGS.items():
        _spark_session.conf.set(name, value)
    return _spark_session


@pytest.fixture(scope="session")
def seismic_frames(
    seismic: SeismicPicks, _spark_session: SparkSession
) -> tuple[DataFrame, DataFrame]:
    """The same as DataFrames, read from their files: from memory each join would plan all rows anew."""
    from bench.gpu.picks import FOLDER

    read = _spark_session.read.parquet
    left, right = (read(str(FOLDER / f"{picker}_picks.parquet")) for picker in seismic._fields)
    return left, right


@pytest.fixture
def compiled_spark(spark: SparkSession) -> SparkSession:
    """With plans that are compiled, as users have them: for many rows, and to see that they can be."""
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "CODEGEN_ONLY")
    return spark


@pytest.fixture
def command_spark(_spark_session: SparkSession) -> SparkSession:
    """The session that the command line finds, with settings of its own."""
    from spark_plugin.cluster.session import local_session

    session = local_session("local[2]", "coincide-tests")
    session.createDataFrame([], "id bigint")  # makes it the active one of this thread
    return session


@pytest.fixture
def work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workplace:
    """A folder with two inputs for `coincide join`."""
    from tests.helpers.workplace import Workplace

    return Workplace(tmp_path, capsys)


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of a few rows count as heavy, so that small data meet key buckets and splits."""
    from spark_plugin.ways.exchange import planning as planner

    monkeypatch.setattr(planner, "_SMALLEST_SLICE_WORK", 5.0)


@pytest.fixture
def any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read by their row groups in whatever order they are."""
    from coincide.engine.files import planning

    monkeypatch.setattr(planning, "MOST_READS", float("inf"))


@pytest.fixture(autouse=True)
def _ties_go_by_columns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark is compared with decides among equal matches as Spark does, which knows no rows."""
    if request.node.get_closest_marker("spark"):
        from coincide.engine.join.join import TablePlan

        monkeypatch.setattr(TablePlan, "by_rows", property(lambda plan: plan))


_OF_LARGE_SIDES = ("cluster", "frames", "ways/broadcast", "ways/exchange")
"""Folders below tests/spark_plugin of what small sides stand in for large ones."""


@pytest.fixture(autouse=True)
def _sides_pass_for_large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is collected by itself where planning jobs, the exchange and broadcasts are
    tested."""
    here = Path(__file__).parent / "spark_plugin"
    if any(request.path.is_relative_to(here / folder) for folder in _OF_LARGE_SIDES):
        from tests.helpers.planning import set_limits

        set_limits(monkeypatch, both_bytes=-1, small_bytes=-1)
