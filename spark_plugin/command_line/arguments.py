"""From the words on the command line to the arguments of a join; all checks that need no data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from coincide.options import Way, check_choice
from spark_plugin.command_line.inputs import FORMATS
from spark_plugin.command_line.problems import Problem
from spark_plugin.worker.arguments import JoinArguments
from spark_plugin.worker.files.credentials import Redactor
from spark_plugin.worker.words import UNSET, worded_join

_SPARK_ONLY = ("master", "conf", "slices")


@dataclass(frozen=True)
class JoinRequest:
    """One `coincide join`.

    Parameters
    ----------
    left, right, output : str
        Paths, globs or URIs.
    arguments : JoinArguments
    overwrite : bool
    file_format : str or None
    engine : {"spark", "local"}
    master : str or None
    conf : dict of str to str
        Spark settings.
    debug : bool
    """

    left: str
    right: str
    output: str
    arguments: JoinArguments
    overwrite: bool = False
    file_format: str | None = None
    engine: str = "spark"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False

    @cached_property
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        settings = [f"{key}={value}" for key, value in self.conf.items()]
        return Redactor.of([self.left, self.right, self.output, self.master or "", *settings])

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that the join needs, of both sides."""
        return self.arguments.columns

    @property
    def way(self) -> str:
        """As `CorrelateOptions.way`."""
        return self.arguments.options.way


def join_request(**words: Any) -> JoinRequest:
    """Check what was typed and make a request of it. Keywords are the options of `coincide join`.

    Raises
    ------
    CoincideError
        If an option makes no sense.
    """
    check_choice("--engine", words["engine"], ("spark", "local"))
    check_choice("--way", words["way"], get_args(Way))
    if words["file_format"] is not None:
        check_choice("--format", words["file_format"], tuple(FORMATS))
    _check_spark_only(words)
    if words["master"] is not None and not words["master"].strip():
        raise Problem(f"--master is empty; {UNSET}")
    rest = ("left", "right", "output", "overwrite", "file_format", "engine", "master", "debug")
    return JoinRequest(
        arguments=worded_join(words),
        conf=_settings(words["conf"]),
        **{name: words[name] for name in rest},
    )


def _check_spark_only(words: dict[str, Any]) -> None:
    given = [f"--{name}" for name in _SPARK_ONLY if words[name]]
    given += [f"--way {words['way']}"] * words["way"].startswith("broadcast")
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
