"""A join in words: what the options of the command line, and of the data source, say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coincide.engine.events.given_times import Around, around, histograms, resolution
from coincide.engine.events.keys import Key, parted, plain
from coincide.engine.events.time_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import are_exact
from coincide.model.condition import Closed, TimingCondition, Within, mutual_deadline, within
from coincide.model.errors import ConditionError
from coincide.model.options import CorrelateOptions
from coincide.model.units import Duration, TypedInt

_CLOCKS = ("around", "resolution", "template", "templates", "around_column")
CLOCKS = (*_CLOCKS, "around_unit")
"""Options of a side that say what its stamps mean, without the side."""
_TIMES = "min_time,max_time"
UNSET = "name something, or leave the option out (is a variable of the shell unset?)"


def worded_join(words: dict[str, Any]) -> JoinArguments:
    """The arguments of a join that words say."""
    is_one_stream = words.get("right", "") is None
    if is_one_stream:
        words = _of_one_stream(words)
    predicate = _predicate(words["within"], words["mutual_deadline"], words.get("closed", "both"))
    times = timestamps("left", words), timestamps("right", words)
    return JoinArguments(
        TimingCondition(predicate, _confidence(words["confidence"], times)),
        left_time=times[0],
        right_time=times[1],
        by=keys(words["by"]),
        case_fold=words.get("case_fold", False),
        where=words.get("where"),
        left_columns=names("--left-columns", words["left_columns"] or ["id"]),
        right_columns=names("--right-columns", words["right_columns"] or ["id"]),
        pair_columns=names("--pair-columns", words.get("pair_columns") or []),
        options=_options(words),
        is_one_stream=is_one_stream,
        **{name: words[name] for name in ("how", "emit", "probability", "backend")},
        **{name: words[name] for name in ("prefer", "k", "matching", "largest_group")},
    )


def keys(words: Sequence[str] | None) -> list[Key]:
    """Keys, LEFT=RIGHT where they are called otherwise on the right."""
    found: list[Key] = []
    for word in _entries("--by", words):
        parts = [plain(part) for part in parted(word, "=")]
        if len(parts) > 2 or "" in parts:
            raise ConditionError(
                f"--by takes names, or LEFT=RIGHT where a key has another name on the right; found"
                f" {word!r}."
                " A name with = or , in it stands in double quotes, as in --by '\"a=b\"'"
            )
        found.append(parts[0] if len(parts) == 1 else (parts[0], parts[1]))
    return found


def _of_one_stream(words: dict[str, Any]) -> dict[str, Any]:
    """What is said of one stream holds for both sides."""
    clocks = [f"{{}}_{name}" for name in CLOCKS]
    for name in (*clocks, "{}_unit", "{}_longest"):
        option = name.format("right")
        if words.get(option) is not None:
            said = f"--{option.replace('_', '-')}"
            raise ConditionError(
                f"{said} is of RIGHT, and there is one stream: say {said.replace('right', 'left')}"
            )
    own = {name.format("right"): words.get(name.format("left")) for name in clocks}
    if words["right_time"] == _TIMES:
        own["right_time"] = words["left_time"]
    return {**words, **own}


def names(option: str, words: Sequence[str] | None) -> list[str]:
    """Names, separated by commas or in several options; in double quotes where one holds a comma."""
    return [plain(entry) for entry in _entries(option, words)]


def _entries(option: str, words: Sequence[str] | None) -> list[str]:
    """As `names`, with their quotes."""
    found = [entry.strip() for word in words or () for entry in parted(word, ",")]
    if "" in found or '""' in found:
        raise ConditionError(f"{option} has an empty entry in {','.join(words or ())!r}; {UNSET}")
    return found


def numbers(option: str, text: str) -> list[float]:
    """Numbers, separated by commas."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ConditionError(
            f"{option} takes numbers, separated by commas; found {text!r}"
        ) from None


def duration(text: str) -> Duration:
    """A duration: a whole number counts ticks, anything else has a unit."""
    try:
        return TypedInt(text)
    except ValueError:
        return text


def both_ends(text: str) -> tuple[str, str]:
    """The two ends of a window for which one duration is given, as words."""
    window = mutual_deadline(duration(text))
    return str(window.lo), str(window.hi)


def shifts(words: Sequence[str] | None) -> list[Duration] | None:
    """Durations, separated by commas or in several options; None of no option."""
    return None if words is None else [duration(word) for word in names("--shifts", words)]


