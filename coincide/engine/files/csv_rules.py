"""How CSV is written, as far as a user says it: delimiter, quotes, nulls, types, names, encoding."""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from coincide.engine.events.keys import parted, plain
from coincide.engine.files.csv_texts import REPEATED_HOURS, check_format, clock_type
from coincide.model.errors import ConditionError
from coincide.model.options import check_choice

COMMA, TAB = ",", "\t"
_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""What `--csv-type` knows: a timestamp is an instant, with an offset; without one it is a wall clock's.

``timestamp@ZONE`` are times without an offset, of clocks of a zone; ``decimal(10,2)`` has 10 digits,
2 of them after the point."""
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_MOST_DIGITS = 38
_ALIASES = {"string": "text", "int": "integer", "double": "float", "bool": "boolean"}
_WORDS = {"tab": TAB, "\\t": TAB, "space": " ", "comma": COMMA, "semicolon": ";", "bar": "|"}
_PREFIX = "csv_"
_OF_TIMES = ("time_format", "repeated_hour")
"""Options of CSV whose names do not say so."""


@dataclass(frozen=True)
class CsvRules:
    """How CSV is read."""

    delimiter: str = ""
    quote: str = '"'
    decimal: str = "."
    nulls: tuple[str, ...] = ()
    types: Mapping[str, pa.DataType] = field(default_factory=dict, hash=False)
    names: tuple[str, ...] = ()
    skip: int = 0
    comment: str = ""
    encoding: str = "utf8"
    time_format: str = ""
    repeated_hour: str = ""
    drops: bool = False
    said: tuple[str, ...] = ()

    def of_words(self, nanoseconds: bool) -> dict[str, pa.DataType]:
        """The types that were given, timestamps in nanoseconds where these count."""
        return {
            name: pa.timestamp("ns", kind.tz)
            if nanoseconds and pa.types.is_timestamp(kind)
            else kind
            for name, kind in self.types.items()
        }

    def parse_options(self, skipped: Callable[[object], object] = id) -> csv.ParseOptions:
        """PyArrow's; it gives `skipped` each line that is left out."""
        # Without it a line break in quotes is an error, but only where a block happens to end.
        return csv.ParseOptions(
            delimiter=self.delimiter or COMMA,
            quote_char=self.quote or False,
            newlines_in_values=True,
            invalid_row_handler=partial(_skip_line, skipped) if self.drops else None,
        )

    @property
    def read_encoding(self) -> str:
        """What files are opened in: without comments they are in UTF-8."""
        return "utf8" if self.comment else self.encoding

    def read_options(self, **more: object) -> csv.ReadOptions:
        """PyArrow's."""
        names = list(self.names) or None
        return csv.ReadOptions(
            column_names=names, skip_rows=self.skip, encoding=self.read_encoding, **more
        )

    def convert_options(self, **more: object) -> csv.ConvertOptions:
        """PyArrow's."""
        return csv.ConvertOptions(
            null_values=["", *self.nulls], strings_can_be_null=True, quoted_strings_can_be_null=True,
            true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"],
            decimal_point=self.decimal, **more,
        )  # fmt: skip


def _skip_line(skipped: Callable[[object], object], line: csv.InvalidRow) -> str:
    skipped(line)
    return "skip"


PLAIN = CsvRules()
"""The rules of a user who gives none."""
BY_COMMAS = CsvRules(delimiter=COMMA)


def csv_rules(words: Mapping[str, Any]) -> CsvRules:
    """The rules of the options of a command."""
    own = {key: value for key, value in words.items() if key.startswith(_PREFIX)}
    said = [key for key, value in own.items() if value not in (None, [], 0)]
    given = {key.removeprefix(_PREFIX): own[key] for key in said}
    found: dict[str, Any] = {}
    for name in ("delimiter", "quote", "decimal", "comment"):
        if name in given:
            found[name] = _character(f"--csv-{name}", given[name], may_be_none=name == "quote")
    if "null" in given:
        found["nulls"] = tuple(given["null"])
    if "type" in given:
        found["types"] = dict(_typed(word) for word in given["type"])
    if "names" in given:
        found["names"] = _names(given["names"])
    if "skip" in given:
        found["skip"] = _not_negative(given["skip"])
    if "encoding" in given:
        found["encoding"] = _encoding(given["encoding"])
    if "time_format" in given:
        found["time_format"] = check_format(_option("csv_time_format"), given["time_format"])
    if "repeated_hour" in given:
        check_choice("--repeated-hour", given["repeated_hour"], REPEATED_HOURS)
        found["repeated_hour"] = given["repeated_hour"]
    drops = words.get("invalid") == "drop"
    return CsvRules(**found, drops=drops, said=tuple(map(_option, said)))


def _option(word: str) -> str:
    """As it is typed."""
    bare = word.removeprefix(_PREFIX)
    return "--" + (bare if bare in _OF_TIMES else word).replace("_", "-")


def _character(option: str, text: str, *, may_be_none: bool) -> str:
    if may_be_none and text.lower() == "none":
        return ""
    found = _WORDS.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found in "\r\n":
        none = ", or none" if may_be_none else ", or one of tab, space, comma, semicolon, bar"
        raise ConditionError(f"{option} takes one character{none} (found {text!r}).")
    return found


