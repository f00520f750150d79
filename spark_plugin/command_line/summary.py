"""What a finished join says about itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from event_model.results import JoinCounters
from spark_plugin.credentials import without_credentials
from spark_plugin.tables import SideCounts
from spark_plugin.time_columns import INVALID_REASONS

_SHORT_REASONS = {
    "not_finite": "NaN or infinite",
    "range": "out of range",
    "order": "min above max",
    "length": "longer than declared",
}
assert list(_SHORT_REASONS) == list(INVALID_REASONS)


@dataclass(frozen=True)
class Summary:
    """What a finished join did.

    Parameters
    ----------
    output : str
    engine : str
    left, right : SideCounts or None
        None where nobody counted.
    counters : JoinCounters or None
        None where nobody counted.
    rows : int or None
        Rows written, where that is known.
    seconds : float
        Reading, joining and writing.
    start_seconds : float or None
        Starting Spark.
    slices : int or None
    replication : float or None
        Copies of a right event, on average.
    way, why : str
        How rows got to the kernels, and why so.
    """

    output: str
    engine: str
    left: SideCounts | None
    right: SideCounts | None
    counters: JoinCounters | None
    rows: int | None
    seconds: float
    start_seconds: float | None = None
    slices: int | None = None
    replication: float | None = None
    way: str = ""
    why: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        values = {
            "output": self.output,
            "engine": self.engine,
            "left": None if self.left is None else asdict(self.left),
            "right": None if self.right is None else asdict(self.right),
            **({} if self.counters is None else asdict(self.counters)),
            "rows": self.rows,
            "seconds": round(self.seconds, 3),
            "start_seconds": None if self.start_seconds is None else round(self.start_seconds, 3),
            "slices": self.slices,
            "replication": None if self.replication is None else round(self.replication, 4),
            "way": self.way or None,
            "why": self.why or None,
        }
        return {name: value for name, value in values.items() if value is not None}


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
    lines = [("left", _side(summary.left)), ("right", _side(summary.right))]
    if counters is None:
        lines.append(("pairs", "not counted"))
    else:
        lines += [
            ("candidates", f"{counters.candidates:,}"),
            ("probed", f"{counters.probed:,}"),
            ("pairs", f"{counters.pairs:,}"),
        ]
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
    lines += [("seconds", f"{summary.seconds:.2f}{started}"), ("output", summary.output)]
    return lines


def _side(counts: SideCounts | None) -> str:
    if counts is None:
        return "not counted"
    words = [f"{counts.rows:,} rows"]
    if counts.unmatchable:
        words.append(f"{counts.unmatchable:,} without time or key")
    if counts.dropped:
        reasons = ", ".join(
            f"{n:,} {_SHORT_REASONS.get(why, why)}" for why, n in counts.invalid.items() if n
        )
        words.append(f"{counts.dropped:,} invalid, left out ({reasons})")
    return "; ".join(words)
