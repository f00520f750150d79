"""`coincide histogram`: pairs by their delay, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa

from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.flags import typed
from coincide.command_line.options import HISTOGRAM
from coincide.command_line.outputs import check_page
from coincide.command_line.progress import Progress
from coincide.command_line.requests import EventRequest, InProcess, checked
from coincide.command_line.summary import Counted, plain_counts
from coincide.engine.correlograms.arguments import ANY, RATES, HistogramArguments, check_one_of
from coincide.engine.correlograms.histogram import DelayHistogram, TableHistogram
from coincide.engine.events.ticks import length_words
from coincide.engine.files.source import Source
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import duration, names, worded_join
from coincide.engine.reports.lines import Line, under
from coincide.model.sides import SIDES

_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}
_MOST_LINES = 20
_WIDTH = 40
"""Characters of the longest bar."""


@dataclass(frozen=True, kw_only=True)
class HistogramRequest(EventRequest):
    """One `coincide histogram`."""

    doing: ClassVar[str] = "counting pairs"
    left: str
    right: str | None
    asked: HistogramArguments
    page: str | None
    command: str

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        given = zip(SIDES, (self.left, self.right), strict=True)
        return {side: path for side, path in given if path is not None}

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> TableHistogram:  # noqa: D102
        assert isinstance(arguments, JoinArguments)
        return TableHistogram(tables, self.asked.but(arguments))

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        inputs = tuple(source.found for source in sources)
        if self.page is not None:
            check_page(self.page, self.output, self.overwrite, inputs)
        job = self.job(asked.request.arguments, read_tables(asked, progress.show))
        found = job.count(progress.show)
        lines = _lines(found)
        if self.page is not None:
            from coincide.engine.correlograms.drawing import page_of
            from coincide.engine.exploration.pages import write_file

            progress.show("drawing")
            text = page_of(found, lines, self.hide(self.command))
            write_file(self.page, text.encode(), self.overwrite, inputs)
        return InProcess(
            found.table.to_batches(), found.table.schema, partial(_counted, found, lines)
        )


def request(**words: Any) -> HistogramRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide histogram`."""
    edges, window = words["edges"], words["within"]
    check_one_of(edges, window)
    if edges is not None:
        edges = [duration("edges", word) for word in names("edges", edges)]
    else:
        window = tuple(duration("within", word) for word in window)
    # All but the buckets is said as for a join, whatever its window.
    join = worded_join({**words, "within": ("0", "0"), "confidence": ANY})
    asked = HistogramArguments.of(
        edges, window, words["bins"], _chance(words["chance"]), left_time=join.left_time,
        right_time=join.right_time, by=join.by, options=join.options,
        is_one_stream=join.is_one_stream,
    )  # fmt: skip
    return HistogramRequest(
        left=words["left"], right=words["right"], arguments=asked.join, asked=asked,
        page=words["page"], command=typed("histogram", HISTOGRAM, words),
        **checked({**words, **_OF_SPARK}, {}),
    )  # fmt: skip


def _chance(words: list[str] | None) -> Any:
    if words is None or words == [RATES]:
        return words and RATES
    return [duration("chance", word) for word in names("chance", words)]


def _lines(found: DelayHistogram) -> list[Line]:
    """What was counted, for people."""
    of_sides = [line for line in found.summary.lines if line[0] != "way"]
    lines = [*of_sides, ("pairs", f"{found.pairs:,}")]
    if found.keys.num_columns:
        lines.append(("keys", f"{found.keys.num_rows:,}, which both sides have"))
    for name in found.names[1:]:
        total = found.table[name].to_numpy().sum()
        of = "by chance" if name == "chance" else "expected"
        lines.append((of, f"{total:,.6g} in all buckets"))
    if found.shifts:
        lines.append(("shifts", ", ".join(map(str, found.shifts))))
    return lines


def _counted(found: DelayHistogram, lines: list[Line]) -> Counted:
    summary = found.summary
    values: dict[str, object] = {
        **{name: plain_counts(counts) for name, counts in summary.counts},
        "pairs": found.pairs, "buckets": len(found.edges) - 1, "keys": found.keys.num_rows or None,
        "tick": found.tick.unit,
    }  # fmt: skip
    return Counted(values, [*lines, *under("delays", list(_bars(found)))])


def _bars(found: DelayHistogram) -> Iterator[str]:
    """The histogram of all keys as text: neighbours together where there are many."""
    edges, counted = found.joined(_MOST_LINES)
    pairs = counted["pairs"]
    ends = [length_words(int(edge), found.tick, 4) for edge in edges]
    width, most = max(map(len, ends)), max(int(pairs.max()), 1)
    numbers = [f"{int(count):,}" for count in pairs]
    longest = max(map(len, numbers))
    for k, count in enumerate(pairs):
        bar = "█" * round(_WIDTH * int(count) / most)
        yield f"{ends[k]:>{width}} to {ends[k + 1]:>{width}}  {numbers[k]:>{longest}}  {bar}"
