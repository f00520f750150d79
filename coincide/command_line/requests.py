"""A command that reads files and writes one answer: where, how, and what it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa

from coincide.command_line.outputs import (
    Place,
    SparkOutput,
    check_once,
    format_of_output,
    read_in,
    write_frame,
)
from coincide.command_line.problems import Problem
from coincide.command_line.progress import Progress
from coincide.command_line.summary import Counted
from coincide.engine.files.credentials import Redactor
from coincide.engine.files.csv_rules import PLAIN, CsvRules, csv_rules, side_rules
from coincide.engine.files.source import FORMATS, STANDARD_INPUT, Source, find_source
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import UNSET
from coincide.engine.room import PairLimit
from coincide.model.options import check_choice
from coincide.model.remembered import remembered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    OnSession = Callable[[SparkSession, Progress, SparkOutput], "OnSpark"]

NO_LIMIT = PairLimit(None)
"""The limit of an answer that has no pairs."""
ENGINES = ("auto", "spark", "local")


class InProcess(NamedTuple):
    """Rows as they are found; what was counted is known once all are out."""

    batches: Iterable[pa.RecordBatch]
    schema: pa.Schema
    counted: Callable[[], Counted]
    limit: PairLimit = NO_LIMIT


class OnSpark(NamedTuple):
    """What was counted; and the files that hold the rows, with their number, where not all files do."""

    counted: Counted
    files: Collection[str] | None = None
    rows: int | None = None


WAYS = ("auto", "files", "exchange")
"""Ways on Spark of what is searched stream by stream."""


@dataclass(frozen=True, kw_only=True)
class Request(Place, ABC):
    """One run of a command: where it reads and writes, on which engine, and what is done there.

    `csv_sides` holds how each input of CSV is written, and what is said of it alone, by the name of its
    option; without any all are as `csv`.
    """

    doing: ClassVar[str]
    file_format: str | None = None
    engine: str = "auto"
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False
    engine_why: str = ""
    csv: CsvRules = PLAIN
    csv_sides: dict[str, tuple[CsvRules, CsvRules]] = field(default_factory=dict)

    @property
    @abstractmethod
    def inputs(self) -> dict[str, str]:
        """Paths, globs or URIs, by what messages call the input."""

    @abstractmethod
    def in_process(self, sources: list[Source], progress: Progress) -> InProcess:
        """What the local engine computes of the inputs; wrong columns show before they are read."""

    def on_spark(self, sources: list[Source]) -> OnSession:
        """What a session does for it, and writes; what is known without one is checked here."""
        raise NotImplementedError

    def planned(
        self, plan: Callable[[SparkSession], Any], counted: Callable[[Any], Counted]
    ) -> OnSession:
        """Let Spark write the DataFrame of a plan, which then tells what was counted."""

        def work(spark: SparkSession, progress: Progress, output: SparkOutput) -> OnSpark:
            with progress.following(spark, "planning"):
                made = plan(spark)
            with progress.following(spark, self.doing):
                write_frame(made.dataframe, output)
            return OnSpark(counted(made))

        return work

    @property
    def most_pairs(self) -> int | None:
        """As `CorrelateOptions.max_pairs`."""
        return None

    @property
    def read_columns(self) -> Sequence[Collection[str] | None] | None:
        """What is read of each input; None: all columns, or of all inputs all of them."""
        return None

    def sources(self) -> list[Source]:
        """The inputs, looked up; an error if one is not there, or if options of CSV meet no CSV."""
        check_once(self.inputs.values())
        of_sides = [*self.csv_sides.values()] or [(self.csv, PLAIN)] * len(self.inputs)
        found = []
        for (side, text), (rules, _) in zip(self.inputs.items(), of_sides, strict=False):
            if text == STANDARD_INPUT:
                found.append(read_in(side, self.file_format, rules))
            else:
                found.append(find_source(side, text, self.file_format, rules))
        if any(rules.said for rules in (self.csv, *(own for _, own in self.csv_sides.values()))):
            from coincide.engine.files.csv_input import check_own, check_said

            check_said(self.csv, found)
            for i, (side, (_, own)) in enumerate(self.csv_sides.items()):
                check_own(side, own, found[i] if i < len(found) else None)
        return found

    @remembered
    def hide(self) -> Redactor:
        """Takes the secrets of what was typed out of a text."""
        settings = [f"{key}={value}" for key, value in self.conf.items()]
        return Redactor.of([*self.inputs.values(), self.output, self.master or "", *settings])


@dataclass(frozen=True, kw_only=True)
class EventRequest(Request):
    """One run of a command that joins events of two inputs."""

    arguments: PairArguments

    @abstractmethod
    def job(self, arguments: PairArguments, tables: list[pa.Table]) -> Any:
        """What answers it, of one table or two; wrong columns show here, of tables without rows, too."""

    def check(self, arguments: PairArguments, tables: list[pa.Table]) -> None:
        """Refuse what tables without rows show to be wrong."""
        self.job(arguments, tables)

    @property
    def most_pairs(self) -> int | None:  # noqa: D102
        return self.arguments.options.max_pairs

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""
        return self.arguments.columns

    @property
    def read_columns(self) -> Sequence[Collection[str] | None]:  # noqa: D102
        return self.columns


def checked(words: Mapping[str, Any], spark_only: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a `Request`, checked."""
    check_choice("--engine", words["engine"], ENGINES)
    if words["file_format"] is not None:
        check_choice("--format", words["file_format"], tuple(FORMATS))
    engine, why = _engine(
        words["engine"], {"--master": words["master"], "--conf": words["conf"], **spark_only}
    )
    if words["master"] is not None and not words["master"].strip():
        raise Problem(f"--master is empty. {UNSET}")
    plain = ("output", "overwrite", "file_format", "master", "debug")
    sides = [word.removesuffix("_csv") for word in words if word.endswith("_csv")]
    return {
        **{name: words[name] for name in plain},
        "engine": engine,
        "engine_why": why,
        "conf": settings_of("--conf", words["conf"]),
        "csv": csv_rules(words),
        "csv_sides": {side: side_rules(words, side) for side in sides},
        "output_format": _written(words),
    }


def _written(words: Mapping[str, Any]) -> str:
    found = format_of_output(words["output"], words.get("output_format"))
    if found == "csv" and words.get("emit") == "lists":
        raise Problem(
            "--emit lists gives arrays, which CSV cannot hold. End -o in .parquet or .arrow, or"
            " use --emit pairs."
        )
    return found


def _engine(engine: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """The engine, and why it is this one: Spark where an option of Spark's is given."""
    given = [option for option, value in options.items() if value]
    if engine == "auto" and given:
        return "spark", f"for {' and '.join(given)}"
    if engine == "local" and given:
        verb, them = ("has", "it") if len(given) == 1 else ("have", "them")
        raise Problem(f"{' and '.join(given)} {verb} no effect with --engine local. Remove {them}.")
    return engine, ""


def settings_of(option: str, words: Sequence[str] | None) -> dict[str, str]:
    """Settings that an option gives as KEY=VALUE."""
    pairs = [word.partition("=") for word in words or ()]
    wrong = [number for number, (key, sign, _) in enumerate(pairs, 1) if not sign or not key]
    if wrong:
        # Not the word itself, which may be a secret.
        raise Problem(
            f"{option} takes KEY=VALUE, but number {wrong[0]} is not written that way. Correct it."
        )
    return {key: value for key, _, value in pairs}
