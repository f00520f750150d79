"""Steps of the pipe: what is reported for each way, and how it is drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("psutil")

from bench.charts import Chart
from bench.documentation import write_report
from bench.experiment import Bench, Experiment
from bench.pipe_steps import STEPS, PipeSteps
from bench.report import Report
from bench.timing import Timing
from coincide import Tick
from coincide.engine.reports.join_report import JoinSummary, StepSeconds
from spark_plugin.tasks.file_slices import SliceReport

SUMMARY = JoinSummary(
    None, None, None, 5.0, "files", Tick(), slices=2, steps=StepSeconds(4.0, 2.0, 1.0)
)


def test_steps_of_tasks_are_spread_over_the_cores() -> None:
    bench = Bench(Report("some"), cores=2)
    steps = PipeSteps(bench)
    steps.direct("ours", SUMMARY, Timing((5.0,)))
    steps.direct("busy", replace(SUMMARY, steps=StepSeconds(8.0, 2.0, 2.0)), Timing((5.0,)))
    steps.chart("some")
    found = [figure.value for figure in bench.report.figures]
    assert found == [2.0, 1.5, 1.0, 0.0, 0.5, 4.0, 0.0, 1.0, 0.0, 1.0]
    (chart,) = bench.report.charts
    assert chart.x == ["ours", "busy"]
    assert chart.lines == dict(
        zip(STEPS, ([2.0, 4.0], [1.5, 0.0], [1.0, 1.0], [0.0, 0.0], [0.5, 1.0]), strict=True)
    )


def test_reports_of_slices_carry_their_seconds() -> None:
    report = SliceReport(1, steps=StepSeconds(1.0, 2.0, 3.0))
    assert SliceReport.from_json(report.to_json()) == report
    assert report.steps + report.steps == StepSeconds(2.0, 4.0, 6.0)


@pytest.mark.parametrize("bars", [True, False])
def test_bars_and_lines_are_drawn_and_linked(tmp_path: Path, bars: bool) -> None:
    pytest.importorskip("matplotlib")
    report = Report("pipe", timings={"some way": Timing((1.0,))})
    x = ["a", "b"] if bars else [1.0, 2.0]
    lines = {"read": [1.0, 2.0], "write": [2.0, 1.0]}
    report.charts.append(Chart("steps", "Steps", "seconds", "", x, lines, bars=bars))
    written = json.loads(report.write(tmp_path).read_text())
    assert written["charts"][0]["bars"] is bars
    assert (tmp_path / "pipe-steps.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "page.md"
    write_report({"pipe": Experiment("", lambda bench: None)}, tmp_path, page)
    assert "[Steps](./pipe-steps.png)" in page.read_text()
