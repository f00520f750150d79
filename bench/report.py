"""What an experiment found, as JSON and as tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.charts import Chart
from bench.machine import commit, machine, now, versions
from bench.timing import Timing

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Figure:
    """One figure with its spread over the rounds, and the bar set for it."""

    name: str
    value: float
    low: float
    high: float
    unit: str  # ``"x"`` for ratios
    bar: float | None = None
    at_least: bool = True  # whether the bar is a lower limit
    judged: bool = True  # not in quick runs, whose sizes say nothing

    @property
    def reached(self) -> bool | None:
        """Whether the bar was reached; None where no bar is set."""
        if self.bar is None or not self.judged:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        fields = asdict(self)
        del fields["judged"]
        return {**fields, "reached": self.reached}


@dataclass(frozen=True)
class Check:
    """Answers of all contestants, which must be equal."""

    name: str
    answers: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether they are."""
        return len({repr(answer) for answer in self.answers.values()}) == 1

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "answers": self.answers, "passed": self.passed}


@dataclass(frozen=True)
class Claim:
    """What a paper claims, and what was seen here; None agrees where the measurement does not decide."""

    claim: str
    seen: str
    agrees: bool | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass
class Report:
    """Everything that one run of an experiment found."""

    experiment: str
    quick: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    _drawn: set[Path] = field(default_factory=set, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with what is needed to judge it later: commit, date, machine, versions."""
        return {
            "experiment": self.experiment,
            "quick": self.quick,
            "date": now(),
            "commit": commit(),
            "machine": machine(),
            "versions": versions(),
            "settings": self.settings,
            "timings": {name: timing.as_dict() for name, timing in self.timings.items()},
            "figures": [figure.as_dict() for figure in self.figures],
            "checks": [check.as_dict() for check in self.checks],
            "charts": [chart.as_dict() for chart in self.charts],
            "claims": [claim.as_dict() for claim in self.claims],
        }

    def write(self, folder: Path) -> Path:
        """Write ``NAME.json`` into a folder (``NAME-quick.json`` after quick runs), and each chart once."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.experiment}{'-quick' if self.quick else ''}.json"
        # Without Matplotlib charts stay numbers, from which `report` can draw them elsewhere.
        for chart in self.charts if find_spec("matplotlib") else ():
            picture = path.with_name(f"{path.stem}-{chart.name}.png")
            if picture not in self._drawn:
                chart.draw(picture)
                self._drawn.add(picture)
        path.write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
        return path

    def tables(self) -> list[Table]:
        """The timings and the figures for people."""
        tables = self._timing_table(), self._figure_table(), self._claim_table()
        return [table for table in tables if table.row_count]

    def _timing_table(self) -> Table:
        from rich.table import Table

        table = Table(title=self._title("seconds"), title_justify="left")
        table.add_column("what")
        for name in ("median", "lowest", "highest"):
            table.add_column(name, justify="right")
        for name, timing in self.timings.items():
            table.add_row(name, *(f"{s:.3f}" for s in (timing.median, timing.low, timing.high)))
        return table

    def _figure_table(self) -> Table:
        from rich.table import Table

        table = Table(title=self._title("figures"), title_justify="left")
        for name in ("figure", "value", "spread", "bar", "reached"):
            table.add_column(name, justify="left" if name == "figure" else "right")
        for figure in self.figures:
            table.add_row(figure.name, *_cells(figure))
        return table

    def _claim_table(self) -> Table:
        from rich.table import Table

        table = Table("the paper", "here", "agrees", title=self._title("claims"))
        table.title_justify = "left"
        for claim in self.claims:
            agrees = {None: "open", True: "[green]yes[/green]", False: "[red]no[/red]"}
            table.add_row(claim.claim, claim.seen, agrees[claim.agrees])
        return table

    def _title(self, text: str) -> str:
        return f"{self.experiment}: {text}" + (" (quick: too small to judge)" * self.quick)


def _cells(figure: Figure) -> tuple[str, str, str, str]:
    value = f"{short(figure.value)} {figure.unit}"
    spread = "" if figure.low == figure.high else f"{short(figure.low)} … {short(figure.high)}"
    bar = "" if figure.bar is None else f"{'≥' if figure.at_least else '≤'} {short(figure.bar)}"
    reached = {None: "", True: "[green]yes[/green]", False: "[red]no[/red]"}[figure.reached]
    return value, spread, bar, reached


def short(value: float) -> str:
    """A number with as many digits as a reader needs."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
