"""What a finished command, a join first of all, says about itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TextIO

from coincide.command_line.problems import in_options
from coincide.engine.events.sides import SideCounts
from coincide.engine.files.credentials import without_credentials
from coincide.engine.reports.reports import JoinSummary, side_words
from coincide.model.errors import Words, marked
from coincide.model.sides import SIDES


class Told(Protocol):
    """What a finished command says of itself."""

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""

    def lines(self) -> list[tuple[str, str]]:
        """Names and what there is to say, for people."""


@dataclass(frozen=True)
class Summary:
    """What a finished join did."""

    join: JoinSummary
    output: str
    engine: str
    start_seconds: float | None = None
    engine_why: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        join = self.join
        values = {
            "output": self.output,
            "engine": self.engine,
            "engine_why": self.engine_why or None,
            **{name: _plain(counts) for name, counts in _sides(join)},
            **({} if join.counters is None else asdict(join.counters)),
            "rows": join.rows,
            "seconds": round(join.seconds or 0.0, 3),
            "start_seconds": None if self.start_seconds is None else round(self.start_seconds, 3),
            "slices": join.slices,
            "replication": None if join.replication is None else round(join.replication, 4),
            "way": join.way or None,
            "why": join.why or None,
            "tick": join.tick.unit,
            **({} if join.accidental is None else join.accidental.as_dict()),
            "lines_left_out": dict(self.skipped) or None,
            "no_pairs": None if join.no_pairs is None else join.no_pairs.as_dict(),
        }
        return {name: value for name, value in values.items() if value is not None}

    def lines(self) -> list[tuple[str, str]]:
        """Names and what there is to say, for people."""
        return _lines(self)


@dataclass(frozen=True)
class Finished:
    """What a finished command of any operator but the join did."""

    values: dict[str, object]
    about: list[tuple[str, str]]
    rows: int | None
    seconds: float
    output: str
    engine: str
    start_seconds: float | None = None
    engine_why: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        start = None if self.start_seconds is None else round(self.start_seconds, 3)
        values = {
            "output": self.output, "engine": self.engine, "engine_why": self.engine_why or None,
            **self.values, "rows": self.rows, "seconds": round(self.seconds, 3),
            "start_seconds": start, "lines_left_out": dict(self.skipped) or None,
        }  # fmt: skip
        return {name: value for name, value in values.items() if value is not None}

    def lines(self) -> list[tuple[str, str]]:
        """Names and what there is to say, for people."""
        rows = [] if self.rows is None else [("rows", f"{self.rows:,}")]
        seconds = seconds_words(self.seconds, self.start_seconds)
        engine = engine_lines(self.engine, self.engine_why)
        return [
            *self.about,
            *skipped_lines(self.skipped),
            *rows,
            *engine,
            ("seconds", seconds),
            ("output", self.output),
        ]


def _plain(counts: SideCounts | None) -> dict[str, object] | None:
    """Counts for JSON; that nothing was rounded goes without saying."""
    if counts is None:
        return None
    return {name: value for name, value in asdict(counts).items() if value or name != "rounded"}


def print_summary(summary: Told, as_json: bool, to: TextIO | None = None) -> None:
    """Print a summary, to stdout if nothing else is said: aligned lines, or one JSON object."""
    if as_json:
        print(without_credentials(json.dumps(_said(summary.as_dict()))), file=to)
        return
    lines = summary.lines()
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {without_credentials(in_options(value))}", file=to)


def _said(value: Any) -> Any:
    """Values of a summary in the words of the command line."""
    if isinstance(value, dict):
        return {name: _said(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_said(each) for each in value]
    return in_options(value) if isinstance(value, Words) else value


def _lines(summary: Summary) -> list[tuple[str, str]]:
    join = summary.join
    counters = join.counters
    lines = [(name, _side(counts, join)) for name, counts in _sides(join)]
    lines += skipped_lines(summary.skipped)
    if counters is None:
        lines.append(("pairs", "not counted"))
    else:
        lines += [
            ("candidates", f"{counters.candidates:,}"),
            ("probed", f"{counters.probed:,}"),
            ("pairs", f"{counters.pairs:,}"),
        ]
    if join.accidental is not None:
        lines.append(("accidental", join.accidental.words))
    if join.no_pairs is not None:
        names = ["no pairs:"] + [""] * len(join.no_pairs.lines)
        lines += list(zip(names, join.no_pairs.lines, strict=False))
    if join.rows is not None and (counters is None or join.rows != counters.pairs):
        lines.append(("rows", f"{join.rows:,}"))
    if join.slices is not None:
        row = f"{join.sides[1]} row" if join.sides == SIDES else join.sides[1]
        copies = "" if join.replication is None else f", {join.replication:.3g} copies of a {row}"
        lines.append(("slices", f"{join.slices:,}{copies}"))
    if join.way:
        lines.append(("way", f"{join.way}: {marked(join.why)}"))
    lines += [
        *engine_lines(summary.engine, summary.engine_why),
        ("seconds", seconds_words(join.seconds or 0.0, summary.start_seconds)),
        ("output", summary.output),
    ]
    return lines


def skipped_lines(skipped: Mapping[str, int]) -> list[tuple[str, str]]:
    """What of CSV could not be read and was left out."""
    words = "left out: of more or fewer cells than the header, or without a time"
    return [(f"{side} lines", f"{count:,} {words}") for side, count in skipped.items()]


def engine_lines(engine: str, why: str) -> list[tuple[str, str]]:
    """The engine, where it was chosen."""
    return [("engine", f"{engine}: {why}")] if why else []


def seconds_words(seconds: float, start_seconds: float | None) -> str:
    """How long a command took, and starting Spark for it."""
    start = "" if start_seconds is None else f" (and {start_seconds:.1f} to start Spark)"
    return f"{seconds:.2f}{start}"


def _sides(join: JoinSummary) -> list[tuple[str, SideCounts | None]]:
    """What the rows were, by side; of one stream once."""
    names = join.sides if join.sides == SIDES else [f"{side}s" for side in join.sides]
    found = list(zip(names, (join.left, join.right), strict=True))
    return found[:1] if names[0] == names[1] else found


def _side(counts: SideCounts | None, join: JoinSummary) -> str:
    if counts is None:
        return "not counted"
    words = side_words(counts, join.tick, join.matchless)
    return "; ".join([f"{counts.rows:,} rows", *words])
