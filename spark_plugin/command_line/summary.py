"""What a finished join says about itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from coincide.units import Tick
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.files.credentials import without_credentials
from spark_plugin.worker.reports.reports import FilesSummary, side_words
from spark_plugin.worker.reports.wording import for_command_line


@dataclass(frozen=True, kw_only=True)
class Summary(FilesSummary):
    """What a finished command did.

    Parameters
    ----------
    output : str
    engine : str
    start_seconds : float or None
        Starting Spark.
    """

    output: str
    engine: str
    start_seconds: float | None = None

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = {
            "output": self.output,
            "engine": self.engine,
            "left": _plain(self.left),
            "right": _plain(self.right),
            **({} if self.counters is None else asdict(self.counters)),
            "rows": self.rows,
            "seconds": round(self.seconds or 0.0, 3),
            "start_seconds": None if self.start_seconds is None else round(self.start_seconds, 3),
            "slices": self.slices,
            "replication": None if self.replication is None else round(self.replication, 4),
            "way": self.way or None,
            "why": self.why or None,
            "tick": self.tick.unit,
            "no_pairs": None if self.no_pairs is None else self.no_pairs.as_dict(),
        }
        return {name: value for name, value in values.items() if value is not None}


def _plain(counts: SideCounts | None) -> dict[str, object] | None:
    """Counts for JSON; that nothing was rounded goes without saying."""
    if counts is None:
        return None
    return {name: value for name, value in asdict(counts).items() if value or name != "rounded"}


def print_summary(summary: Summary, as_json: bool) -> None:
    """Print a summary to stdout: aligned lines, or one JSON object."""
    if as_json:
        print(without_credentials(json.dumps(summary.as_dict())))
        return
    lines = _lines(summary)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {without_credentials(value)}")


def _lines(summary: Summary) -> list[tuple[str, str]]:
    counters = summary.counters
    lines = [
        ("left", _side(summary.left, summary.tick)),
        ("right", _side(summary.right, summary.tick)),
    ]
    if counters is None:
        lines.append(("pairs", "not counted"))
    else:
        lines += [
            ("candidates", f"{counters.candidates:,}"),
            ("probed", f"{counters.probed:,}"),
            ("pairs", f"{counters.pairs:,}"),
        ]
    if summary.no_pairs is not None:
        names = ["no pairs:"] + [""] * len(summary.no_pairs.lines)
        lines += list(zip(names, summary.no_pairs.lines, strict=False))
    if summary.rows is not None and (counters is None or summary.rows != counters.pairs):
        lines.append(("rows", f"{summary.rows:,}"))
    if summary.slices is not None:
        copies = (
            ""
            if summary.replication is None
            else f", {summary.replication:.3g} copies of a right row"
        )
        lines.append(("slices", f"{summary.slices:,}{copies}"))
    if summary.way:
        lines.append(("way", f"{summary.way}: {summary.why}"))
    started = (
        ""
        if summary.start_seconds is None
        else f" (and {summary.start_seconds:.1f} to start Spark)"
    )
    lines += [("seconds", f"{summary.seconds or 0.0:.2f}{started}"), ("output", summary.output)]
    return lines


def _side(counts: SideCounts | None, tick: Tick) -> str:
    if counts is None:
        return "not counted"
    return for_command_line("; ".join([f"{counts.rows:,} rows", *side_words(counts, tick)]))