def _typed(word: str) -> tuple[str, pa.DataType]:
    name, sign, kind = word.rpartition("=")
    if not sign or not name:
        raise ConditionError(f"--csv-type takes COLUMN=TYPE, such as key=text (found {word!r}).")
    clock, sign, zone = kind.partition("@")
    if sign and clock.lower() == "timestamp":
        return name, clock_type(f"--csv-type {name}", zone)
    kind = _ALIASES.get(kind.lower(), kind.lower())
    if found := _DECIMAL.fullmatch(kind):
        return name, _decimal(word, name, *found.groups())
    check_choice(f"--csv-type {name}", kind, (*_TYPES, "decimal(10,2)"))
    return name, _TYPES[kind]


def _decimal(word: str, name: str, digits: str | None, places: str | None) -> pa.DataType:
    precision, scale = int(digits or 0), int(places or 0)
    if not (1 <= precision <= _MOST_DIGITS and scale <= precision):
        raise ConditionError(
            f"--csv-type takes a decimal with its digits, 1 to {_MOST_DIGITS}, and how many of them are"
            f" after the point (found {word!r}). Write {name}=decimal(10,2), in quotes."
        )
    return pa.decimal128(precision, scale)


def type_word(kind: pa.DataType) -> str:
    """How a type of times or decimals is said by ``--csv-type``."""
    if pa.types.is_decimal(kind):
        return f"'decimal({kind.precision},{kind.scale})'"
    found = next((word for word, each in _TYPES.items() if each == kind), None)
    return found or f"timestamp@{kind.tz}"


def _names(words: Sequence[str]) -> tuple[str, ...]:
    found = [plain(name) for word in words for name in parted(word, ",")]
    if not all(found) or len(set(found)) < len(found):
        raise ConditionError(
            f"--csv-names takes the names of all columns, each once (found {','.join(words)!r})."
        )
    return tuple(found)


def _not_negative(number: int) -> int:
    if number < 0:
        raise ConditionError(
            f"--csv-skip takes the number of lines above the header (found {number})."
        )
    return number


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise ConditionError(
            "--csv-encoding takes an encoding that Python knows, such as latin-1, cp1252 or"
            f" utf-16 (found {name!r})."
        ) from None


def check_apart(side: str, rules: CsvRules) -> None:
    """Refuse one character for two things; the delimiter may be that of the files' names."""
    marks = {"--csv-delimiter": rules.delimiter, "--csv-decimal": rules.decimal}
    marks |= {"--csv-quote": rules.quote} if rules.quote else {}
    marks |= {"--csv-comment": rules.comment} if rules.comment else {}
    for option, mark in marks.items():
        other = next((o for o, m in marks.items() if m == mark and o != option), None)
        if other:
            raise ConditionError(
                f"{side}: {option} and {other} must differ (found {mark!r} twice). Use another one, such"
                " as --csv-delimiter ';'."
            )


_SIDES = ("left", "right", "causes", "effects", "readings", "queries")
"""Inputs that have an option of their own for how they are written."""


def advice(side: str, rules: CsvRules, **settings: str) -> str:
    """The options to use for an input, and where there is another input for this one alone."""
    typed = {f"--csv-{name}": value for name, value in settings.items()}
    of_all = " ".join(f"{flag} {shlex.quote(value)}" for flag, value in typed.items())
    if side not in _SIDES:
        return of_all
    own = " ".join(f"{name}={value}" for name, value in settings.items())
    of_side = f"--{side}-csv {shlex.quote(own)}"
    # What is said of all inputs is true of the other one.
    is_said = not {*typed}.isdisjoint(rules.said)
    return of_side if is_said else f"{of_all}, or {of_side} if the other input differs"


_SINGLE = (
    *(
        "delimiter",
        "quote",
        "decimal",
        "skip",
        "comment",
        "encoding",
        "time_format",
        "repeated_hour",
    ),
)
_LISTS = ("null", "type", "names")


def side_rules(words: Mapping[str, Any], side: str) -> tuple[CsvRules, CsvRules]:
    """The rules of one side, and what of them is said of this side alone."""
    option = f"--{side}-csv"
    own = _parts(option, words.get(f"{side}_csv"))
    try:
        return csv_rules({**words, **own}), csv_rules(own)
    except ConditionError as error:
        if not own:
            raise
        raise ConditionError(f"{option}: {error}") from None


def _parts(option: str, text: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, value in _pairs(option, text or ""):
        name = word.replace("-", "_")
        if name in _LISTS:
            found.setdefault(f"csv_{name}", []).append(value)
        elif name in _SINGLE:
            found[f"csv_{name}"] = _lines(option, value) if name == "skip" else value
        else:
            known = ", ".join(sorted((*_SINGLE, *_LISTS))).replace("_", "-")
            raise ConditionError(f"{option}: {word!r} is unknown. Use {known}.")
    return found


def _pairs(option: str, text: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConditionError(f"{option}: {error} in {text!r}. Quote it twice.") from None
    parts = [word.partition("=") for word in words]
    for word, (name, sign, value) in zip(words, parts, strict=True):
        if not (name and sign and value):
            raise ConditionError(
                f"{option} takes NAME=VALUE, such as 'delimiter=; null=NA' (found {word!r})."
            )
    return [(name, value) for name, _, value in parts]


def _lines(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConditionError(f"{option}: skip takes a number of lines (found {text!r}).") from None
