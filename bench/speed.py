"""The picture of speed: Coincide and others at the same pairs, from the results of two experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from bench.drawing import TEXT, Drawing, write
from bench.experiments import aggregates
from bench.experiments.peers import OURS, OURS_ON_SPARK, SWEEPS

EVENTS = max(SWEEPS["size"][1])


class _Part(NamedTuple):
    """A part of the picture: its words, whose results it has, and how it calls the contestants."""

    words: str
    experiment: str
    load: str
    contestants: dict[str, str]


_SIZE = f"size {EVENTS:g}"
PARTS = (
    _Part(
        f"In one process, {EVENTS:,.0f} events a side", "peers", _SIZE,
        {OURS: "Coincide", "DuckDB": "DuckDB", "Polars": "Polars"},
    ),
    _Part(
        f"On Spark, {EVENTS:,.0f} events a side", "peers", _SIZE,
        {OURS_ON_SPARK: "Coincide", "Spark SQL": "Spark SQL"},
    ),
    _Part(
        "Sum, mean and maximum for each event", "aggregates", aggregates.DENSE,
        {aggregates.OURS: "Coincide", aggregates.PAIRS: "its pairs", aggregates.DUCK: "DuckDB"},
    ),
)  # fmt: skip
_NAMES, _END = 150, 650
"""Where bars begin, and where the longest ends."""
_STEP, _HEAD, _TOP = 40, 46, 56


def picture(results: Path, folder: Path) -> list[Path]:
    """Draw the picture from the folder of results.

    Raises
    ------
    ValueError
        If a result is missing, or lacks a time.
    """
    found = {part.experiment: _result(results, part) for part in PARTS}
    pairs = found["peers"]["settings"][_SIZE]["pairs"]
    many = found["aggregates"]["settings"][f"{aggregates.DENSE}: pairs"]
    cores = found["peers"]["settings"]["cores"]
    seconds = [{who: _median(found[p.experiment], p, who) for who in p.contestants} for p in PARTS]
    most = max(max(each.values()) for each in seconds)

    def draw(drawing: Drawing) -> None:
        title = f"Seconds to find {pairs / 1e6:.1f} million pairs on {cores} cores"
        drawing.text(20, 34, title, bold=True)
        y = _TOP
        for part, times in zip(PARTS, seconds, strict=True):
            more = f", {many / 1e6:.1f} million pairs" if part.experiment != "peers" else ""
            drawing.text(20, y + 26, part.words + more, "grey", size=TEXT - 2)
            y += _HEAD
            for who, called in part.contestants.items():
                _bar(drawing, y, called, times[who], most)
                y += _STEP

    lines = sum(len(part.contestants) for part in PARTS)
    return write("speed", _TOP + len(PARTS) * _HEAD + lines * _STEP + 6, draw, folder)


def _result(results: Path, part: _Part) -> dict[str, Any]:
    path = results / f"{part.experiment}.json"
    try:
        result: dict[str, Any] = json.loads(path.read_text("utf-8"))
        _ = [_median(result, part, who) for who in part.contestants]
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} has no times to draw (found {error!r}). Run `python -m bench run"
            f" {part.experiment} --record`."
        ) from error
    return result


def _median(result: dict[str, Any], part: _Part, who: str) -> float:
    return float(result["timings"][f"{part.load}: {who}"]["median"])


def _bar(drawing: Drawing, y: float, called: str, seconds: float, most: float) -> None:
    ours = called == "Coincide"
    width = (_END - _NAMES) * seconds / most
    drawing.text(_NAMES - 10, y + 23, called, anchor="end", bold=ours)
    drawing.bar(_NAMES, y, width, _STEP - 10, "found" if ours else "grey")
    drawing.text(_NAMES + width + 10, y + 23, f"{seconds:.2f} s", bold=ours)
