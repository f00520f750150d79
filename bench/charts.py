"""Figures for people: lines over one quantity, or bars of steps, drawn alike throughout."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LABELS = {
    "simple": "Simple",
    "simple-sort": "Simple-Sort",
    "eager": "Eager",
    "lazy": "Lazy",
    "lookup": "Lazy, look-up",
    "classes": "Lazy, length classes",
}
"""Algorithms in the order in which legends list them."""

# Okabe and Ito's palette, which colour-blind readers can tell apart; markers tell lines apart in grey.
_STYLES = {
    LABELS["simple"]: ("#999999", "s"),
    LABELS["simple-sort"]: ("#E69F00", "D"),
    LABELS["eager"]: ("#56B4E9", "^"),
    LABELS["lazy"]: ("#009E73", "v"),
    LABELS["lookup"]: ("#CC79A7", "P"),
    LABELS["classes"]: ("#D55E00", "o"),
}
_OTHER_STYLES = (
    *(("#000000", "x"), ("#0072B2", "*"), ("#F0E442", "h"), ("#999999", "s")),
    *(("#D55E00", "o"), ("#009E73", "v"), ("#CC79A7", "P"), ("#56B4E9", "^"), ("#E69F00", "D")),
)


@dataclass(frozen=True)
class Chart:
    """Lines over one quantity, or bars that are put together from steps; labels have units."""

    name: str  # the last part of the file's name
    title: str
    x_label: str
    y_label: str
    x: list[float] | list[str]  # for bars their names
    lines: dict[str, list[float]]  # one value for each of `x`; of bars the lengths of a step
    log_x: bool = False
    log_y: bool = False
    dashed: list[str] = field(default_factory=list)
    bars: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def draw(self, path: Path) -> None:
        """Write it as PNG."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.0, 4.2), dpi=130, layout="constrained")
        axes = figure.subplots()
        (self._draw_bars if self.bars else self._draw_lines)(axes)
        axes.set(title=self.title, xlabel=self.x_label, ylabel=self.y_label)
        axes.legend(frameon=False, fontsize=8)
        figure.savefig(path, metadata={"Software": None})

    def _draw_bars(self, axes: Any) -> None:
        begins = [0.0] * len(self.x)
        colours = [colour for colour, _ in _STYLES.values()]
        for (label, values), colour in zip(self.lines.items(), colours, strict=False):
            axes.barh(self.x, values, left=begins, color=colour, label=label)
            begins = [begin + value for begin, value in zip(begins, values, strict=True)]
        axes.invert_yaxis()
        axes.grid(alpha=0.3, axis="x")

    def _draw_lines(self, axes: Any) -> None:
        from matplotlib.ticker import NullFormatter, ScalarFormatter

        others = iter(_OTHER_STYLES * len(self.lines))
        for label, values in self.lines.items():
            colour, marker = _STYLES.get(label) or next(others)
            style = "--" if label in self.dashed else "-"
            axes.plot(self.x, values, style, color=colour, marker=marker, markersize=5, label=label)
        if self.log_x:
            axes.set_xscale("log", base=2)
            axes.set_xticks(self.x)
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_formatter(NullFormatter())
        if self.log_y:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3, which="both" if self.log_y else "major")
