"""The arguments of sequences and coincidences, checked before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from string import ascii_lowercase
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from coincide.engine.events.frames import TABLES, kind_of, offers_arrow
from coincide.engine.events.keys import check_names, is_all_columns, names_of
from coincide.engine.events.schemas import type_of
from coincide.engine.events.spans import Spans
from coincide.engine.events.timestamp_names import GivenTimes, timestamp_names
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import GivenWindow, window_of
from coincide.engine.join.pair_columns import PairColumns
from coincide.engine.join.pair_filter import (
    GivenWhere,
    PairFilter,
    Where,
    check_where,
    where_of,
)
from coincide.model.condition import Confidence, TimingCondition, Within, checked_confidence
from coincide.model.errors import ConditionError, SchemaError, argument, brief, call, said_of
from coincide.model.options import (
    Backend,
    CorrelateOptions,
    check_choice,
    check_options,
    check_truth,
)
from coincide.model.units import Duration

_LONG = ("0s", "1h")
MOST_STREAMS = 8
"""The most streams of uncertain times: the more there are, the less floats tell of the whole."""

MOST_CHOICES = 12
"""The most streams of which some make a set: each stream more doubles the choices."""

SequenceHow = Literal["inner", "anti"]
SequenceEmit = Literal["sequences", "counts", "best"]
SequencePrefer = Literal["probability", "first", "last"]
TimesOfAll = GivenTimes | Mapping[str, GivenTimes]
ColumnsOfAll = str | Sequence[str] | Mapping[str, str | Sequence[str]]
WidthOrWindows = Duration | Mapping[tuple[str, str], GivenWindow]
KeysOfAll = str | Sequence[str | Sequence[str]]
DurationsOfAll = Duration | Mapping[str, Duration]


Tuples = Literal["sequence", "set"]
"""What the events of all streams make together."""
Places = tuple[int, int]
"""Two streams by their numbers, the smaller one first."""


@dataclass(frozen=True)
class LinkArguments(JoinArguments):
    """The join of a stream with the next, which are called as users call them.

    `needs` are the columns of both that the condition on tuples needs. Until these are known, `words` are
    those of the condition, in which they are named.
    """

    called: tuple[str, str] = field(default=("a", "b"), kw_only=True)
    needs: tuple[tuple[str, ...], tuple[str, ...]] = field(default=((), ()), kw_only=True)
    words: str | None = field(default=None, kw_only=True)

    @property
    def prefixes(self) -> tuple[str, str]:  # type: ignore[override]
        """As in `PairArguments`."""
        return self.called

    @property
    def said_where(self) -> tuple[str, str]:
        """As in `PairArguments`."""
        return f"in {self.called[0]}", f"in {self.called[1]}"

    @property
    def tested(self) -> tuple[list[str], list[str]]:
        """As in `PairArguments`: what the condition on tuples needs."""
        own, others = map(list, self.needs)
        return own, others

    @property
    def is_open(self) -> bool:
        """As in `PairArguments`."""
        return self.words is not None

    @property
    def words_of_needed(self) -> str | None:
        """As in `PairArguments`."""
        return self.words

    @property
    def _names_of_columns(self) -> list[str]:
        return ["left_columns", "right_columns"]


@dataclass(frozen=True, kw_only=True)
class Streams:
    """The streams of a sequence or coincidence, in their order, and what is the same for all links.

    `twins` are places that have the same events: one table, with the same times. `longest` are the declared
    lengths of their timestamps, if any are.
    """

    tables: tuple[Any, ...]
    names: tuple[str, ...]
    times: tuple[GivenTimes, ...]
    keys: tuple[tuple[str, ...], ...]
    columns: tuple[tuple[str, ...], ...]
    twins: tuple[Places, ...]
    confidence: float
    backend: Backend
    options: CorrelateOptions
    where: GivenWhere | Where | PairFilter = None
    tuples: Tuples = "sequence"
    longest: tuple[Duration | None, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.where, (Where, PairFilter)):
            check_where(self.where, self.where_columns)

    def __len__(self) -> int:
        return len(self.names)

    def columns_of(self, count: int) -> list[str]:
        """Names of the output columns of keys and of the first streams."""
        own = zip(self.names[:count], self.columns, strict=False)
        return [*self.keys[0], *(f"{name}_{column}" for name, each in own for column in each)]

    def with_tables(self, tables: Sequence[Any]) -> Streams:
        """The same streams in other tables."""
        return replace(self, tables=tuple(tables), twins=_twins(tables, self.times))

    @property
    def where_columns(self) -> PairColumns:
        """What `where` may be on."""
        return PairColumns(self.names, called=self.tuples)

    @property
    def is_open(self) -> bool:
        """Whether it takes the columns of all streams to know which ones `where` needs."""
        return not (self.where is None or isinstance(self.where, (Where, PairFilter)))

    @property
    def are_typed(self) -> bool:
        """Whether `where`, if there is one, can be computed."""
        return self.where is None or isinstance(self.where, PairFilter)

    @property
    def tested(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each stream that `where` needs, once that is known."""
        where = self.where.where if isinstance(self.where, PairFilter) else self.where
        return where.sides if isinstance(where, Where) else ((),) * len(self)

    def settled(self, schemas: Sequence[pa.Schema]) -> Streams:
        """The same for streams of these columns: it is known then which ones `where` needs."""
        if not self.is_open:
            return self
        assert not isinstance(self.where, (Where, PairFilter))
        clocks = [timestamp_names("time", each).clocks for each in self.times]
        return replace(self, where=where_of(self.where, schemas, self.where_columns, clocks))

    def typed(self, schemas: Sequence[pa.Schema]) -> Streams:
        """The same for streams of columns of these types: `where` is checked, and can be computed."""
        settled = self.settled(schemas)
        if not isinstance(settled.where, Where):
            return settled
        of_each = zip(schemas, self.names, settled.tested, strict=True)
        kinds = [[type_of(schema, called, name) for name in own] for schema, called, own in of_each]
        return replace(settled, where=PairFilter(settled.where, tuple(kinds)))

    @property
    def are_exact(self) -> bool:
        """Whether all times are instants, by how they are named."""
        return are_exact_times(self.times)

    def link(self, left: int, right: int, window: Within) -> LinkArguments:
        """The join of two of them."""
        pair, options = (left, right), self.options
        if self.longest:
            own, other = (self.longest[each] for each in pair)
            options = replace(options, left_longest=own, right_longest=other)
        return LinkArguments(
            TimingCondition(window, self.confidence),
            left_time=self.times[left], right_time=self.times[right],
            left_columns=self.columns[left], right_columns=self.columns[right],
            by=list(zip(*(self.keys[each] for each in pair), strict=True)),
            backend=self.backend, options=options,
            called=(self.names[left], self.names[right]),
            needs=(self.tested[left], self.tested[right]),
            words=str(self.where) if self.is_open else None,
        )  # fmt: skip


