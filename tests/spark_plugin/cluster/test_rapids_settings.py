"""The settings for the RAPIDS Accelerator on each kind of cluster, and the options that cannot be."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from coincide import ConditionError
from spark_plugin.cluster.rapids import (
    JAR_VARIABLE,
    Master,
    RapidsOptions,
    find_jar,
    is_accelerated,
    rapids_settings,
)
from tests.helpers.places import ROOT

JAR = "/opt/rapids/rapids-4-spark_2.13-26.08.1.jar"
SCRIPT = "/opt/coincide/discover-gpus.sh"


def options(**given: Any) -> RapidsOptions:
    return RapidsOptions(**{"jar": JAR, "discovery_script": SCRIPT, **given})


@pytest.mark.parametrize("master", get_args(Master))
def test_what_every_cluster_gets(master: Master) -> None:
    settings = rapids_settings(options(master=master))
    assert settings["spark.plugins"] == "com.nvidia.spark.SQLPlugin"
    assert settings["spark.rapids.sql.mode"] == "executeOnGPU"
    assert settings["spark.rapids.sql.python.gpu.enabled"] == "true"
    assert settings["spark.rapids.python.memory.gpu.pooling.enabled"] == "false"
    assert settings["spark.executorEnv.CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert all(isinstance(value, str) and value for value in settings.values())
    assert any(JAR in value for value in settings.values())


def test_local() -> None:
    settings = rapids_settings(options(master="local"))
    assert settings["spark.driver.extraClassPath"] == JAR
    assert settings["spark.executorEnv.PYTHONPATH"] == JAR
    assert not [name for name in settings if ".resource." in name or name == "spark.jars"]


def test_standalone() -> None:
    settings = rapids_settings(options(master="standalone", discovery_script=""))
    assert settings["spark.jars"] == JAR
    assert settings["spark.executorEnv.PYTHONPATH"] == "rapids-4-spark_2.13-26.08.1.jar"
    assert settings["spark.executor.resource.gpu.amount"] == "1"
    assert not [name for name in settings if "discoveryScript" in name]


def test_yarn() -> None:
    settings = rapids_settings(options(master="yarn"))
    assert settings["spark.files"] == SCRIPT
    assert settings["spark.jars"] == settings["spark.submit.pyFiles"] == JAR
    assert settings["spark.executor.resource.gpu.discoveryScript"] == "./discover-gpus.sh"
    assert settings["spark.executorEnv.PYTHONPATH"] == "rapids-4-spark_2.13-26.08.1.jar"


def test_kubernetes() -> None:
    settings = rapids_settings(options(master="kubernetes", jar=f"local://{JAR}"))
    assert settings["spark.jars"] == f"local://{JAR}"
    assert settings["spark.executorEnv.PYTHONPATH"] == JAR
    assert settings["spark.executor.resource.gpu.discoveryScript"] == SCRIPT
    assert settings["spark.executor.resource.gpu.vendor"] == "nvidia.com"
    assert "spark.files" not in settings


def test_memory_is_divided() -> None:
    settings = rapids_settings(options(tasks_per_gpu=3, jvm_share=0.3, python_share=0.6))
    jvm, python = "spark.rapids.memory.gpu", "spark.rapids.python.memory.gpu"
    assert {settings[f"{jvm}.{name}"] for name in ("allocFraction", "maxAllocFraction")} == {"0.3"}
    assert float(settings[f"{jvm}.minAllocFraction"]) <= 0.3
    assert {settings[f"{python}.{name}"] for name in ("allocFraction", "maxAllocFraction")} == {
        "0.6"
    }
    assert settings["spark.executorEnv.CUPY_GPU_MEMORY_LIMIT"] == "20%"


@pytest.mark.parametrize(
    ("tasks", "steps"), [(1, 1), (2, 1), (4, 1), (3, 2), (6, 1), (11, 1), (13, 1), (48, 1)]
)
def test_no_task_waits_for_a_python_worker(tasks: int, steps: int) -> None:
    """Every task that may run at once can have all the workers of its stage at once."""
    settings = rapids_settings(options(tasks_per_gpu=tasks, python_steps=steps))
    share = float(settings["spark.task.resource.gpu.amount"])
    at_once = int(1 / share)
    assert at_once == tasks
    assert int(settings["spark.rapids.python.concurrentPythonWorkers"]) >= at_once * steps
    assert at_once * share <= 1.0


def test_explain_only_asks_for_no_gpu() -> None:
    settings = rapids_settings(options(master="local", explain_only=True))
    assert settings["spark.rapids.sql.mode"] == "explainOnly"
    assert set(settings) == {
        "spark.plugins", "spark.rapids.sql.mode", "spark.sql.session.timeZone",
        "spark.driver.extraClassPath",
    }  # fmt: skip


def test_a_path_will_do() -> None:
    assert options(jar=Path(JAR)) == options(jar=JAR)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"master": "mesos"}, "master must be one of local, standalone, yarn, kubernetes"),
        (
            {"jar": "com.nvidia:rapids-4-spark_2.13:26.08.1"},
            "jar must be the path of rapids-4-spark",
        ),
        ({"jar": None}, "jar must be the path of .* .found None"),
        ({"jar": "/a.jar,/b.jar"}, "jar must be the path"),
        (
            {"jar": "file:///a.jar", "master": "local"},
            "a local session needs the plain path of the jar",
        ),
        ({"explain_only": "no"}, "explain_only must be True or False .found 'no'"),
        ({"tasks_per_gpu": 0}, "tasks_per_gpu must be an int of at least 1 .found 0"),
        ({"tasks_per_gpu": True}, "tasks_per_gpu must be an int"),
        ({"python_steps": 1.5}, "python_steps must be an int"),
        ({"jvm_share": 0.0}, "jvm_share must be a float between 0 and 1 .found 0.0"),
        ({"python_share": 1}, "python_share must be a float between 0 and 1 .found 1"),
        ({"python_share": float("nan")}, "python_share must be a float between 0 and 1"),
        ({"jvm_share": 0.01}, "jvm_share must be at least 0.05"),
        ({"jvm_share": 0.6, "python_share": 0.4}, r"must sum to 0\.98 at most .found 1"),
        (
            {"master": "yarn", "discovery_script": ""},
            "on yarn executors need a script to find their GPU",
        ),
        ({"master": "kubernetes", "discovery_script": ""}, "on kubernetes executors need"),
    ],
)
def test_options_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConditionError, match=message):
        options(**given)


PAGE = ROOT / "docs" / "gpu-cluster.md"
MASTERS = {"local[2]": "local", "spark://HOST:7077": "standalone", "yarn": "yarn"}
MASTERS |= {"k8s://https://HOST:6443": "kubernetes"}


def submit_lines() -> dict[Master, dict[str, str]]:
    """Settings of the first spark-submit line for each master on the page."""
    found: dict[Master, dict[str, str]] = {}
    for line in re.findall(r"^spark-submit .*?[^\\]$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        words = shlex.split(line)
        confs = [words[i + 1] for i, word in enumerate(words) if word == "--conf"]
        settings = dict(conf.split("=", 1) for conf in confs)
        assert len(settings) == len(confs)
        found.setdefault(MASTERS[words[words.index("--master") + 1]], settings)
    return found


@pytest.mark.parametrize("master", get_args(Master))
def test_the_lines_of_the_page_hold_these_settings(master: Master) -> None:
    settings = submit_lines()[master]
    jar = f"local://{JAR}" if master == "kubernetes" else JAR
    expected = rapids_settings(options(master=master, jar=jar))
    assert {name: settings.get(name) for name in expected} == expected
    further = {name for name in settings.keys() - expected.keys() if "rapids" in name}
    assert further == set()
    assert settings["spark.sql.execution.arrow.maxRecordsPerBatch"] == "100000"


def session(**settings: str) -> Any:
    names = {name.replace("_", "."): value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: names.get(name, default)))


def test_is_accelerated() -> None:
    plugin = "com.nvidia.spark.SQLPlugin"
    assert not is_accelerated(session())
    assert not is_accelerated(session(spark_plugins="org.example.Plugin"))
    assert is_accelerated(session(spark_plugins=plugin))
    assert is_accelerated(session(spark_plugins=f"org.example.Plugin, {plugin}"))
    assert not is_accelerated(session(spark_plugins=plugin, spark_rapids_sql_enabled="false"))


def test_where_the_jar_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(JAR_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_jar() is None
    kept = tmp_path / "coincide" / "rapids-4-spark_2.13-26.08.1.jar"
    kept.parent.mkdir()
    kept.touch()
    assert find_jar() == kept
    monkeypatch.setenv(JAR_VARIABLE, str(tmp_path / "other.jar"))
    assert find_jar() is None
    (tmp_path / "other.jar").touch()
    assert find_jar() == tmp_path / "other.jar"
