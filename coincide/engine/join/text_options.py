"""A join from options that are texts: those of the command line, and of the data source."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

from coincide.engine.events.corrected import FITTED, CorrectedClock, named_clock
from coincide.engine.events.keys import Key, parted, plain
from coincide.engine.events.spans import spans
from coincide.engine.events.time_arguments import around, histograms, resolution
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import are_exact, check_open_exact, condition_of
from coincide.model import condition
from coincide.model.aggregates import FUNCTIONS, GivenAggregate
from coincide.model.aggregates import OPTION as AGGREGATES
from coincide.model.condition import ANY_CHANCE, Closed, TimingCondition, Within
from coincide.model.errors import ConditionError, argument, said_of
from coincide.model.options import MOST_PROBABLE, CorrelateOptions, check_choice
from coincide.model.relations import (
    RELATIONS,
    Allen,
    SpanRelation,
    containing,
    following,
    inside,
    overlapping,
    relation,
)
from coincide.model.sides import SIDES
from coincide.model.units import Duration, parse_duration

_CLOCKS = ("around", "resolution", "template", "templates", "around_column", "clock")
_OF_CLOCKS = ("clock_by", "clock_around")
"""Options of a side that belong to the errors of its clock, without the side."""
CLOCKS = (*_CLOCKS, "around_unit", *_OF_CLOCKS)
"""Options of a side that say what its stamps mean, without the side."""
_OF_ENDS = ("around", "clock", *_OF_CLOCKS)
"""Those that starts and ends of spans take as well."""
_OPTIONS = (
    "unit", "tick", "invalid", "slices", "batch_pairs", "max_pairs", "classes", "threads", "way",
    "devices",
)  # fmt: skip
_AS_GIVEN = (
    "how", "emit", "probability", "backend", "k", "ties", "matching", "largest_group",
    "where", "weights", "including",
)  # fmt: skip
TEXTS = (
    "left_time", "right_time", "left_around", "right_around", "left_resolution", "right_resolution",
    "left_around_column", "right_around_column", "left_around_unit", "right_around_unit",
    "left_template", "right_template", "left_templates",
    "right_templates", "unit", "left_unit", "right_unit", "tick", "invalid",
    "mutual_deadline", "closed", "where", "how", "emit", "backend", "left_longest", "right_longest",
    "prefer", "ties", "weights", "including", "relation", "min_overlap", "share", "gap", "slack",
    "left_duration", "right_duration",
    "left_duration_unit", "right_duration_unit",
)  # fmt: skip
LISTS = ("by", "left_columns", "right_columns", "pair_columns", "aggregates")
WHOLES = ("slices", "classes", "batch_pairs", "max_pairs", "threads", "k")
TRUTHS = ("probability", "open_ends")
"""Options of the data source, by what their values are."""
_WINDOW = ("within", "mutual_deadline", "closed")
_AMOUNTS = ("min_overlap", "share", "gap", "slack")
_LASTING = tuple(f"{side}_{name}" for side in SIDES for name in ("duration", "duration_unit"))
_OF_SPANS = (*_AMOUNTS, "open_ends", *_LASTING)
_BOUNDED = ("following", "before", "after")
"""Relations that the most time between two spans may bound."""
_TIMES = "min_time,max_time"
UNSET = "Give a value, or remove the option. Perhaps a variable of the shell is unset."


def worded_join(words: dict[str, Any]) -> JoinArguments:
    """The arguments of a join that words say."""
    is_one_stream = words.get("right", "") is None
    if is_one_stream:
        words = _of_one_stream(words)
    asked, times = _of_spans(words) if words.get("relation") else _of_instants(words)
    return JoinArguments(
        asked,
        left_time=times[0],
        right_time=times[1],
        by=keys(words.get("by")),
        left_columns=names("left_columns", words.get("left_columns") or ["id"]),
        right_columns=names("right_columns", words.get("right_columns") or ["id"]),
        pair_columns=names("pair_columns", words.get("pair_columns") or []),
        options=options_of(words),
        is_one_stream=is_one_stream,
        prefer=preference(words.get("prefer", MOST_PROBABLE.prefer)),
        **{name: words[name] for name in _AS_GIVEN if name in words} | aggregated(words),
    )


def check_of_slices(words: Mapping[str, object]) -> None:
    """Refuse what compares pairs of all slices, which the data source reads one by one."""
    if "matching" in words:
        raise ConditionError(
            "the data source reads slices one by one, but a matching compares pairs of all"
            " slices. Join with coincide.correlate or coincide join --matching, and read what they"
            " write."
        )


def preference(text: str) -> str | list[str]:
    """What says which match is the best one, and after a comma the column that does so among equals."""
    found = names("prefer", [text])
    return found if len(found) > 1 else found[0]


_COLUMN = r'"(?:[^"]|"")*"|[^"()]*(?:\([^"()]*\)[^"()]*)*'
"""In quotes, or with brackets in pairs."""
_FUNCTION = re.compile(rf"(?P<function>\w+)\s*(?:\(\s*(?P<column>{_COLUMN})\s*\))?")


def aggregated(words: Mapping[str, Any]) -> dict[str, Any]:
    """The aggregates that are asked for, for which rows need not be named."""
    entries = _entries(AGGREGATES, words.get(AGGREGATES))
    if not entries:
        return {}
    found = dict(map(_aggregate, entries))
    if len(found) < len(entries):
        raise ConditionError(
            f"{argument(AGGREGATES)} names a column of the output twice (found"
            f" {', '.join(entries)}). Give each another name."
        )
    is_open = words.get("emit", "pairs") == "pairs"
    return {AGGREGATES: found} | ({"emit": "aggregates"} if is_open else {})


def _aggregate(entry: str) -> tuple[str, GivenAggregate]:
    """The name and the aggregate of ``energy=sum(amp)``, or of ``n=count``."""
    name, *rest = (part.strip() for part in parted(entry, "="))
    found = _FUNCTION.fullmatch(rest[0]) if name and len(rest) == 1 else None
    if found is None:
        raise ConditionError(
            f"{argument(AGGREGATES)} takes NAME=FUNCTION(COLUMN), or NAME=count (found {entry!r})."
            " Write it as in energy=sum(amp)."
        )
    function, column = found["function"], (found["column"] or "").strip()
    if function.lower() in FUNCTIONS:
        function = function.lower()
    elif column.lower() in FUNCTIONS:
        raise ConditionError(
            f"{argument(AGGREGATES)} takes the function first (found {entry!r}). Write"
            f" {name}={column.lower()}({function})."
        )
    if function == "count" and column in ("", "*"):
        return plain(name), "count"
    if not column and function not in FUNCTIONS:
        *others, last = (word for word in FUNCTIONS if word not in ("count", "sum"))
        raise ConditionError(
            f"{argument(AGGREGATES)} needs a function for the column {function} (found {entry!r})."
            f" Write {name}=sum({function}), or {', '.join(others)} or {last} in place of sum."
        )
    if not column:
        raise ConditionError(
            f"{argument(AGGREGATES)} needs a column for {function} (found {entry!r}). Write"
            f" {name}={function}(COLUMN)."
        )
    return plain(name), (plain(column), function)


def keys(words: Sequence[str] | None, option: str = "by") -> list[Key]:
    """Keys, LEFT=RIGHT where they have another name on the right."""
    found: list[Key] = []
    for word in _entries(option, words):
        parts = [plain(part) for part in parted(word, "=")]
        if len(parts) > 2 or "" in parts:
            raise ConditionError(
                f"{argument(option)} takes names, or LEFT=RIGHT for a key with another name on the"
                f" right (found {word!r}). Write a name with = or , in double quotes, like"
                f" {argument(option)} '\"a=b\"'."
            )
        found.append(parts[0] if len(parts) == 1 else (parts[0], parts[1]))
    return found


def keys_of_streams(words: Sequence[str] | None, option: str = "by") -> list[str | tuple[str, ...]]:
    """Keys of several streams; A=B=C where the name is not the same in each."""
    found: list[str | tuple[str, ...]] = []
    for word in _entries(option, words):
        parts = tuple(plain(part) for part in parted(word, "="))
        if "" in parts:
            raise ConditionError(
                f"{argument(option)} takes names, or one for each input with = between them (found"
                f" {word!r}). Write a name with = or , in double quotes, like"
                f" {argument(option)} '\"a=b\"'."
            )
        found.append(parts[0] if len(parts) == 1 else parts)
    return found


def _of_one_stream(words: dict[str, Any]) -> dict[str, Any]:
    """What is said of one stream holds for both sides."""
    once = (*CLOCKS, "unit", "longest", "duration", "duration_unit")
    check_one_stream(words, SIDES, "RIGHT", once)
    own = {name: words.get(name.replace("right", "left")) for name in _LASTING if "right" in name}
    own |= {f"right_{name}": words.get(f"left_{name}") for name in CLOCKS}
    if words.get("right_time", _TIMES) == _TIMES:
        own["right_time"] = words.get("left_time", _TIMES)
    return {**words, **own}


def check_one_stream(
    words: dict[str, Any], sides: tuple[str, str], missing: str, names: Sequence[str]
) -> None:
    """Refuse what is said of a second side, the input `missing`, where there is one stream."""
    for name in names:
        first, second = (f"{side}_{name}" for side in sides)
        if words.get(second) is not None:
            raise ConditionError(
                f"{argument(second)} belongs to {missing}, and there is one stream. Use"
                f" {argument(first)}."
            )


def names(option: str, words: Sequence[str] | None) -> list[str]:
    """Names, separated by commas or in several options; in double quotes where one holds a comma."""
    return [plain(entry) for entry in _entries(option, words)]


def _entries(option: str, words: Sequence[str] | None) -> list[str]:
    """As `names`, with their quotes."""
    found = [entry.strip() for word in words or () for entry in parted(word, ",")]
    if "" in found or '""' in found:
        raise ConditionError(
            f"{argument(option)} has an empty entry (found {','.join(words or ())!r}). {UNSET}"
        )
    return found


def numbers(option: str, text: str) -> list[float]:
    """Numbers, or fractions such as 1/3, separated by commas."""
    try:
        return [float(Fraction(w)) if "/" in w else float(w) for w in text.split(",")]
    except (ValueError, ArithmeticError):
        raise ConditionError(
            f"{argument(option)} takes numbers, separated by commas (found {text!r})."
        ) from None


def duration(option: str, text: str) -> Duration:
    """A duration: a whole number counts ticks, anything else has a unit."""
    try:
        return int(text)
    except ValueError:
        with said_of(option):
            parse_duration(text)
        return text


OPEN = "none"
"""In place of an end that a window has not."""


def both_ends(text: str) -> tuple[str, str]:
    """The two ends of a window for which one duration is given, as words."""
    window = condition.mutual_deadline(duration("within", text))
    return str(window.lo), str(window.hi)


_Asked = tuple[TimingCondition | SpanRelation, tuple[GivenTimes, GivenTimes]]
"""A condition, and the times of both sides."""


def _of_sides(
    words: dict[str, Any], time_of: Callable[[str], GivenTimes]
) -> tuple[GivenTimes, GivenTimes]:
    """The times of both sides: what is said alike is one, as those of one stream must be."""
    said = [
        [words.get(f"{side}_{name}") for name in ("time", *CLOCKS, "duration", "duration_unit")]
        for side in SIDES
    ]
    left = time_of(SIDES[0])
    return left, left if said[0] == said[1] else time_of(SIDES[1])


def _of_instants(words: dict[str, Any]) -> _Asked:
    for name in _OF_SPANS:
        if words.get(name):
            raise ConditionError(
                f"{argument(name)} applies to spans. Add {argument('relation', 'overlapping')}, or"
                f" remove {argument(name)}."
            )
    predicate = worded_window(words)
    times = _of_sides(words, lambda side: timestamps(f"{side}_", words))
    check_open_exact(predicate, times)
    return TimingCondition(predicate, _confidence(words, times)), times


def _of_spans(words: dict[str, Any]) -> _Asked:
    of_sides = [f"{side}_{name}" for side in SIDES for name in CLOCKS if name not in _OF_ENDS]
    for name in ("within", "mutual_deadline", *of_sides):
        if words.get(name) is not None:
            raise ConditionError(
                f"{argument(name)} applies to instants, and {argument('relation')} to events that"
                " last. Remove one."
            )
    left, right = _of_sides(
        words, lambda side: _lasting(side, words, words.get("closed") or "both")
    )
    asked = _relation(words["relation"], *(words.get(name) for name in _AMOUNTS))
    given = words.get("confidence"), (left, right), words.get("weights")
    return condition_of(asked, None, *given), (left, right)


def _lasting(side: str, words: dict[str, Any], closed: Closed) -> GivenTimes:
    word, around = f"{side}_time", words.get(f"{side}_around")
    _check_of_clock(f"{side}_", words)
    given = words.get(word, _TIMES)
    columns = names(word, [given])
    length, unit = (words.get(f"{side}_{name}") for name in ("duration", "duration_unit"))
    if length is not None and len(columns) > 1:
        raise ConditionError(
            f"{argument(f'{side}_duration')} says when events end, so {argument(word)} takes the one"
            f" column of their starts (found {given!r})."
        )
    if unit is not None and length is None:
        raise ConditionError(
            f"{argument(f'{side}_duration_unit')} needs {argument(f'{side}_duration')}. Remove it, or"
            " name the column."
        )
    if len(columns) > 2:
        raise ConditionError(
            f"{argument(word)} takes the columns START,END, or one column of exact times (found"
            f" {given!r})."
        )
    is_corrected = words.get(f"{side}_clock") is not None
    if len(columns) == 1 and around is None and length is None and not is_corrected:
        return columns[0]
    start, end = (
        _corrected(f"{side}_", column, words) if is_corrected else column
        for column in (columns[0], columns[-1])
    )
    widths = None if around is None else _both_durations(f"{side}_around", around, "START,END")
    is_open = bool(words.get("open_ends")) and (length is not None or len(columns) > 1)
    return spans(
        start, None if length is not None else end, closed=closed, around=widths,
        open_ends=is_open, duration=length, unit=unit,
    )  # fmt: skip


def _relation(
    name: str, min_overlap: str | None, share: str | None, gap: str | None, slack: str | None
) -> SpanRelation:
    least, most, off = (
        None if text is None else duration(option, text)
        for option, text in (("min_overlap", min_overlap), ("gap", gap), ("slack", slack))
    )
    if off is not None and name not in ("containing", "inside"):
        raise ConditionError(
            f"{argument('slack')} belongs to {argument('relation', 'containing')} and"
            f" {argument('relation', 'inside')}. Remove one."
        )
    if name == "overlapping":
        shares = None if share is None else numbers("share", share)
        of_each = shares[0] if shares and len(shares) == 1 else shares
        return overlapping(min_overlap=least, share=of_each, gap=most)  # type: ignore[arg-type]
    if min_overlap is not None or share is not None:
        given = argument("share" if min_overlap is None else "min_overlap")
        raise ConditionError(
            f"{given} belongs to {argument('relation', 'overlapping')}. Remove one."
        )
    if (most is None and name == "following") or (most is not None and name not in _BOUNDED):
        said, bound = argument("relation", name), argument("gap")
        raise ConditionError(
            f"{said} needs a bound. Add {bound} D, the most time between the two."
            if most is None
            else f"{said} takes no bound. Remove {bound}."
        )
    if name == "following":
        return replace(following(most or 0), called="gap")
    if name in ("containing", "inside"):
        return containing(off) if name == "containing" else inside(off)
    check_choice("relation", name, (*RELATIONS, *get_args(Allen)))
    found = relation(name, most)  # type: ignore[arg-type]  # which has been checked
    return replace(found, called="gap")


def timestamps(begin: str, words: dict[str, Any]) -> GivenTimes:
    """Intervals of two columns; about the stamps of one; or histograms where a side has templates."""
    # `begin` is what the words of the side begin with, such as ``"left_"``.
    said = {name: words[begin + name] for name in _CLOCKS if words.get(begin + name) is not None}
    unit = words.get(f"{begin}around_unit")
    if unit is not None and "around_column" not in said:
        of, column = argument(f"{begin}around_unit"), argument(f"{begin}around_column")
        raise ConditionError(f"{of} needs {column}. Remove it, or name the column.")
    _check_of_clock(begin, words)
    option, time = f"{begin}time", words.get(f"{begin}time", _TIMES)
    columns = names(option, [time])
    if not said:
        if len(columns) > 2:
            raise ConditionError(
                f"{argument(option)} takes the columns MIN,MAX, or one column of exact times (found"
                f" {time!r})."
            )
        return columns[0], columns[-1]
    _check_together(begin, list(said))
    if len(columns) != 1:
        raise ConditionError(
            f"with {argument(begin + next(iter(said)))}, {argument(option)} takes the one column of"
            f" the times at which events were seen (found {time!r})."
        )
    if "clock" in said:
        return _corrected(begin, columns[0], words)
    return _stamped(columns[0], said, unit, begin)


def _check_of_clock(begin: str, words: dict[str, Any]) -> None:
    """Refuse what is said of the errors of a clock that are not named."""
    for name in _OF_CLOCKS:
        if words.get(begin + name) is not None and words.get(f"{begin}clock") is None:
            of, file = argument(begin + name), argument(f"{begin}clock")
            raise ConditionError(f"{of} needs {file}. Remove it, or name the file of errors.")


def _corrected(begin: str, column: str, words: dict[str, Any]) -> CorrectedClock:
    """A column of stamps that is put right by a file of errors."""
    of_by, of_around = (begin + name for name in _OF_CLOCKS)
    by, width = keys(words.get(of_by), of_by), words.get(of_around)
    around = width if width in (None, FITTED) else duration(of_around, width)
    with said_of(f"{begin}clock"):
        return named_clock(column, words[f"{begin}clock"], by, around, (of_by, of_around))


def _check_together(begin: str, said: list[str]) -> None:
    """Refuse two meanings of the stamps of a side, and half of one."""
    if said == ["template", "templates"]:
        return
    if len(said) > 1:
        listed = " and ".join(argument(begin + name) for name in said)
        raise ConditionError(
            f"{listed} describe the same timestamps in different ways. Remove one."
        )
    if said[0] in ("template", "templates"):
        column, file = argument(f"{begin}template"), argument(f"{begin}templates")
        lacking = file if said[0] == "template" else column
        raise ConditionError(
            f"histograms need both {column} COLUMN and {file} FILE. Add {lacking}."
        )


def _stamped(stamp: str, said: dict[str, str], unit: str | None, begin: str) -> GivenTimes:
    """What the options of a side say of its column of stamps."""
    if "templates" in said:
        return histograms(stamp, **said)
    if "resolution" in said:
        return resolution(stamp, duration(f"{begin}resolution", said["resolution"]))
    if "around_column" in said:
        columns = names(f"{begin}around_column", [said["around_column"]])
        column = (columns[0], columns[-1]) if len(columns) < 3 else tuple(columns)
        return around(stamp, column=column, unit=unit)  # type: ignore[arg-type]
    before, after = _both_durations(f"{begin}around", said["around"], "BEFORE,AFTER")
    return around(stamp, before=before, after=after)


def _both_durations(option: str, text: str, both: str) -> tuple[Duration, Duration]:
    """Two durations, or one for both."""
    parts = text.split(",")
    if len(parts) > 2 or "" in parts:
        raise ConditionError(f"{argument(option)} takes a duration, or {both} (found {text!r}).")
    return duration(option, parts[0]), duration(option, parts[-1])


def worded_window(words: dict[str, Any]) -> Within:
    """The window that words say."""
    return _predicate(**{name: words[name] for name in _WINDOW if name in words})


def _predicate(
    within: tuple[str, str] | None = None,
    mutual_deadline: str | None = None,
    closed: Closed = "both",
) -> Within:
    if (within is None) == (mutual_deadline is None):
        found = "neither" if within is None else "both"
        raise ConditionError(
            f"the condition on times must be one of {argument('within')} and"
            f" {argument('mutual_deadline')} (found {found})."
        )
    if within is None:
        assert mutual_deadline is not None
        lasting = duration("mutual_deadline", mutual_deadline)
        return condition.mutual_deadline(lasting, closed=closed)
    lo, hi = (None if end.lower() == OPEN else duration("within", end) for end in within)
    return condition.within(lo, hi, closed=closed)


def _confidence(words: Mapping[str, Any], times: Sequence[GivenTimes]) -> float:
    """As it was given; of exact times, which meet or do not, and with weights none has to be."""
    confidence: float | None = words.get("confidence")
    if confidence is None:
        if are_exact(times):
            return 1.0
        if words.get("weights") is not None:
            return ANY_CHANCE
        raise ConditionError(
            f"{argument('confidence')} is missing, which says how probable a pair must be. Use 0.5 for"
            " pairs that are more likely than not."
        )
    return confidence


def options_of(words: dict[str, Any], sides: tuple[str, str] = SIDES) -> CorrelateOptions:
    """The options that words say, of sides that are called so in them."""
    given = {name: words[name] for name in _OPTIONS if name in words}
    for side, called in zip(SIDES, sides, strict=True):
        given[f"{side}_unit"] = words.get(f"{called}_unit")
        longest = words.get(f"{called}_longest")
        given[f"{side}_longest"] = (
            None if longest is None else duration(f"{called}_longest", longest)
        )
    return CorrelateOptions(**given)
