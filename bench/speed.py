"""The picture of speed: Coincide and other engines at the same pairs, from the results of `run peers`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.drawing import TEXT, Drawing, write
from bench.experiments.peers import OURS, OURS_ON_SPARK, SWEEPS

EVENTS = max(SWEEPS["size"][1])
GROUPS = {
    "In one process": {OURS: "Coincide", "DuckDB": "DuckDB", "Polars": "Polars"},
    "On Spark": {OURS_ON_SPARK: "Coincide", "Spark SQL": "Spark SQL"},
}
"""The contestants of each part, and how the picture calls them."""
_NAMES, _END = 150, 650
"""Where bars begin, and where the longest ends."""
_STEP, _HEAD, _TOP = 40, 46, 56


def picture(results: Path, folder: Path) -> list[Path]:
    """Draw the picture from the folder of results.

    Raises
    ------
    ValueError
        If there is no result of `run peers`, or it lacks a time.
    """
    path = results / "peers.json"
    try:
        result = json.loads(path.read_text("utf-8"))
        seconds = {who: _median(result, who) for group in GROUPS.values() for who in group}
        pairs = result["settings"][f"size {EVENTS:g}"]["pairs"]
        cores = result["settings"]["cores"]
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(
            f"{path} has no times to draw (found {error!r}). Run `python -m bench run peers --record`."
        ) from error

    def draw(drawing: Drawing) -> None:
        title = f"Seconds to find {pairs / 1e6:.1f} million pairs on {cores} cores"
        drawing.text(20, 34, title, bold=True)
        y = _TOP
        for group, contestants in GROUPS.items():
            drawing.text(20, y + 26, f"{group}, {EVENTS:,.0f} events a side", "grey", size=TEXT - 2)
            y += _HEAD
            for who, called in contestants.items():
                _bar(drawing, y, called, seconds[who], max(seconds.values()))
                y += _STEP

    lines = sum(map(len, GROUPS.values()))
    return write("speed", _TOP + len(GROUPS) * _HEAD + lines * _STEP + 6, draw, folder)


def _median(result: dict[str, Any], who: str) -> float:
    return float(result["timings"][f"size {EVENTS:g}: {who}"]["median"])


def _bar(drawing: Drawing, y: float, called: str, seconds: float, most: float) -> None:
    ours = called == "Coincide"
    width = (_END - _NAMES) * seconds / most
    drawing.text(_NAMES - 10, y + 23, called, anchor="end", bold=ours)
    drawing.bar(_NAMES, y, width, _STEP - 10, "found" if ours else "grey")
    drawing.text(_NAMES + width + 10, y + 23, f"{seconds:.2f} s", bold=ours)
