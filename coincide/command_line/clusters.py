"""`coincide clusters`: which events of one input pairs connect, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from coincide.command_line.causality import condition_of, coordinates_of
from coincide.command_line.event_inputs import prepared, read_tables
from coincide.command_line.progress import Progress
from coincide.command_line.requests import EventRequest, InProcess, checked
from coincide.command_line.summary import Counted, plain_counts
from coincide.engine.causality.arguments import CausalityArguments
from coincide.engine.causality.clusters import cluster_table
from coincide.engine.files.source import Source
from coincide.engine.join.pair_arguments import EVENT, PairArguments
from coincide.engine.join.text_options import keys, names, options_of, timestamps
from coincide.engine.reports.join_report import JoinSummary, side_words

_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}


@dataclass(frozen=True, kw_only=True)
class ClusterRequest(EventRequest):
    """One `coincide clusters`."""

    doing: ClassVar[str] = "looking for clusters"
    events: str
    arguments: CausalityArguments

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return {EVENT: self.events}

    def job(  # noqa: D102
        self, arguments: PairArguments, tables: list[pa.Table]
    ) -> tuple[pa.Table, JoinSummary]:
        assert isinstance(arguments, CausalityArguments)
        return cluster_table(tables[0], arguments)

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        asked = prepared(self, sources)
        tables = read_tables(asked, progress.show)
        progress.show(self.doing)
        found, summary = self.job(asked.request.arguments, tables)
        return InProcess(found.to_batches(), found.schema, partial(_counted, found, summary))


def request(**words: Any) -> ClusterRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide clusters`."""
    place = words["place"]
    arguments = CausalityArguments(
        condition_of(words),
        cause_time=timestamps("", words),
        cause_place=() if place is None else coordinates_of("--place", place),
        by=keys(words["by"]),
        cause_columns=names("--columns", words["columns"] or ["id"]),
        effect_columns=(),
        how="semi",
        options=options_of(words),
        is_one_stream=True,
        where=words["where"],
    )
    return ClusterRequest(
        events=words["events"], arguments=arguments, **checked({**words, **_OF_SPARK}, {})
    )


def _counted(found: pa.Table, summary: JoinSummary) -> Counted:
    """How many clusters there are, and events in them."""
    labels = found["cluster"].drop_null().to_numpy()
    sizes = np.unique(labels, return_counts=True)[1]
    several, alone = int((sizes > 1).sum()), int((sizes == 1).sum())
    largest, counts = int(sizes.max(initial=0)), summary.left
    assert counts is not None
    told = [f"{counts.rows:,} rows", *side_words(counts, summary.tick, summary.matchless)]
    values: dict[str, object] = {
        "events": plain_counts(counts), "clusters": several, "largest": largest, "alone": alone,
        "tick": summary.tick.unit,
    }  # fmt: skip
    words = f"{several:,} of two events or more, the largest of {largest:,}" if several else "none"
    return Counted(
        values, [("events", "; ".join(told)), ("clusters", words), ("alone", f"{alone:,}")]
    )