def timestamps(side: str, words: dict[str, Any]) -> GivenTimes:
    """Intervals of two columns; about the stamps of one; or histograms where a side has templates."""
    option, time = f"--{side}-time", words[f"{side}_time"]
    said: dict[str, Any] = {name: words.get(f"{side}_{name}") for name in _CLOCKS}
    unit = words.get(f"{side}_around_unit")
    if unit is not None and said["around_column"] is None:
        raise ConditionError(
            f"--{side}-around-unit is of --{side}-around-column; leave it out, or name the column"
        )
    given = [name for name, word in said.items() if word is not None]
    if not given:
        return _times(option, time)
    if set(given) == {"template", "templates"}:
        return histograms(_stamps(option, time, "template"), **{k: said[k] for k in given})
    if len(given) > 1:
        listed = " and ".join(f"--{side}-{name.replace('_', '-')}" for name in given)
        raise ConditionError(f"{listed} say different things of the same timestamps; leave out one")
    if "template" in given or "templates" in given:
        lacking = f"--{side}-template" + ("s" if "template" in given else "")
        raise ConditionError(
            f"histograms need both --{side}-template COLUMN and --{side}-templates FILE; {lacking} is"
            " missing"
        )
    if said["around_column"] is not None:
        columns = names(f"--{side}-around-column", [said["around_column"]])
        column = (columns[0], columns[-1]) if len(columns) < 3 else tuple(columns)
        return around(_stamps(option, time, "around-column"), column=column, unit=unit)  # type: ignore[arg-type]
    return _clock(side, time, said["around"], said["resolution"])


def _clock(side: str, time: str, width: str | None, step: str | None) -> Around:
    """What --SIDE-around, or else --SIDE-resolution, says of the column of --SIDE-time."""
    option = f"--{side}-time"
    if width is None:
        assert step is not None
        return resolution(_stamps(option, time, "resolution"), duration(step))
    if step is not None:
        raise ConditionError(
            f"--{side}-around and --{side}-resolution say different things of the same timestamps; leave"
            " out one"
        )
    before, after = _ends(f"--{side}-around", width)
    return around(_stamps(option, time, "around"), before=before, after=after)


def _stamps(option: str, text: str, other: str) -> str:
    """The one column of stamps."""
    columns = names(option, [text])
    if len(columns) != 1:
        side = option.removesuffix("-time")
        raise ConditionError(
            f"with {side}-{other}, {option} takes the one column of the times at which events were"
            f" seen; found {text!r}"
        )
    return columns[0]


def _ends(option: str, text: str) -> tuple[Duration, Duration]:
    """How far before and after: one duration for both, or two."""
    parts = [duration(part) for part in text.split(",")]
    if len(parts) > 2 or "" in parts:
        raise ConditionError(f"{option} takes a duration, or BEFORE,AFTER; found {text!r}")
    return parts[0], parts[-1]


def _times(option: str, text: str) -> tuple[str, str]:
    columns = names(option, [text])
    if len(columns) not in (1, 2):
        raise ConditionError(
            f"{option} takes the columns MIN,MAX, or one column of exact times; found {text!r}"
        )
    return columns[0], columns[-1]


def _predicate(window: tuple[str, str] | None, deadline: str | None, closed: Closed) -> Within:
    if (window is None) == (deadline is None):
        found = "neither" if window is None else "both"
        raise ConditionError(
            "say what the times must meet, with one of --within LO HI and --mutual-deadline D;"
            f" found {found}"
        )
    if window is None:
        assert deadline is not None
        return mutual_deadline(duration(deadline), closed=closed)
    return within(*map(duration, window), closed=closed)


def _confidence(confidence: float | None, times: Sequence[GivenTimes]) -> float:
    """As it was given; of exact times, which meet or do not, none has to be."""
    if confidence is None:
        if are_exact(times):
            return 1.0
        raise ConditionError(
            "say how probable a pair must be, with --confidence; 0.5 asks for pairs that are more"
            " likely than not"
        )
    return confidence


def _options(words: dict[str, Any]) -> CorrelateOptions:
    longest: dict[str, Any] = {
        name: None if words[name] is None else duration(words[name])
        for name in ("left_longest", "right_longest")
    }
    plain = (
        "unit", "left_unit", "right_unit", "tick", "invalid", "slices", "batch_pairs", "classes",
        "threads", "way",
    )  # fmt: skip
    chosen: dict[str, Any] = {name: words[name] for name in plain}
    return CorrelateOptions(**longest, **chosen)
