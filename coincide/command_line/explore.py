"""`coincide explore`, in this process."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from coincide.command_line.event_inputs import (
    checked_types,
    inputs_of,
    read_tables,
    with_known_columns,
)
from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.join import JoinRequest
from coincide.command_line.join import request as join_request
from coincide.command_line.options import EXPLORE, JOIN
from coincide.command_line.problems import Problem, warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.requests import lines_left_out
from coincide.command_line.summary import skipped_lines
from coincide.engine.exploration.counting import (
    Exploration,
    ExploreArguments,
    TableExploration,
)
from coincide.engine.exploration.drawing import checked_place, flat_words, head_of, is_page, save
from coincide.engine.files.source import Source
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.words import numbers


@dataclass(frozen=True)
class Explored:
    """What a finished exploration says of itself."""

    found: Exploration
    output: str
    seconds: float
    skipped: dict[str, int]

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        found = self.found
        return {
            "output": [self.output],
            "engine": "local",
            "left": found.rows[0].rows,
            "right": None if found.spec.is_one_stream else found.rows[1].rows,
            "candidates": found.candidates,
            "sample": None if found.sample.is_all else found.sample.events,
            "curve": found.curve.to_pylist(),
            "flat": found.flat,
            "why_none": list(found.why_none),
            **({"lines_left_out": self.skipped} if self.skipped else {}),
            "seconds": round(self.seconds, 3),
        }

    def lines(self) -> list[tuple[str, str]]:
        """Names and what there is to say, for people."""
        found = self.found
        named = [("no pairs:" if not i else "", words) for i, words in enumerate(found.why_none)]
        if found.candidates:
            named.append(("pairs", _some_of_curve(found)))
            named.append(("", flat_words(found)))
        head = [*head_of(found), *skipped_lines(self.skipped)]
        return [*head, *named, ("seconds", f"{self.seconds:.2f}"), ("output", self.output)]


def _some_of_curve(found: Exploration) -> str:
    return ", ".join(f"{found.pairs_at(at):,} at {at:g}" for at in (0.1, 0.5, 0.9, 1.0))


def run(request: ExploreRequest) -> Explored:
    """Explore and write the page."""
    sources = request.sources()
    inputs = tuple(source.found for source in sources)
    checked_place(request.output, request.overwrite, inputs)
    started = time.perf_counter()
    with Progress(request.hide) as progress:
        request, tables = _tables(request, sources, progress)
        job = TableExploration(tables, request.explore)

        def say(what: str) -> None:
            raise_if_interrupted()
            progress.show(what)

        with warnings_as_lines():
            found = job.explore(say)
        say("drawing")
        command = request.hide(request.command)
        save(found, request.output, request.overwrite, command, inputs)
    found = replace(found, why_none=tuple(map(request.hide, found.why_none)))
    seconds = time.perf_counter() - started
    return Explored(found, request.hide(request.output), seconds, lines_left_out(sources))


def _tables(
    request: ExploreRequest, sources: list[Source], progress: Progress
) -> tuple[ExploreRequest, list[pa.Table]]:
    """The request for the columns that are there, and the tables that it asks for."""
    inputs = inputs_of(request, sources)
    request = with_known_columns(request, inputs)

    def check(join: PairArguments, tables: list[pa.Table]) -> None:
        TableExploration(tables, request.of(join).explore)

    def say(what: str) -> None:
        raise_if_interrupted()
        progress.show(what)

    types = checked_types(request, inputs, check)
    return request, read_tables(request, inputs, types, say)


_OWN = ("confidences", "most_pairs")
_PLAIN = ("left", "right")


@dataclass(frozen=True, kw_only=True)
class ExploreRequest(JoinRequest):
    """One `coincide explore`."""

    explore: ExploreArguments
    command: str

    def of(self, arguments: PairArguments) -> ExploreRequest:  # noqa: D102
        assert isinstance(arguments, JoinArguments)
        explore = replace(self.explore, join=arguments)
        return replace(self, arguments=arguments, explore=explore)


def request(**words: Any) -> ExploreRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide explore`."""
    if words["engine"] != "local":
        raise Problem(
            "coincide explore runs in one process, and looks at a sample where there is too much; leave"
            " --engine out"
        )
    own = {name: words[name] for name in _OWN}
    _check_output(words["output"])
    # What the join is told beyond, it is told nothing of here.
    others = {each.name: each.default for each in JOIN}
    shared = {name: word for name, word in words.items() if name not in _OWN}
    request = join_request(**{**others, **shared})
    join = replace(request.arguments, left_columns=(), right_columns=(), probability=True)
    given = {} if own["confidences"] is None else {
        "confidences": tuple(numbers("--confidences", own["confidences"]))
    }  # fmt: skip
    explore = ExploreArguments(join, most_pairs=own["most_pairs"], **given)
    fields = {name: getattr(request, name) for name in JoinRequest.__dataclass_fields__}
    return ExploreRequest(
        **{**fields, "arguments": join},
        explore=explore, command=_command(words),
    )  # fmt: skip


def _check_output(page: str) -> None:
    if not page.strip():
        raise Problem("the output has no name; say where to write the page, with -o")
    if not is_page(page):
        picture = ", and make pictures in Python, by Exploration.save" * page.lower().endswith(
            ".png"
        )
        raise Problem(
            f"the output is a page, but {page} is named otherwise; end it in .html{picture}"
        )


def _command(words: dict[str, Any]) -> str:
    """What was typed, in one order; what stands at its default is left out."""
    defaults = {each.name: each.default for each in EXPLORE}
    typed = ["coincide", "explore", *(words[name] for name in _PLAIN if words[name] is not None)]
    for name, word in words.items():
        if name in _PLAIN or word == defaults[name]:
            continue
        option = "-o" if name == "output" else f"--{name.replace('_', '-')}"
        if isinstance(word, bool):
            typed.append(option)
        elif isinstance(word, list):
            typed += [option, ",".join(word)]
        else:
            typed += [option, *map(str, word if isinstance(word, tuple) else [word])]
    return shlex.join(typed)
