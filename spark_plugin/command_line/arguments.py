"""From the words on the command line to the arguments of a join; all checks that need no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from event_model.condition import TimingCondition
from event_model.errors import ConditionError
from event_model.options import CorrelateOptions, check_choice, options_for
from event_model.predicates import Within, mutual_deadline, within
from event_model.units import Duration
from spark_plugin.command_line.inputs import FORMATS
from spark_plugin.command_line.problems import Problem
from spark_plugin.credentials import Redactor
from spark_plugin.worker import check_arguments, handed_out

WAYS = ("auto", "direct", "broadcast", "exchange")
_SPARK_ONLY = ("master", "conf", "slices")
_UNSET = "name something, or leave the option out (is a variable of the shell unset?)"


@dataclass(frozen=True)
class JoinRequest:
    """One `coincide join`.

    Parameters
    ----------
    left, right, output : str
        Paths, globs or URIs.
    condition : TimingCondition
    arguments : dict
        Keyword arguments of `correlate` and `correlate_tables`.
    overwrite : bool
    file_format : str or None
    engine : {"spark", "local"}
    master : str or None
    conf : dict of str to str
        Spark settings.
    debug : bool
    way : {"auto", "direct", "broadcast", "exchange"}
    """

    left: str
    right: str
    output: str
    condition: TimingCondition
    arguments: dict[str, Any]
    overwrite: bool = False
    file_format: str | None = None
    engine: str = "spark"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False
    way: str = "auto"

    @cached_property
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        settings = [f"{key}={value}" for key, value in self.conf.items()]
        return Redactor.of([self.left, self.right, self.output, self.master or "", *settings])

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that the join needs, of both sides."""
        given = self.arguments
        left, right = (
            [*given[f"{side}_time"], *given["by"], *given[f"{side}_columns"]]
            for side in ("left", "right")
        )
        return list(dict.fromkeys(left)), list(dict.fromkeys(right))


def join_request(**words: Any) -> JoinRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide join`.

    Raises
    ------
    CoincideError
        If an option makes no sense.
    """
    check_choice("--engine", words["engine"], ("spark", "local"))
    check_choice("--way", words["way"], WAYS)
    if words["file_format"] is not None:
        check_choice("--format", words["file_format"], tuple(FORMATS))
    _check_spark_only(words)
    if words["master"] is not None and not words["master"].strip():
        raise Problem(f"--master is empty; {_UNSET}")
    predicate = _predicate(words["within"], words["mutual_deadline"])
    condition = TimingCondition(predicate, _confidence(words["confidence"]))
    arguments = {
        "left_time": _times("--left-time", words["left_time"]),
        "right_time": _times("--right-time", words["right_time"]),
        "by": names("--by", words["by"]),
        "left_columns": names("--left-columns", words["left_columns"] or ["id"]),
        "right_columns": handed_out(
            names("--right-columns", words["right_columns"] or ["id"]), words["how"], words["emit"]
        ),
        "options": _options(words),
    }
    plain = {name: words[name] for name in ("how", "emit", "probability", "backend")}
    check_arguments(condition, **plain)
    rest = (
        "left",
        "right",
        "output",
        "overwrite",
        "file_format",
        "engine",
        "master",
        "debug",
        "way",
    )
    return JoinRequest(
        condition=condition,
        arguments=arguments | plain,
        conf=_settings(words["conf"]),
        **{name: words[name] for name in rest},
    )


def names(option: str, words: Sequence[str] | None) -> list[str]:
    """Names, separated by commas or in several options.

    Raises
    ------
    ConditionError
        If one is empty: a join without the keys that were meant would still give an answer.
    """
    found = [name.strip() for word in words or () for name in word.split(",")]
    if "" in found:
        raise ConditionError(f"{option} has an empty entry in {','.join(words or ())!r}; {_UNSET}")
    return found


def duration(text: str) -> Duration:
    """A duration: a whole number counts ticks, anything else has a unit."""
    try:
        return int(text)
    except ValueError:
        return text


def _times(option: str, text: str) -> tuple[str, str]:
    columns = names(option, [text])
    if len(columns) not in (1, 2):
        raise Problem(
            f"{option} takes the columns MIN,MAX, or one column of exact times; found {text!r}"
        )
    return columns[0], columns[-1]


def _predicate(window: tuple[str, str] | None, deadline: str | None) -> Within:
    if (window is None) == (deadline is None):
        found = "neither" if window is None else "both"
        raise Problem(
            "say what the times must meet, with one of --within LO HI and --mutual-deadline D;"
            f" found {found}"
        )
    if window is None:
        assert deadline is not None
        return mutual_deadline(duration(deadline))
    return within(*map(duration, window))


def _confidence(confidence: float | None) -> float:
    if confidence is None:
        raise Problem(
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
        "threads",
    )  # fmt: skip
    chosen: dict[str, Any] = {name: words[name] for name in plain}
    return options_for(words["way"], CorrelateOptions(**longest, **chosen))


def _check_spark_only(words: dict[str, Any]) -> None:
    given = [f"--{name}" for name in _SPARK_ONLY if words[name]]
    given += ["--way broadcast"] * (words["way"] == "broadcast")
    if words["engine"] == "local" and given:
        verb, them = ("means", "it") if len(given) == 1 else ("mean", "them")
        raise Problem(f"{' and '.join(given)} {verb} nothing with --engine local; leave {them} out")


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    wrong = [number for number, (key, sign, _) in enumerate(pairs, 1) if not sign or not key]
    if wrong:
        # Not the word itself, which may be a secret.
        raise Problem(f"--conf takes KEY=VALUE; number {wrong[0]} of them is not written so")
    return {key: value for key, _, value in pairs}
