"""What every command that reads files and writes one answer is told: where, and how it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from coincide.options import CorrelateOptions, check_choice
from coincide.units import Tick
from spark_plugin.command_line.inputs import FORMATS, Source, find_source
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.files.credentials import Redactor
from spark_plugin.worker.words import UNSET


@dataclass(frozen=True, kw_only=True)
class Request(ABC):
    """One run of a command.

    Parameters
    ----------
    output : str
        A path or URI.
    overwrite : bool
    file_format : str or None
    engine : {"spark", "local"}
    master : str or None
    conf : dict of str to str
        Spark settings.
    debug : bool
    """

    output: str
    overwrite: bool = False
    file_format: str | None = None
    engine: str = "spark"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False

    @property
    @abstractmethod
    def inputs(self) -> dict[str, str]:
        """Paths, globs or URIs, by what messages call the input."""

    def sources(self) -> list[Source]:
        """The inputs, looked up.

        Raises
        ------
        Problem, DataError
            If nothing is there, or a format cannot be told.
        """
        return [find_source(side, text, self.file_format) for side, text in self.inputs.items()]

    @cached_property
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        settings = [f"{key}={value}" for key, value in self.conf.items()]
        return Redactor.of([*self.inputs.values(), self.output, self.master or "", *settings])


@dataclass(frozen=True, kw_only=True)
class EventRequest(Request):
    """One run of a command that joins events of two inputs."""

    @property
    @abstractmethod
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""

    @property
    @abstractmethod
    def keys(self) -> list[tuple[str, str]]:
        """The columns that must be equal, of both sides."""

    @property
    @abstractmethod
    def clocks(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of the earlier and the later time, of both sides."""

    @property
    @abstractmethod
    def options(self) -> CorrelateOptions:
        """How times are counted, and more."""

    @abstractmethod
    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which durations cannot be counted.

        Raises
        ------
        ConditionError
        """


def checked(words: Mapping[str, Any], spark_only: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `Request`, checked.

    Parameters
    ----------
    words : mapping
        By the names of its parameters, as they were typed.
    spark_only : mapping of str to object
        Further options that mean nothing in one process, as they are typed, and whether they were.

    Raises
    ------
    CoincideError
        If an option makes no sense.
    """
    check_choice("--engine", words["engine"], ("spark", "local"))
    if words["file_format"] is not None:
        check_choice("--format", words["file_format"], tuple(FORMATS))
    _check_spark_only(
        words["engine"], {"--master": words["master"], "--conf": words["conf"], **spark_only}
    )
    if words["master"] is not None and not words["master"].strip():
        raise Problem(f"--master is empty; {UNSET}")
    plain = ("output", "overwrite", "file_format", "engine", "master", "debug")
    return {**{name: words[name] for name in plain}, "conf": _settings(words["conf"])}


def _check_spark_only(engine: str, options: Mapping[str, Any]) -> None:
    given = [option for option, value in options.items() if value]
    if engine == "local" and given:
        verb, them = ("means", "it") if len(given) == 1 else ("mean", "them")
        raise Problem(f"{' and '.join(given)} {verb} nothing with --engine local; leave {them} out")


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    wrong = [number for number, (key, sign, _) in enumerate(pairs, 1) if not sign or not key]
    if wrong:
        # Not the word itself, which may be a secret.
        raise Problem(f"--conf takes KEY=VALUE; number {wrong[0]} of them is not written so")
    return {key: value for key, _, value in pairs}
