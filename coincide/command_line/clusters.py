"""`coincide clusters`: which events of one input pairs connect, in this process."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.command_line.causality import CausalityRequest, condition_of, coordinates_of
from coincide.command_line.event_inputs import (
    checked_types,
    inputs_of,
    read_tables,
    with_known_columns,
)
from coincide.command_line.outputs import local_output
from coincide.command_line.problems import warnings_as_lines
from coincide.command_line.progress import Progress
from coincide.command_line.requests import checked, lines_left_out
from coincide.command_line.runs import finished, written
from coincide.command_line.summary import Finished
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.clusters import cluster_table
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.words import CLOCKS, keys, names, timestamps
from coincide.engine.reports.reports import JoinSummary, side_words
from coincide.model.errors import CoincideError, marked
from coincide.model.options import CorrelateOptions

_OPTIONS = ("unit", "tick", "invalid", "threads")
_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}


def request(**words: Any) -> CausalityRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide clusters`."""
    try:
        return _request({**words, **_OF_SPARK})
    except CoincideError as error:
        raise type(error)(marked(error).replace("--cause-", "--")) from None


def _request(words: dict[str, Any]) -> CausalityRequest:
    clock = {f"cause_{name}": words[name] for name in ("time", *CLOCKS)}
    place = words["place"]
    arguments = CausalityArguments(
        condition_of(words),
        cause_time=timestamps("cause", clock),
        cause_place=() if place is None else coordinates_of("--place", place),
        by=keys(words["by"]),
        case_fold=words["case_fold"],
        cause_columns=names("--columns", words["columns"] or ["id"]),
        effect_columns=(),
        how="semi",
        options=CorrelateOptions(**{name: words[name] for name in _OPTIONS}),
        is_one_stream=True,
        where=words["where"],
    )
    return CausalityRequest(
        causes=words["events"], effects=None, arguments=arguments, **checked(words, {})
    )


def run(request: CausalityRequest) -> Finished:
    """Find clusters and write the output."""
    sources = request.sources()
    with (
        warnings_as_lines(),
        Progress(request.hide) as progress,
        local_output(request, sources) as output,
    ):
        started = time.perf_counter()
        inputs = inputs_of(request, sources)
        request = with_known_columns(request, inputs)
        types = checked_types(request, inputs, _found)
        tables = read_tables(request, inputs, types, progress.show)
        progress.show("looking for clusters")
        found, summary = _found(request.arguments, tables)

        def say(rows: int) -> None:
            progress.show(f"writing: {rows:,} rows")

        rows = written(found.to_batches(), found.schema, output, say)
        output.publish()
        seconds = time.perf_counter() - started
    done = finished(request, "clusters", _counted(found, summary), rows, seconds)
    return replace(done, skipped=lines_left_out(sources))


def _found(arguments: PairArguments, tables: list[pa.Table]) -> tuple[pa.Table, JoinSummary]:
    assert isinstance(arguments, CausalityArguments)
    return cluster_table(tables[0], arguments)


def _counted(
    found: pa.Table, summary: JoinSummary
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """How many clusters there are, and events in them."""
    labels = found["cluster"].drop_null().to_numpy()
    sizes = np.unique(labels, return_counts=True)[1]
    several, alone = int((sizes > 1).sum()), int((sizes == 1).sum())
    largest, counts = int(sizes.max(initial=0)), summary.left
    assert counts is not None
    told = [f"{counts.rows:,} rows", *side_words(counts, summary.tick, summary.matchless)]
    values = {
        "events": asdict(counts), "clusters": several, "largest": largest, "alone": alone,
        "tick": summary.tick.unit,
    }  # fmt: skip
    words = f"{several:,} of two events or more, the largest of {largest:,}" if several else "none"
    return values, [("events", "; ".join(told)), ("clusters", words), ("alone", f"{alone:,}")]
