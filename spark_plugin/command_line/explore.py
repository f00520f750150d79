"""`coincide explore`, in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_plugin.command_line.event_inputs import checked_types, inputs_of, read_tables
from spark_plugin.command_line.explore_request import ExploreRequest
from spark_plugin.command_line.interruption import raise_if_interrupted
from spark_plugin.command_line.known_columns import with_known_columns
from spark_plugin.command_line.lines import warnings_as_lines
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.requests import lines_left_out
from spark_plugin.command_line.summary import skipped_lines
from spark_plugin.worker.exploration.exploration import Exploration
from spark_plugin.worker.exploration.exploring import TableExploration
from spark_plugin.worker.exploration.saving import check_places, save
from spark_plugin.worker.exploration.words import flat_words, head_of
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.pair_arguments import PairArguments


@dataclass(frozen=True)
class Explored:
    """What a finished exploration says of itself.

    Parameters
    ----------
    found : Exploration
    files : list of str
        That were written.
    seconds : float
    skipped : dict of str to int
        Lines of CSV that were left out, by input.
    """

    found: Exploration
    files: list[str]
    seconds: float
    skipped: dict[str, int]

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        found = self.found
        return {
            "output": self.files,
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
        files = [("output" if not i else "", file) for i, file in enumerate(self.files)]
        head = [*head_of(found), *skipped_lines(self.skipped)]
        return [*head, *named, ("seconds", f"{self.seconds:.2f}"), *files]


def _some_of_curve(found: Exploration) -> str:
    return ", ".join(f"{found.pairs_at(at):,} at {at:g}" for at in (0.1, 0.5, 0.9, 1.0))


def run_explore(request: ExploreRequest) -> Explored:
    """Explore and write the page, and pictures.

    Raises
    ------
    CoincideError
        For bad usage or bad data; no output is left then.
    """
    sources = request.sources()
    places = [place for place in (request.output, request.png) if place is not None]
    inputs = tuple(source.found for source in sources)
    check_places(places, request.overwrite, inputs)
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
        files = [
            file
            for place in places
            if found.candidates or place == request.output
            for file in save(found, place, request.overwrite, command, inputs)
        ]
    found = replace(found, why_none=tuple(map(request.hide, found.why_none)))
    names, seconds = [request.hide(file) for file in files], time.perf_counter() - started
    return Explored(found, names, seconds, lines_left_out(sources))


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
