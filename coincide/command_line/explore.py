"""`coincide explore`, in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from coincide.command_line.engines import told
from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.flags import typed
from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.join import JoinRequest
from coincide.command_line.join import request as join_request
from coincide.command_line.options import EXPLORE, JOIN
from coincide.command_line.problems import Problem, warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.summary import Counted, Summary
from coincide.engine.exploration.drawing import flat_words, head_of, save
from coincide.engine.exploration.exploring import (
    Exploration,
    ExploreArguments,
    TableExploration,
    check_both_ends,
)
from coincide.engine.exploration.lags import clock_words
from coincide.engine.exploration.pages import checked_place, is_page
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import numbers, worded_window
from coincide.engine.reports.lines import under


@dataclass(frozen=True, kw_only=True)
class ExploreRequest(JoinRequest):
    """One `coincide explore`."""

    explore: ExploreArguments
    command: str

    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> TableExploration:  # noqa: D102
        assert isinstance(arguments, JoinArguments)
        return TableExploration(tables, replace(self.explore, join=arguments))


def request(**words: Any) -> ExploreRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide explore`."""
    if words["engine"] != "local":
        raise Problem(
            "coincide explore runs in one process, and takes a sample of large inputs. Remove"
            " --engine."
        )
    _check_output(words["output"])
    own: dict[str, Any] = {"most_pairs": words["most_pairs"]}
    if words["confidences"] is not None:
        own["confidences"] = tuple(numbers("--confidences", words["confidences"]))
    check_both_ends(worded_window(words))
    # What the join is asked beyond, is as without an option.
    asked = {each.name: words.get(each.name, each.default) for each in JOIN}
    request = join_request(**asked)
    join = replace(request.arguments, left_columns=(), right_columns=(), probability=True)
    return ExploreRequest(
        **{**vars(request), "arguments": join, "shifts": None},
        explore=ExploreArguments(join, shifts=request.shifts, **own),
        command=typed("explore", EXPLORE, words),
    )


def _check_output(page: str) -> None:
    if not page.strip():
        raise Problem("the output has no name. Name the page with -o.")
    if not is_page(page):
        picture = ", or use Exploration.save in Python for pictures"
        picture *= page.lower().endswith(".png")
        raise Problem(
            f"the output is a page, so its name must end in .html (found {page}). Rename"
            f" it{picture}."
        )


def run(request: ExploreRequest) -> Summary:
    """Explore and write the page."""
    sources = request.sources()
    inputs = tuple(source.found for source in sources)
    checked_place(request.output, request.overwrite, inputs)
    started = time.perf_counter()
    with warnings_as_lines(), Progress(request.hide) as progress:

        def say(what: str) -> None:
            raise_if_interrupted()
            progress.show(what)

        asked = prepared(request, sources)
        job = request.job(asked.request.arguments, read_tables(asked, say))
        found = job.explore(say)
        say("drawing")
        save(found, request.output, request.overwrite, request.hide(request.command), inputs)
    found = replace(found, why_none=tuple(map(request.hide, found.why_none)))
    return told(request, sources, Summary(_counted(found), None, time.perf_counter() - started))


def _counted(found: Exploration) -> Counted:
    values = {
        "left": found.rows[0].rows,
        "right": None if found.spec.is_one_stream else found.rows[1].rows,
        "candidates": found.candidates,
        "sample": None if found.sample.is_all else found.sample.events,
        "curve": found.curve.to_pylist(),
        "flat": found.flat,
        "why_none": list(found.why_none),
    }
    lines = [*head_of(found), *under("no pairs:", found.why_none)]
    if found.candidates:
        some = ", ".join(f"{found.pairs_at(at):,} at {at:g}" for at in (0.1, 0.5, 0.9, 1.0))
        lines += [("pairs", some), ("", flat_words(found))]
        lines += [("", words) for words in [clock_words(found)] if words]
    return Counted(values, lines)
