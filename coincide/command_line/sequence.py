"""`coincide sequence`, `coincide coincidence`: events of several inputs that belong together."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import pyarrow as pa

from coincide.command_line.event_inputs import (
    Types,
    tell_of_texts,
    time_of_nothing,
    types_of_unknown,
    with_like_texts,
)
from coincide.command_line.flags import twos
from coincide.command_line.interruption import raise_if_interrupted
from coincide.command_line.progress import Progress
from coincide.command_line.requests import InProcess, Request, checked
from coincide.command_line.summary import Counted, plain_counts
from coincide.engine.events.keys import parted, plain
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.files.arrow_inputs import arrow_input
from coincide.engine.files.finding import is_local
from coincide.engine.files.source import Source
from coincide.engine.join.text_options import (
    CLOCKS,
    OPEN,
    duration,
    keys_of_streams,
    names,
    options_of,
    timestamps,
)
from coincide.engine.sequences.arguments import (
    Streams,
    checked_least,
    closed_window,
    default_names,
    streams_of,
    windows_between,
    windows_of,
)
from coincide.engine.sequences.coincidences import CoincidenceArguments, CoincidenceJob
from coincide.engine.sequences.reports import SequenceSummary
from coincide.engine.sequences.tables import SequenceArguments, SequenceJob
from coincide.model.condition import Within, within
from coincide.model.errors import ConditionError, argument, said_of
from coincide.model.remembered import remembered
from coincide.model.threads import watched

_OF_SPARK: dict[str, Any] = {"engine": "local", "master": None, "conf": None}
_OF_INPUTS = ("time", "columns", *CLOCKS)
"""Options of an input."""
_LISTS = ("clock_by", "columns")
"""Those that hold names, and may be typed in parts."""
_WITH_SIGNS = ("clock_by", "clock", "templates")
"""Those whose values may have = in them: files, and keys with two names."""
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StreamsRequest(Request):
    """One search for events of several inputs that belong together."""

    streams: Streams
    """Their tables are the paths of the inputs, until these are read."""

    @property
    def inputs(self) -> dict[str, str]:  # noqa: D102
        return dict(zip(self.streams.names, self.streams.tables, strict=True))

    @property
    def most_pairs(self) -> int | None:  # noqa: D102
        return self.streams.options.max_pairs

    @property
    @abstractmethod
    def windows(self) -> Sequence[Within]:
        """What may pass between the events of two inputs that follow each other."""

    @abstractmethod
    def job(self, streams: Streams) -> SequenceJob | CoincidenceJob:
        """What answers it, of streams with tables; wrong columns show here, of tables without rows, too."""

    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:  # noqa: D102
        inputs = Inputs(self.streams, self.windows, sources)
        # Columns of texts that look like numbers may prove to be texts, once all of them are read.
        where = None if inputs.tests_guessed else self.streams.where
        self.job(replace(self.streams.with_tables(inputs.without_rows()), where=where))
        job = self.job(self.streams.with_tables(inputs.tables(progress.show)))
        progress.show(self.doing)

        def pulse(events: int) -> None:
            raise_if_interrupted()
            if events:
                progress.show(f"{self.doing}: {events:,} events have been compared")

        with watched(pulse):
            found = job.run()
        return InProcess(found.to_batches(), found.schema, partial(_counted, job.summary()))


@dataclass(frozen=True, kw_only=True)
class SequenceRequest(StreamsRequest):
    """One `coincide sequence`."""

    doing: ClassVar[str] = "looking for sequences"
    asked: SequenceArguments

    @property
    def windows(self) -> Sequence[Within]:  # noqa: D102
        return self.asked.windows

    def job(self, streams: Streams) -> SequenceJob:  # noqa: D102
        return SequenceJob(replace(self.asked, streams=streams))


@dataclass(frozen=True, kw_only=True)
class CoincidenceRequest(StreamsRequest):
    """One `coincide coincidence`."""

    doing: ClassVar[str] = "looking for coincidences"
    asked: CoincidenceArguments

    @property
    def windows(self) -> Sequence[Within]:  # noqa: D102
        return [self.asked.windows[i, i + 1] for i in range(len(self.streams) - 1)]

    def job(self, streams: Streams) -> CoincidenceJob:  # noqa: D102
        return CoincidenceJob(replace(self.asked, streams=streams))


def request(**words: Any) -> StreamsRequest:
    """Check what was typed and make a request of it.

    Keywords are the options of `coincide sequence`, or, with `at_least`, of `coincide coincidence`.
    """
    return _coincidences(words) if "at_least" in words else _sequences(words)


def _sequences(words: dict[str, Any]) -> SequenceRequest:
    streams, total = _streams(words), words["total"]
    asked = SequenceArguments(
        streams=streams,
        windows=windows_of([_window("within", two) for two in twos(words["within"])], streams),
        total=None if total is None else closed_window(_window("total", total), "total"),
        **{name: words[name] for name in ("how", "emit", "prefer", "probability", "link_probability")},
    )  # fmt: skip
    return SequenceRequest(streams=streams, asked=asked, **checked({**words, **_OF_SPARK}, {}))


def _coincidences(words: dict[str, Any]) -> CoincidenceRequest:
    streams = _streams(words)
    asked = CoincidenceArguments(
        streams=streams, windows=windows_between(duration("within", words["within"]), streams),
        at_least=checked_least(words["at_least"], streams), probability=words["probability"],
    )  # fmt: skip
    return CoincidenceRequest(streams=streams, asked=asked, **checked({**words, **_OF_SPARK}, {}))


def _window(option: str, two: tuple[str, str]) -> Within:
    lo, hi = (None if end.lower() == OPEN else duration(option, end) for end in two)
    with said_of(option):
        return within(lo, hi)


def _streams(words: dict[str, Any]) -> Streams:
    """What is said of the inputs, whose tables are their paths."""
    given = words["inputs"]
    called = default_names(len(given)) if words["names"] is None else names("names", words["names"])
    said = {option: _of_each(option, words[option], called) for option in _OF_INPUTS}
    # One path that is typed twice is one table.
    paths = {path: path for path in given}
    return streams_of(
        [paths[path] for path in given], called,
        {name: _times({option: of[name] for option, of in said.items()}) for name in called},
        keys_of_streams(words["by"]),
        {name: names("columns", said["columns"][name] or ["id"]) for name in called},
        words["confidence"], words["backend"], options_of(words), words["where"],
        tuples="set" if "at_least" in words else "sequence",
    )  # fmt: skip


def _of_each(option: str, words: Sequence[str] | None, called: Sequence[str]) -> dict[str, Any]:
    """What an option says of each input: its own where it is named, else what is said of all."""
    common: list[str] = []
    own: dict[str, list[str]] = {name: [] for name in called}
    for word in words or ():
        name, value = _of_one(option, word, called)
        (common if name is None else own[name]).append(value)
    found = {name: own[name] or common or None for name in called}
    if option in _LISTS:
        return found
    return {name: each and each[-1] for name, each in found.items()}


def _of_one(option: str, word: str, called: Sequence[str]) -> tuple[str | None, str]:
    """The input that a word speaks of, None of all, and what it says."""
    first, *others = parted(word, "=")
    if not others:
        return None, word
    if plain(first) in called:
        return plain(first), word[len(first) + 1 :]
    if option in _WITH_SIGNS:
        return None, word
    raise ConditionError(
        f"{argument(option)} takes a value for all inputs, or NAME=VALUE for one of"
        f" {', '.join(called)} (found {word!r}). Name one of these, or write a column with = in it in"
        " double quotes."
    )


def _times(said: Mapping[str, Any]) -> GivenTimes:
    return timestamps("", {option: value for option, value in said.items() if value is not None})


class Inputs:
    """The inputs of streams: the columns that are needed of each. What is several of them is read once."""

    def __init__(
        self, streams: Streams, windows: Sequence[Within], sources: Sequence[Source]
    ) -> None:
        self._links = [streams.link(i, i + 1, window) for i, window in enumerate(windows)]
        of = [(link, 0) for link in self._links] + [(self._links[-1], 1)]
        self._clocks = [link.clocks[at] for link, at in of]
        self._keys = list(zip(*streams.keys, strict=True))
        is_fine = "ns" in (streams.options.unit, streams.options.tick)
        self._own = [
            arrow_input(source, is_fine, tuple(link.time_columns[at]), numbered=link.numbered[at])
            for source, (link, at) in zip(sources, of, strict=True)
        ]
        known = streams.settled([given.schema for given in self._own])
        self._columns = [
            list(dict.fromkeys([*link.columns[at], *tested]))
            for (link, at), tested in zip(of, known.tested, strict=True)
        ]
        self._tested = known.tested
        files = list(map(_files_of, sources))
        self._first = list(map(files.index, files))

    @remembered
    def _types(self) -> list[Types]:
        """Types of columns of which no file tells them."""
        told = zip(self._own, self._columns, strict=True)
        schemas = [given.told(columns) for given, columns in told]
        of_nothing = partial(time_of_nothing, self._links)
        return types_of_unknown(self._clocks, self._keys, schemas, of_nothing)

    def without_rows(self) -> tuple[pa.Table, ...]:
        """Tables of the columns alone: what is wrong with these shows before rows are read."""
        needed = zip(self._own, self._columns, self._types, strict=True)
        empty = [given.typed(columns, types).empty_table() for given, columns, types in needed]
        return tuple(with_like_texts(self._own, empty, self._keys))

    @property
    def tests_guessed(self) -> bool:
        """Whether a condition is on columns of CSV whose types are guessed from its beginning."""
        return any(
            set(given.guessed(table.schema)).intersection(tested)
            for given, table, tested in zip(
                self._own, self.without_rows(), self._tested, strict=True
            )
        )

    def tables(self, say: Callable[[str], None]) -> tuple[pa.Table, ...]:
        """All rows; inputs of the same files are one table."""
        read = {}
        for first in dict.fromkeys(self._first):
            say(f"reading {self._own[first].source.text}")
            read[first] = self._read(first)
        before = [read[first] for first in self._first]
        after = with_like_texts(self._own, before, self._keys)
        tell_of_texts(self._own, before, after, self._keys, "in")
        whole = {first: _merged(table, self._of(first, after)) for first, table in read.items()}
        return tuple(whole[first] for first in self._first)

    def _of(self, first: int, each: Sequence[T]) -> list[T]:
        """What there is for the inputs of the same files."""
        return [one for one, own in zip(each, self._first, strict=True) if own == first]

    def _read(self, first: int) -> pa.Table:
        """The rows of some files, with the columns that any of their inputs needs."""
        same = self._of(first, self._own)
        times = dict.fromkeys(name for given in same for name in given.times)
        columns = dict.fromkeys(name for own in self._of(first, self._columns) for name in own)
        types = {name: kind for own in self._of(first, self._types) for name, kind in own.items()}
        numbered = any(given.numbered for given in same)
        return replace(same[0], times=tuple(times), numbered=numbered).table([*columns], types)


def _files_of(source: Source) -> tuple[str, ...]:
    """What tells files apart, however their paths are written."""
    found = source.found
    place = os.path.realpath if is_local(found.filesystem) else str
    return (found.filesystem.type_name, *map(place, found.paths))


def _merged(table: pa.Table, changed: Sequence[pa.Table]) -> pa.Table:
    """A table with the columns that some copies of it have in another type."""
    found = table
    for each in changed:
        for i, field in enumerate(each.schema):
            if field.type != table.schema.field(i).type:
                found = found.set_column(i, field, each.column(i))
    return found


def _counted(summary: SequenceSummary) -> Counted:
    """What was found, in plain values and in lines."""
    values: dict[str, object] = {
        "streams": {name: plain_counts(counts) for name, counts in summary.streams.items()},
        "links": dict(summary.links), "tried": summary.tried, "doubted": summary.doubted,
        "found": summary.found, "why_none": summary.why_none or None, "tick": summary.tick.unit,
    }  # fmt: skip
    return Counted(values, summary.lines)
