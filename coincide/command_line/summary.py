"""What a finished command says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from coincide.command_line.problems import in_options
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.files.credentials import without_credentials
from coincide.engine.reports.join_report import JoinSummary
from coincide.engine.reports.lines import Line, aligned
from coincide.model.errors import Words

if TYPE_CHECKING:
    from coincide.engine.accidental.pairs import AccidentalPairs


class Counted(NamedTuple):
    """What an operator has counted: plain values for JSON, None of no account; lines for people."""

    values: dict[str, object]
    lines: list[Line]


def not_counted(what: str) -> Counted:
    """The numbers of a session that counts nothing."""
    return Counted({}, [(what, "not counted")])


@dataclass(frozen=True)
class Summary:
    """What a finished command did; rows are None where they are not known."""

    counted: Counted
    rows: int | None
    seconds: float
    start_seconds: float | None = None
    output: str = ""
    engine: str = "local"
    engine_why: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = {
            "output": self.output,
            "engine": self.engine,
            "engine_why": self.engine_why or None,
            **self.counted.values,
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "start_seconds": None if self.start_seconds is None else round(self.start_seconds, 3),
            "lines_skipped": dict(self.skipped) or None,
        }
        return {name: value for name, value in values.items() if value is not None}

    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        lines = [*self.counted.lines]
        skipped = "skipped: other cells than the header, or no time"
        lines += [(f"{side} lines", f"{count:,} {skipped}") for side, count in self.skipped.items()]
        known = [self.counted.values.get(name) for name in ("pairs", "found")]
        if self.rows is not None and self.rows not in known:
            lines.append(("rows", f"{self.rows:,}"))
        if self.engine_why:
            lines.append(("engine", f"{self.engine}: {self.engine_why}"))
        start = self.start_seconds
        started = "" if start is None else f" (and {start:.1f} to start Spark)"
        return [*lines, ("seconds", f"{self.seconds:.2f}{started}"), ("output", self.output)]


def print_summary(summary: Summary, as_json: bool, to: TextIO | None = None) -> None:
    """Print a summary, to stdout if nothing else is said: aligned lines, or one JSON object."""
    if as_json:
        print(without_credentials(json.dumps(_said(summary.as_dict()))), file=to)
        return
    print(aligned(summary.lines(), lambda said: without_credentials(in_options(said))), file=to)


def _said(value: Any) -> Any:
    """Values of a summary in the words of the command line."""
    if isinstance(value, dict):
        return {name: _said(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_said(each) for each in value]
    return in_options(value) if isinstance(value, Words) else value


def counted_pairs(join: JoinSummary, accidental: AccidentalPairs | None = None) -> Counted:
    """What a join of two sides has counted, and how many of its pairs chance makes, if that was asked."""
    values = {
        **{name: plain_counts(counts) for name, counts in join.counts},
        **({} if join.counters is None else asdict(join.counters)),
        "slices": join.slices,
        "replication": None if join.replication is None else round(join.replication, 4),
        "way": join.way or None,
        "why": join.why or None,
        "tick": join.tick.unit,
        **({} if accidental is None else accidental.as_dict()),
        "no_pairs": None if join.no_pairs is None else join.no_pairs.as_dict(),
    }
    lines = join.lines
    if accidental is not None:
        after = [name for name, _ in lines].index("pairs") + 1
        lines[after:after] = accidental.lines
    return Counted(values, lines)


_OFTEN_NONE = "rounded", "too_long", "longest_match", "lacking"


def plain_counts(counts: SideCounts | None) -> dict[str, object] | None:
    """Counts for JSON; that nothing was rounded, too long or lacking goes without saying."""
    if counts is None:
        return None
    found = asdict(counts).items()
    return {name: value for name, value in found if value or name not in _OFTEN_NONE}
