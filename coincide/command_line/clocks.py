"""`coincide clocks`: how far clocks are off, from the events of two inputs, in this process."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import pyarrow as pa

from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.options import CLOCKS, typed
from coincide.command_line.problems import Problem
from coincide.command_line.progress import Progress
from coincide.command_line.requests import EventRequest, InProcess, checked
from coincide.command_line.summary import Counted
from coincide.engine.clocks.arguments import ClockArguments
from coincide.engine.clocks.tables import ClockPlan, errors_of_tables
from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.source import Source
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.words import duration, keys, names, options_of
from coincide.engine.reports.reports import JoinSummary, side_words
from coincide.model.errors import ConditionError, argument
from coincide.model.sides import SIDES

_MOST_CLOCKS = 8
"""On a page."""
_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}


@dataclass(frozen=True, kw_only=True)
class ClockRequest(EventRequest):
    """One `coincide clocks`."""

    doing: ClassVar[str] = "comparing clocks"
    left: str
    right: str
    arguments: ClockArguments
    page: str | None
    command: str

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return dict(zip(SIDES, (self.left, self.right), strict=True))

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> ClockPlan:  # noqa: D102
        assert isinstance(arguments, ClockArguments)
        return ClockPlan.of(tables, arguments)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        inputs = tuple(source.found for source in sources)
        if self.page is not None:
            _check_page(self.page, self.output, self.overwrite, inputs)
        tables = read_tables(asked, progress.show)
        progress.show(self.doing)
        answers, summary = errors_of_tables(tables, asked.request.arguments)
        found = answers.table
        counted = _counted(found, summary)
        if self.page is not None:
            from coincide.engine.clocks.drawing import ClockPage
            from coincide.engine.exploration.pages import write_file

            progress.show("drawing")
            plan, command = answers.plan, self.hide(self.command)
            page = ClockPage(plan.times[0].scales[0], plan.spec.limits)
            text = page.text(
                answers.views(_MOST_CLOCKS), len(answers.found), counted.lines, command
            )
            write_file(self.page, text.encode(), self.overwrite, inputs)
        return InProcess(found.to_batches(), found.schema, lambda: counted)


def _check_page(page: str, output: str, overwrite: bool, inputs: tuple[ParquetFiles, ...]) -> None:
    """Refuse a page that could not be written, before there is anything to write."""
    from coincide.engine.exploration.pages import checked_place, is_page

    if not is_page(page):
        raise Problem(f"--page must end in .html (found {page}). Rename it.")
    if os.path.abspath(page) == os.path.abspath(output):
        raise Problem(f"--page and -o are the same file (found {page}). Rename one of them.")
    checked_place(page, overwrite, inputs)


def request(**words: Any) -> ClockRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide clocks`."""
    arguments = ClockArguments(
        max_offset=duration("max_offset", words["max_offset"]),
        left_time=_column("left_time", words["left_time"]),
        right_time=_column("right_time", words["right_time"]),
        by=keys(words["by"]),
        match=keys(words["match"], "match"),
        jumps=not words["no_jumps"],
        options=options_of(words),
        **{name: words[name] for name in ("max_drift", "chance")},
    )
    return ClockRequest(
        left=words["left"],
        right=words["right"],
        arguments=arguments,
        page=words["page"],
        command=typed("clocks", CLOCKS, words),
        **checked({**words, **_OF_SPARK}, {}),
    )


def _column(option: str, word: str) -> str:
    found = names(option, [word])
    if len(found) != 1:
        raise ConditionError(
            f"{argument(option)} takes one column of exact times (found {word!r})."
        )
    return found[0]


def _counted(found: pa.Table, summary: JoinSummary) -> Counted:
    """How many answers of each status there are, and what the rows were."""
    first = found.filter(pa.array([each in (None, 0) for each in found["segment"].to_pylist()]))
    statuses = Counter(first["status"].to_pylist())
    sides = dict(zip(SIDES, (summary.left, summary.right), strict=True))
    lines = []
    for side, counts in sides.items():
        assert counts is not None
        lines.append(
            (side, "; ".join([f"{counts.rows:,} rows", *side_words(counts, summary.tick)]))
        )
    words = ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
    values = {
        **{side: asdict(counts) for side, counts in sides.items() if counts is not None},
        "clocks": dict(statuses),
        "segments": found["segment"].drop_null().length(),
        "tick": summary.tick.unit,
    }
    return Counted(values, [*lines, ("clocks", words or "none")])
