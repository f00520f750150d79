"""What every command that reads files and writes one answer is told: where, and how it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from coincide.command_line.problems import Problem
from coincide.command_line.standard_streams import check_once, read_in
from coincide.engine.files.credentials import Redactor
from coincide.engine.files.csv_rules import PLAIN, CsvRules, csv_rules, side_rules
from coincide.engine.files.source import COMPRESSED, FORMATS, STANDARD_INPUT, Source, find_source
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.words import UNSET
from coincide.model.options import check_choice

ENGINES = ("auto", "spark", "local")


@dataclass(frozen=True, kw_only=True)
class Request(ABC):
    """One run of a command.

    Parameters
    ----------
    output : str
        A path or URI.
    overwrite : bool
    file_format : str or None
    engine : {"auto", "spark", "local"}
    master : str or None
    conf : dict of str to str
        Spark settings.
    debug : bool
    engine_why : str
        Why it is this one, where nobody asked for it.
    csv : CsvRules
        How inputs of CSV are written.
    output_format : {"parquet", "csv", "arrow"}
    csv_sides : dict of str to (CsvRules, CsvRules)
        How each input is written, and what is said of it alone, by the name of its option; empty: all as
        `csv`.
    """

    output: str
    overwrite: bool = False
    file_format: str | None = None
    engine: str = "auto"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False
    engine_why: str = ""
    csv: CsvRules = PLAIN
    output_format: str = "parquet"
    csv_sides: dict[str, tuple[CsvRules, CsvRules]] = field(default_factory=dict)

    @property
    @abstractmethod
    def inputs(self) -> dict[str, str]:
        """Paths, globs or URIs, by what messages call the input."""

    @property
    def read_columns(self) -> Sequence[Collection[str] | None] | None:
        """What is read of each input; None: all columns, or of all inputs all of them."""
        return None

    def sources(self) -> list[Source]:
        """The inputs, looked up.

        Raises
        ------
        Problem, DataError
            If nothing is there, a format cannot be told, or what is said of CSV is of no input.
        """
        check_once(self.inputs.values())
        of_sides = [*self.csv_sides.values()] or [(self.csv, PLAIN)] * len(self.inputs)
        found = []
        for (side, text), (rules, _) in zip(self.inputs.items(), of_sides, strict=False):
            if text == STANDARD_INPUT:
                found.append(read_in(side, self.file_format, rules))
            else:
                found.append(find_source(side, text, self.file_format, rules))
        from coincide.engine.files.csv_input import check_own, check_said

        check_said(self.csv, found)
        for i, (side, (_, own)) in enumerate(self.csv_sides.items()):
            check_own(side, own, found[i] if i < len(found) else None)
        return found

    @cached_property
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        settings = [f"{key}={value}" for key, value in self.conf.items()]
        return Redactor.of([*self.inputs.values(), self.output, self.master or "", *settings])


@dataclass(frozen=True, kw_only=True)
class EventRequest(Request):
    """One run of a command that joins events of two inputs."""

    arguments: PairArguments

    def of(self, arguments: PairArguments) -> Self:
        """The same with other arguments."""
        return replace(self, arguments=arguments)

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""
        return self.arguments.columns

    @property
    def read_columns(self) -> Sequence[Collection[str] | None]:  # noqa: D102
        return self.columns


def lines_left_out(sources: Sequence[Source]) -> dict[str, int]:
    """How many lines of CSV were left out, of inputs that have such."""
    counts = {source.side: sum(source.skipped.values()) for source in sources}
    return {side: count for side, count in counts.items() if count}


def checked(words: Mapping[str, Any], spark_only: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `Request`, checked."""
    check_choice("--engine", words["engine"], ENGINES)
    if words["file_format"] is not None:
        check_choice("--format", words["file_format"], tuple(FORMATS))
    engine, why = _engine(
        words["engine"], {"--master": words["master"], "--conf": words["conf"], **spark_only}
    )
    if words["master"] is not None and not words["master"].strip():
        raise Problem(f"--master is empty; {UNSET}")
    plain = ("output", "overwrite", "file_format", "master", "debug")
    sides = [word.removesuffix("_csv") for word in words if word.endswith("_csv")]
    return {
        **{name: words[name] for name in plain},
        "engine": engine,
        "engine_why": why,
        "conf": _settings(words["conf"]),
        "csv": csv_rules(words, is_all=not sides),
        "csv_sides": {side: side_rules(words, side) for side in sides},
        "output_format": _written(words),
    }


def _written(words: Mapping[str, Any]) -> str:
    found = format_of_output(words["output"], words.get("output_format"))
    if found == "csv" and words.get("emit") == "lists":
        raise Problem(
            "--emit lists makes arrays, which CSV cannot hold; end -o in .parquet or .arrow, or say"
            " --emit pairs"
        )
    return found


def _engine(engine: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """The engine, and why it is this one: Spark where an option of Spark's is given."""
    given = [option for option, value in options.items() if value]
    if engine == "auto" and given:
        return "spark", f"for {' and '.join(given)}"
    if engine == "local" and given:
        verb, them = ("means", "it") if len(given) == 1 else ("mean", "them")
        raise Problem(f"{' and '.join(given)} {verb} nothing with --engine local; leave {them} out")
    return engine, ""


def _settings(words: Sequence[str] | None) -> dict[str, str]:
    pairs = [word.partition("=") for word in words or ()]
    wrong = [number for number, (key, sign, _) in enumerate(pairs, 1) if not sign or not key]
    if wrong:
        # Not the word itself, which may be a secret.
        raise Problem(f"--conf takes KEY=VALUE; number {wrong[0]} of them is not written so")
    return {key: value for key, _, value in pairs}


STDOUT = "-"
_UNWRITTEN = (".tsv", ".json", ".jsonl", ".txt", ".xlsx", ".orc", ".avro")
_PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def format_of_output(text: str, asked: str | None) -> str:
    """A key of `FORMATS`."""
    if asked is not None:
        check_choice("--output-format", asked, tuple(FORMATS))
    if text == STDOUT:
        return asked or "csv"
    name = text.lower().rstrip("/")
    if name.endswith(_UNWRITTEN):
        raise Problem(
            f"the output {text} is named as a format that is not written; end it in .parquet, .csv or"
            " .arrow"
        )
    named = _named(name)
    if asked is not None and named not in (None, asked):
        raise Problem(
            f"the output {text} is named as {named}, and --output-format says {asked}; leave one out"
        )
    return asked or named or "parquet"


def compression_of(text: str) -> str | None:
    """How a file of CSV is compressed, by its name."""
    return next((how for end, how in _PACKED.items() if text.lower().endswith(end)), None)


def _named(name: str) -> str | None:
    packed = next((end for end in COMPRESSED if name.endswith(end)), "")
    bare = name.removesuffix(packed)
    found = next((kind for kind, each in FORMATS.items() if bare.endswith(each.endings)), None)
    if packed and found != "csv":
        raise Problem(
            f"the output {name} would be compressed, which only .csv can be; leave {packed} out"
        )
    return found