def _twins(tables: Sequence[Any], times: Sequence[GivenTimes]) -> tuple[Places, ...]:
    places = combinations(range(len(tables)), 2)
    return tuple((i, j) for i, j in places if tables[i] is tables[j] and times[i] == times[j])


def are_exact_times(times: Sequence[GivenTimes]) -> bool:
    """Whether each has one column, or is about it by nothing."""
    return all(timestamp_names("time", each).is_exact for each in times)


CheckTable = Callable[[object, str], None]
"""Refuses what cannot be a table of that name."""


def check_table(given: object, name: str) -> None:
    """Refuse what is no table."""
    if not offers_arrow(given):
        raise SchemaError(f"{name} must be {TABLES} (found {kind_of(given)}).")


def streams_of(
    tables: Sequence[Any] | Mapping[str, Any],
    names: Sequence[str] | None,
    time: TimesOfAll,
    by: KeysOfAll,
    columns: ColumnsOfAll,
    confidence: Confidence | None,
    backend: Backend,
    options: CorrelateOptions,
    where: GivenWhere = None,
    check: CheckTable = check_table,
    tuples: Tuples = "sequence",
) -> Streams:
    """What was given of all streams, checked; `tuples` is what events of them make."""
    names, given = _named(tables, names, check)
    times = tuple(_of_each(time, names, "time", ("min_time", "max_time")))
    check_options(options, CorrelateOptions)
    _check_options(options)
    for name, each in zip(names, times, strict=True):
        if isinstance(each, Spans):
            raise ConditionError(
                f"{argument('time')} of {name} says that events last, and windows are between"
                f" instants (found {each}). Name the column of starts or of ends."
            )
    if confidence is None:
        if not are_exact_times(times):
            raise ConditionError(
                f"{argument('confidence')} is missing, which uncertain times need. Give it, such as"
                f" {argument('confidence', 0.9)}, or name one column of exact times."
            )
        confidence = 1.0
    elif not are_exact_times(times) and len(names) > MOST_STREAMS:
        raise ConditionError(
            f"a {tuples} of uncertain times has {MOST_STREAMS} streams at most (found {len(names)}). Use"
            " exact times, such as midpoints."
        )
    return Streams(
        tables=given, names=names, times=times, keys=_keys(by, names), twins=_twins(given, times),
        columns=tuple(map(_columns, _of_each(columns, names, "columns", ("id",)))),
        confidence=checked_confidence(confidence), backend=backend, options=options, where=where,
        tuples=tuples,
    )  # fmt: skip


