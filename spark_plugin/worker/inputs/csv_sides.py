"""How the CSV of one side is written, where that is another way than the other side's."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from coincide.errors import ConditionError
from spark_plugin.worker.inputs.csv_files import CsvFile
from spark_plugin.worker.inputs.csv_rules import CsvRules, csv_rules
from spark_plugin.worker.inputs.source import Source, reading

_SINGLE = ("delimiter", "quote", "decimal", "skip", "encoding", "time_format")
_LISTS = ("null", "type", "names")


def side_rules(words: Mapping[str, Any], side: str) -> tuple[CsvRules, CsvRules]:
    """The rules of one side, and what of them is said of this side alone.

    Parameters
    ----------
    words : mapping
        As `csv_rules` takes them, and under ``left_csv`` and ``right_csv`` words NAME=VALUE, as a shell
        takes them apart: ``"delimiter=; null=NA null='not known'"``.
    side : str

    Raises
    ------
    ConditionError
        If an option makes no sense.
    """
    option = f"--{side}-csv"
    own = _parts(option, words.get(f"{side}_csv"))
    try:
        return csv_rules({**words, **own}), csv_rules(own, is_all=False)
    except ConditionError as error:
        if not own:
            raise
        raise ConditionError(f"{option}: {error}") from None


def check_own(side: str, own: CsvRules, source: Source | None) -> None:
    """Refuse what is said of the CSV of one side, which is none, or not there, or lacks a column.

    Raises
    ------
    ConditionError
    """
    if not own.said:
        return
    if source is None:
        raise ConditionError(
            f"--{side}-csv is of {side.upper()}, and there is one stream; leave it out"
        )
    if source.file_format != "csv":
        raise ConditionError(
            f"--{side}-csv means nothing, as {source.text} is {source.file_format}; leave it out"
        )
    with reading(source):
        has = CsvFile.of(source, source.found.paths[0]).names()
    missing = [name for name in own.types if name not in has]
    if missing:
        raise ConditionError(
            f"--{side}-csv type={missing[0]}: {source.text} has no such column; it has"
            f" {', '.join(map(repr, has))}"
        )


def _parts(option: str, text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in _pairs(option, text or ""):
        name = word.replace("-", "_")
        if name in _LISTS:
            found.setdefault(f"csv_{name}", []).append(value)
        elif name in _SINGLE:
            found[f"csv_{name}"] = _number(option, value) if name == "skip" else value
        else:
            known = ", ".join(sorted((*_SINGLE, *_LISTS))).replace("_", "-")
            raise ConditionError(f"{option}: {word!r} is none of {known}")
    return found


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConditionError(f"{option}: {error} in {text!r}; quote it twice") from None
    parts = [word.partition("=") for word in words]
    for word, (name, sign, value) in zip(words, parts, strict=True):
        if not (name and sign and value):
            raise ConditionError(
                f"{option} takes NAME=VALUE, such as 'delimiter=; null=NA'; found {word!r}"
            )
    return [(name, value) for name, _, value in parts]


def _number(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConditionError(f"{option}: skip takes a number of lines; found {text!r}") from None
