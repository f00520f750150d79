"""Scripts of examples/ print what they are meant to, and notebooks run to their end and draw."""

from __future__ import annotations

import base64
import io
import os
import runpy
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from scripts.run_notebooks import executed
from tests.helpers.places import ROOT

PRINTS = {
    "as_they_arrive": "12628 pairs, (0, 1) events were late\n",
    "flashes": "40 flashes of [25] sources\n",
    "missed_deadlines": "  channel  left_id\n0     web        1\n1   phone        3\n",
    "pairs_as_they_arrive": (
        "left nothing is final\nright nothing is final\nleft nothing is final\n"
        "right [{'line': 'a7', 'left_id': 2, 'right_id': 81}]\n"
        "end [{'line': 'b2', 'left_id': 4, 'right_id': 83}]\n"
    ),
    "plus_minus_clocks": "r1 a1 1.00\nr2 a3 0.15\nr3 a2 1.00\n",
    "spark_frames": "2000 pairs of probability 0.667\nway: broadcast-both\n",
    "topics": '{"session":"b","left_id":2}\n',
    "chain": (
        '{"truck":"north","left_limit":"chilled","left_min_time":"2026-05-01T12:01:00.000Z",'
        '"left_max_time":"2026-05-01T12:02:00.000Z","right_at":"2026-05-01T12:01:10.000Z"}\n'
        '{"truck":"south","left_limit":"chilled","left_min_time":"2026-05-01T12:00:30.000Z",'
        '"left_max_time":"2026-05-01T12:02:30.000Z"}\n'
    ),
    "who_parked": "north red I>!O 08:15\nsouth blue I>O 08:10\nsouth blue O>!I 08:20\n",
}
WITH_SPARK = {"spark_frames"}
WITH_KAFKA = {"topics", "chain"}
"""Run where there is a broker: tests/end_to_end/test_kafka.py."""
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
CHARTS = {"causes": 2, "clocks": 2, "spark": 2}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == PRINTS.keys()
    assert {path.stem for path in NOTEBOOKS} == CHARTS.keys()


@pytest.mark.parametrize("name", sorted(PRINTS.keys() - WITH_SPARK - WITH_KAFKA))
def test_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == PRINTS[name]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["missed_deadlines", *sorted(WITH_SPARK)])
def test_script_as_a_process(name: str, tmp_path: Path, java_home: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "JAVA_HOME": java_home, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, PRINTS[name]), ran.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_output(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
    assert cells[0].source.startswith("# ")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_draws(
    path: Path, tmp_path: Path, java_home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", java_home)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = executed(path, tmp_path)
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    charts = [each.data["image/png"] for each in outputs if "image/png" in each.get("data", {})]
    assert len(charts) == CHARTS[path.stem]
    for chart in charts:
        assert_something_is_drawn(base64.b64decode(chart))


def assert_something_is_drawn(png: bytes) -> None:
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png))[..., :3]
    coloured = (pixels.max(axis=2) - pixels.min(axis=2)) > 0.2
    assert min(pixels.shape[:2]) > 100
    assert coloured.mean() > 0.001