def _named(
    tables: Sequence[Any] | Mapping[str, Any],
    names: Sequence[str] | None,
    check: CheckTable,
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    if isinstance(tables, Mapping) and names is None:
        if tables and all(isinstance(each, _COLUMNS) for each in tables.values()):
            raise SchemaError(
                f"{argument('tables')} is one table (found its columns {', '.join(map(str, tables))})."
                " Give a list of tables, or a dict of them by name."
            )
        names, given = tuple(tables), tuple(tables.values())
    elif isinstance(tables, (list, tuple)):
        given = tuple(tables)
        asked: Any = default_names(len(given)) if names is None else names
        names = tuple(asked) if isinstance(asked, (list, tuple)) else (asked,)
    else:
        is_named = isinstance(tables, Mapping)
        found = f"a dict and {argument('names')}" if is_named else kind_of(tables)
        cure = f" Remove {argument('names')}, or give a list." if is_named else ""
        raise SchemaError(
            f"{argument('tables')} must be a list of tables, or a dict of them by name (found {found})."
            f"{cure}"
        )
    if len(given) < 2:
        raise ConditionError(
            f"{argument('tables')} needs two streams or more (found {len(given)}). Add another one."
        )
    wrong = [name for name in names if not (isinstance(name, str) and name)]
    if wrong or len(set(names)) < len(names) or len(names) != len(given):
        raise ConditionError(
            f"{argument('names')} must be {len(given)} different names, one for each table (found"
            f" {brief(list(names))}). Write {argument('names', ('click', 'cart', 'pay'))}."
        )
    for name, each in zip(names, given, strict=True):
        check(each, name)
    # What can be read but once is read once, however often it is given.
    readers = {id(each): each for each in given if isinstance(each, pa.RecordBatchReader)}
    read = {number: each.read_all() for number, each in readers.items()}
    return names, tuple(read.get(id(each), each) for each in given)


_COLUMNS = list, tuple, np.ndarray, pa.Array, pa.ChunkedArray
"""What columns of a table may be, and tables are not."""


def default_names(count: int) -> tuple[str, ...]:
    """What streams are called that have no names: letters, or numbers where there are more streams."""
    has_letters = count <= len(ascii_lowercase)
    return tuple(ascii_lowercase[:count] if has_letters else (f"s{k}" for k in range(count)))


def _of_each(given: Any, names: Sequence[str], called: str, usual: Any) -> list[Any]:
    """What was given for all streams, or by the names of some; the others have what is usual."""
    if not isinstance(given, Mapping):
        return [given] * len(names)
    wrong = [name for name in given if name not in names]
    if wrong:
        raise ConditionError(
            f"{argument(called)} names streams, which are {', '.join(names)} (found {brief(wrong[0])})."
            " Correct the name."
        )
    return [given.get(name, usual) for name in names]


def _columns(given: str | Sequence[str]) -> tuple[str, ...]:
    check_names("columns", given)
    names = tuple(names_of(given))
    if is_all_columns(given) or is_all_columns(names):
        raise ConditionError(
            f"{argument('columns')} takes names (found '*'). Name the columns, or give those of each"
            f" stream, such as {argument('columns', {'click': ['id', 'page']})}."
        )
    return names


def _keys(by: KeysOfAll, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The key columns of each stream."""
    found: list[tuple[str, ...]] = []
    for key in by if isinstance(by, (list, tuple)) else [by]:
        each: Any = (key,) * len(names) if isinstance(key, str) else key
        is_list = isinstance(each, (list, tuple)) and len(each) == len(names)
        if not is_list or not all(isinstance(name, str) for name in each):
            raise ConditionError(
                f"a key in {argument('by')} is one name, or one for each of {len(names)} streams (found"
                f" {brief(key)}). Write {argument('by', 'user')}, or"
                f" {argument('by', [('user', 'uid', 'user')])}."
            )
        found.append(tuple(each))
    return tuple(tuple(key[i] for key in found) for i in range(len(names)))


def _check_options(options: CorrelateOptions) -> None:
    """Refuse options of two sides."""
    for name in ("left_unit", "right_unit", "left_longest", "right_longest"):
        if getattr(options, name) is not None:
            is_unit = name.endswith("unit")
            cure = f"Give {argument('unit')}, and bring all times to it" if is_unit else "Remove it"
            raise ConditionError(
                f"{argument(name)} is said of two sides, and these are streams in a row (found"
                f" {getattr(options, name)!r}). {cure}."
            )


def _is_window(given: object) -> bool:
    return isinstance(given, (tuple, list, Within))


def windows_of(given: Sequence[GivenWindow], streams: Streams) -> tuple[Within, ...]:
    """A window for each step of a sequence."""
    if isinstance(given, (str, Within)) or not isinstance(given, Sequence):
        given = [given]
    steps = len(streams) - 1
    if isinstance(given, tuple) and len(given) == 2 and not any(map(_is_window, given)):
        raise ConditionError(
            f"{argument('windows')} has a window for each step, and these are two ends of one (found"
            f" {brief(given)}). Write {argument('windows', [given] * steps)}, or a list of two durations."
        )
    if len(given) != steps:
        raise ConditionError(
            f"{argument('windows')} needs one window for each step, which are {steps}: from"
            f" {' to '.join(streams.names)} (found {len(given)}). For two steps write"
            f" {argument('windows', [('0s', '5s'), ('0s', '1h')])}."
        )
    return tuple(
        _closed(each, f"{argument('windows')} from {a} to {b}", argument("windows", [_LONG]))
        for each, (a, b) in zip(given, pairwise(streams.names), strict=True)
    )


def closed_window(given: GivenWindow, name: str) -> Within:
    """A window with two ends."""
    return _closed(given, argument(name), argument(name, _LONG))


def _closed(given: GivenWindow, called: str, such_as: str) -> Within:
    with said_of(called):
        window = window_of(given)
    if window.is_open:
        raise ConditionError(
            f"{called} needs both ends, or all later events would be in it (found {window}). Give the"
            f" longest that may pass, such as {such_as}."
        )
    return window


def windows_between(given: WidthOrWindows, streams: Streams) -> dict[Places, Within]:
    """The window of any two events of a coincidence, by their streams."""
    places = list(combinations(range(len(streams)), 2))
    if isinstance(given, Mapping):
        return {pair: _window_between(given, streams, pair) for pair in places}
    if isinstance(given, (tuple, list, Within)):
        raise ConditionError(
            f"{argument('within')} is the longest time between any two events of a coincidence, one"
            f" duration such as '50ms', or a window for each pair of streams (found {brief(given)}). For"
            f" events in order use {call('sequence_tables')}."
        )
    return dict.fromkeys(places, closed_window(given, "within"))


def _window_between(
    given: Mapping[tuple[str, str], GivenWindow], streams: Streams, pair: Places
) -> Within:
    names = tuple(streams.names[each] for each in pair)
    found = [each for each in given if each in (names, names[::-1])]
    if len(found) != 1 or len(given) != len(streams) * (len(streams) - 1) // 2:
        told = f" (found {len(found)} for {' and '.join(names)}, and {len(given)} in all)"
        raise ConditionError(
            f"{argument('within')} by pair needs one window for each two of"
            f" {', '.join(streams.names)}{told}. Write within={{{names}: '10ms', ...}}."
        )
    window = closed_window(given[found[0]], f"within[{found[0]}]")
    return window if found[0] == names else window.mirrored()


def checked_least(at_least: int | None, streams: Streams) -> int:
    """The least number of streams that have an event in a coincidence; all if none is given."""
    most = len(streams)
    if at_least is None:
        return most
    if isinstance(at_least, bool) or not isinstance(at_least, int) or not 2 <= at_least <= most:
        raise ConditionError(
            f"{argument('at_least')} is a number of streams from 2 to {most} (found {at_least!r})."
        )
    if at_least < most and most > MOST_CHOICES:
        raise ConditionError(
            f"sets of some of many streams take {MOST_CHOICES} streams at most (found {most}). Ask for all"
            f" of them by {argument('at_least', most)}, or for those of fewer streams."
        )
    return at_least


def check_apart(streams: Streams) -> None:
    """Refuse one table at two places of a coincidence."""
    for i, j in streams.twins:
        raise ConditionError(
            f"a coincidence has different streams (found one table as {streams.names[i]} and as"
            f" {streams.names[j]}). Give each stream once. {call('correlate_tables')} of one table finds"
            " pairs within it."
        )


def check_question(how: str, emit: str, prefer: str, probability: bool, links: bool) -> None:
    """Refuse what has no meaning together."""
    check_choice("how", how, get_args(SequenceHow))
    check_choice("emit", emit, get_args(SequenceEmit))
    check_choice("prefer", prefer, get_args(SequencePrefer))
    for name, asked in (("probability", probability), ("link_probability", links)):
        check_truth(name, asked)
        if asked and (how == "anti" or emit == "counts"):
            what = argument("how", how) if how == "anti" else argument("emit", emit)
            raise ConditionError(
                f"{what} gives no sequence, so there is no probability. Remove {argument(name, True)}."
            )
    if how == "anti" and emit != "sequences":
        raise ConditionError(
            f"{argument('how', how)} gives the first events that begin no sequence. Remove"
            f" {argument('emit', emit)}."
        )
    if prefer != "probability" and emit != "best":
        raise ConditionError(
            f"{argument('prefer', prefer)} chooses the best sequence of a first event. Add"
            f" {argument('emit', 'best')}, or remove {argument('prefer')}."
        )
