"""What of our plans the RAPIDS Accelerator would run on a GPU, by its own report. Needs its jar, no GPU."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    BorderOptions,
    BorderReport,
    ConditionError,
    CorrelateOptions,
    TimingCondition,
    border_crossings,
    correlate_tables,
    histograms,
    transitions,
    within,
)
from spark_plugin.cluster.rapids import JAR_VARIABLE, RapidsOptions, find_jar, rapids_settings
from tests.helpers.places import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.rapids]


CONDITION = TimingCondition(within("-40us", "60us"), 0.5)
ROWS = 400

INTEGERS = {"left_time": ("low", "high"), "right_time": ("low", "high")}
MICROSECONDS = {"unit": "us"}
MANY = {**MICROSECONDS, "slices": 100, "slice_rows": 10}
CASES: dict[str, dict] = {
    "pairs": INTEGERS,
    "keys": {**INTEGERS, "by": ["station", "phase"]},
    "slices": {**INTEGERS, "options": {**MICROSECONDS, "slices": 4}},
    "many slices": {**INTEGERS, "options": MANY},
    "key buckets": {**INTEGERS, "by": "id", "options": {**MICROSECONDS, "slices": 8}},
    "left": {**INTEGERS, "by": "station", "how": "left"},
    "semi": {**INTEGERS, "how": "semi"},
    "counts": {**INTEGERS, "emit": "counts"},
    "lists": {**INTEGERS, "emit": "lists", "right_columns": ["id", "station"]},
    "best": {**INTEGERS, "emit": "best", "probability": True},
    "floats": {"left_time": "float", "right_time": "float"},
    "types": {
        **INTEGERS,
        "by": "day",
        "left_columns": ["id", "day", "phase", "good", "station", "weight"],
        "right_columns": ["id", "day"],
    },
    "timestamps": {
        "left_columns": ["id", "min_time"], "right_columns": ["id", "max_time"], "by": "station",
    },
    "timestamps out": {**INTEGERS, "right_columns": ["id", "max_time"], "emit": "lists"},
    "wall clocks": {"left_time": "wall", "right_time": "wall"},
}  # fmt: skip
BROADCASTS: dict[str, dict] = {
    f"{side} small, {name}": {**case, "options": {**MICROSECONDS, "way": f"broadcast-{side}"}}
    for side, names in {
        "right": ("keys", "left", "lists"),
        "left": ("pairs", "left", "semi", "counts", "lists", "best"),
    }.items()
    for name, case in CASES.items()
    if name in names
}
_DEVICES = histograms(
    "low", template="station",
    templates={"a": ([0, 40, 90], [0.7, 0.3]), "b": ([0, 20, 20, 60], [0.2, 0.5, 0.3])},
)  # fmt: skip
HISTOGRAMS: dict[str, dict] = {
    "histograms": {"left_time": _DEVICES, "right_time": _DEVICES},
    "histograms and intervals": {"left_time": _DEVICES, "right_time": ("low", "high")},
}
CROSSING: dict[str, dict] = {
    "decimals": {"left_columns": ["id", "amount"]},
    "decimal keys": {"by": "amount"},
    "structs": {"left_columns": ["id", "pair"]},
    "bytes": {"left_columns": ["id", "bytes"]},
    "byte keys": {"by": "bytes"},
}
"""Columns that cannot cross to Python from the GPU."""
ONE_STEP = [
    name
    for name, case in BROADCASTS.items()
    if name.startswith("right") or not {"how", "emit"} & set(case)
]
BY_STREAM = ("crossings", "crossings dropped", "transitions")
LOOK = "look"
"""The query that measures both sides before slices are cut."""


def events() -> pa.Table:
    low = [97 * i % 40_000 for i in range(ROWS)]
    high = [value + 90 for value in low]
    utc = pa.timestamp("us", "UTC")
    day = datetime.date(2024, 2, 28)
    return pa.table(
        {
            "id": range(ROWS),
            "low": low,
            "high": high,
            "float": [float(value) for value in low],
            "min_time": pa.array(low, utc),
            "max_time": pa.array(high, utc),
            "wall": pa.array(low, pa.timestamp("us")),
            "station": ["ab"[i % 2] for i in range(ROWS)],
            "phase": pa.array([i % 3 for i in range(ROWS)], pa.int32()),
            "day": [day + datetime.timedelta(i % 3) for i in range(ROWS)],
            "good": [i % 5 > 0 for i in range(ROWS)],
            "weight": [i / 7 for i in range(ROWS)],
            "amount": pa.array([i for i in range(ROWS)], pa.decimal128(20, 2)),
            "pair": [{"a": i} for i in range(ROWS)],
            "bytes": [b"ab"[i % 2 :] for i in range(ROWS)],
        }
    )


def run(folder: str) -> None:
    """In a process of its own: plan every case, and write down what the Accelerator says of it."""
    from pyspark.sql.classic.dataframe import DataFrame

    from coincide.command_line import run as coincide
    from spark_plugin.cluster.session import local_session
    from tests.helpers.joins import plan_correlation

    options = RapidsOptions(str(find_jar()), "local", explain_only=True)
    # Starting takes longer than a heartbeat.
    settings = {**rapids_settings(options), "spark.executor.heartbeatInterval": "60s"}
    spark = local_session("local[2]", "coincide-rapids", **settings)
    pq.write_table(events(), f"{folder}/events.parquet")
    left, right = (spark.read.parquet(f"{folder}/events.parquet") for _ in range(2))

    def report(frame: DataFrame) -> str:
        explain = spark._jvm.com.nvidia.spark.rapids.ExplainPlan.explainPotentialGpuPlan
        return explain(frame._jdf, "ALL")

    reports = {}
    collected: list[DataFrame] = []
    to_arrow = DataFrame.toArrow
    DataFrame.toArrow = lambda self: collected.append(self) or to_arrow(self)
    crossing = {name: {**INTEGERS, **case} for name, case in CROSSING.items()}
    for name, case in {**CASES, **BROADCASTS, **HISTOGRAMS, **crossing}.items():
        given = {"options": MICROSECONDS, **case}
        given["options"] = CorrelateOptions(**{"way": "exchange", **given["options"]})
        planned = plan_correlation(left, right, CONDITION, **given)
        reports[name] = report(planned.dataframe)
        if name == "slices":
            reports["exact"] = planned.dataframe.count()
        if name in HISTOGRAMS:
            reports[f"{name}, pairs"] = planned.dataframe.count()
    reports[LOOK] = report(collected[0])
    reports |= by_stream(left, report)
    reports["settings"] = known_settings(spark)
    events_file = f"{folder}/events.parquet"
    arguments = [
        "join", events_file, events_file, "-o", f"{folder}/pairs.parquet", "--unit", "us",
        "--engine", "spark",
        "--within", "-40us", "60us", "--confidence", "0.5", "--left-time", "low,high",
        "--right-time", "low,high",
    ]  # fmt: skip
    reports["exit codes"] = [
        coincide([*arguments, *more]) for more in ([], ["--way", "exchange", "--overwrite"])
    ]
    Path(folder, "reports.json").write_text(json.dumps(reports))
    spark.stop()


def by_stream(events, report) -> dict:
    """Operators whose tasks go through one stream after the other."""
    names = {"stream": "station", "time": "low", "values": ["weight", "phase"]}
    lower = {"lower_weight": [5.0, 30.0], "lower_phase": [None, 1]}
    queries = pa.table(
        {"query_id": [1, 2], **lower, "upper_weight": [50, 40], "upper_phase": [2, 3]}
    )
    counts = BorderReport()
    found = border_crossings(events, queries, report=counts, **names)
    dropped = BorderOptions(invalid="drop")
    reports = {
        "crossings": report(found),
        "crossings dropped": report(border_crossings(events, queries, options=dropped, **names)),
        "transitions": report(
            transitions(
                events.selectExpr("*", "IF(id % 2 = 0, 'I', 'O') AS event"),
                within=90, confidence=0.5, query="phase", stream="station", time=("low", "high"),
            )
        ),
        "found": found.count(),
    }  # fmt: skip
    try:
        counts.summary()
    except ConditionError as error:
        reports["not counted"] = str(error)
    return reports


def known_settings(spark) -> list[str]:
    """Every setting that the Accelerator knows; the jar keeps its classes where no caller sees them."""
    loader = spark._jvm.com.nvidia.spark.rapids.ShimLoader.getShimClassLoader()

    def singleton(name: str):
        found = loader.loadClass(f"com.nvidia.spark.rapids.{name}$")
        return found, found.getField("MODULE$").get(None)

    singleton("python.PythonConfEntries")  # adds its own to the others
    kind, conf = singleton("RapidsConf")
    entries = kind.getDeclaredField("registeredConfs")
    entries.setAccessible(True)
    found, names = entries.get(conf).iterator(), []
    while found.hasNext():
        names.append(found.next().key())
    return names


class Operator(NamedTuple):
    """A line of the report: what becomes of an operator of the plan, and why."""

    name: str
    verdict: str
    reason: str


OPERATOR = re.compile(r"^ *[*!]Exec <(\w+)> (.*?)(?: because (.*))?$", re.MULTILINE)
EXPRESSION = re.compile(r"^ *[!^](?:Expression)? <(\w+)> .* because (.*)$", re.MULTILINE)
ON_GPU = ("will run on GPU", "will partially run on GPU")
"""`mapInArrow` runs in part: the Accelerator hands batches over, the function is ours."""
FOLLOWS = "it avoids excess CPU and GPU transfers"


def operators(report: str) -> list[Operator]:
    return [Operator(*found) for found in OPERATOR.findall(report)]


def not_on_gpu(report: str) -> dict[str, set[str]]:
    """Reasons by operator that stays on the CPU."""
    reasons: dict[str, set[str]] = {}
    for name, verdict, reason in operators(report):
        if not verdict.startswith(ON_GPU):
            reasons.setdefault(name, set()).add(reason)
    return reasons


def bridged(report: str) -> set[str]:
    """Expressions for which the Accelerator goes back to the CPU, without those around them."""
    return {name for name, reason in EXPRESSION.findall(report) if reason != FOLLOWS}


@pytest.fixture(scope="module")
def reports(java_home: str, tmp_path_factory: pytest.TempPathFactory) -> dict:
    jar = find_jar()
    if jar is None:
        pytest.skip(f"the RAPIDS Accelerator is not here: make rapids-jar, or set {JAR_VARIABLE}")
    folder = tmp_path_factory.mktemp("rapids")
    finished = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import run; run({str(folder)!r})"],
        env={**os.environ, "JAVA_HOME": java_home, "PYTHONPATH": str(ROOT)},
        cwd=folder, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads((folder / "reports.json").read_text())


WHOLLY_ON_GPU = [name for name in CASES if "timestamps" not in name and name != "wall clocks"]


@pytest.mark.parametrize("name", [*WHOLLY_ON_GPU, *ONE_STEP, *BY_STREAM, LOOK])
def test_everything_would_run_on_the_gpu(reports: dict, name: str) -> None:
    assert not_on_gpu(reports[name]) == {}
    assert bridged(reports[name]) == set()


@pytest.mark.parametrize("name", CASES)
def test_the_report_names_every_operator_of_the_plan(reports: dict, name: str) -> None:
    named = [found.name for found in operators(reports[name])]
    assert named.count("MapInArrowExec") == 3
    assert named.count("ShuffleExchangeExec") == named.count("UnionExec") == 1
    assert named.count("FileSourceScanExec") == named.count("FilterExec") == 2
    assert named.count("ProjectExec") >= 2


@pytest.mark.parametrize("name", BY_STREAM)
def test_streams_are_exchanged_and_sorted_on_the_gpu(reports: dict, name: str) -> None:
    named = [found.name for found in operators(reports[name])]
    steps = ["ProjectExec", "MapInArrowExec", "SortExec", "ShuffleExchangeExec", "ProjectExec"]
    assert [step for step in named if step in steps][:5] == steps


def test_crossings_are_found_and_not_counted(reports: dict) -> None:
    assert reports["found"] > 0
    assert "the RAPIDS Accelerator fails plans that are observed" in reports["not counted"]


@pytest.mark.parametrize("name", BROADCASTS)
def test_no_event_of_a_large_side_is_shuffled(reports: dict, name: str) -> None:
    named = [found.name for found in operators(reports[name])]
    assert named[-3:] == ["FilterExec", "ProjectExec", "FileSourceScanExec"]
    assert named.count("MapInArrowExec") == named.count("FileSourceScanExec") == 1
    after = named[: named.index("MapInArrowExec")]
    assert not {"UnionExec", "GenerateExec"}.intersection(named)
    assert "ShuffleExchangeExec" not in after or name not in ONE_STEP


@pytest.mark.parametrize("name", [name for name in BROADCASTS if name not in ONE_STEP])
def test_only_the_small_side_comes_from_the_cpu(reports: dict, name: str) -> None:
    """What the driver has collected is a table of its own, which the Accelerator does not scan."""
    stays = {"ShuffleExchangeExec": {"Columnar exchange without columnar children is inefficient"}}
    assert not_on_gpu(reports[name]) == (stays if name == "left small, left" else {})
    assert bridged(reports[name]) == {"LocalTableScanExec"}


def test_packs_are_exchanged_on_the_gpu(reports: dict) -> None:
    assert "*Partitioning <HashPartitioning> will run on GPU" in reports["many slices"]


def test_the_look_aggregates_on_the_gpu(reports: dict) -> None:
    named = [found.name for found in operators(reports[LOOK])]
    assert named.count("HashAggregateExec") == 4


@pytest.mark.parametrize("name", [name for name in CASES if "timestamps" in name])
def test_timestamps_become_ticks_by_the_cpu(reports: dict, name: str) -> None:
    """Their operators run on the GPU; `unix_micros`, which copies a number, does not."""
    assert not_on_gpu(reports[name]) == {}
    assert bridged(reports[name]) == {"UnixMicros"}


def test_wall_clocks_stay_on_the_cpu_until_they_are_ticks(reports: dict) -> None:
    reasons = not_on_gpu(reports["wall clocks"])
    assert set(reasons) == {"FileSourceScanExec", "ProjectExec"}
    assert all("TimestampNTZType" in reason for found in reasons.values() for reason in found)
    named = {found.name: found.verdict for found in operators(reports["wall clocks"])}
    assert {named[step] for step in ("UnionExec", "ShuffleExchangeExec")} == {"will run on GPU"}
    assert named["MapInArrowExec"] in ON_GPU


@pytest.mark.parametrize("name", CROSSING)
def test_types_that_do_not_cross_keep_the_hand_over_on_the_cpu(reports: dict, name: str) -> None:
    assert set(not_on_gpu(reports[name])) == {"MapInArrowExec"}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_events_meet_their_templates_on_the_gpu(reports: dict, name: str) -> None:
    """Only the table of templates comes from the driver."""
    assert not_on_gpu(reports[name]) == {}
    assert bridged(reports[name]) == {"LocalTableScanExec"}
    named = [found.name for found in operators(reports[name])]
    of_templates = sum(time is _DEVICES for time in HISTOGRAMS[name].values())
    assert named.count("BroadcastHashJoinExec") == of_templates
    pairs = correlate_tables(
        events(), events(), CONDITION, **HISTOGRAMS[name], options=CorrelateOptions(**MICROSECONDS)
    )
    assert reports[f"{name}, pairs"] == pairs.num_rows > 0


def test_the_join_runs_with_the_accelerator_loaded(reports: dict) -> None:
    assert reports["exact"] == ROWS
    assert reports["exit codes"] == [0, 0]


def test_the_accelerator_knows_every_setting(reports: dict) -> None:
    given = rapids_settings(RapidsOptions("/opt/rapids.jar", "yarn", discovery_script="/x.sh"))
    ours = {name for name in given if name.startswith("spark.rapids.")}
    assert len(ours) >= 9
    assert ours <= set(reports["settings"])
