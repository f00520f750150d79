"""Slips in a condition on pairs, and what to write: its quotes and signs, and the types that meet in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from sqlglot import Token, TokenType, exp

from coincide.engine.events.ticks import written_time
from coincide.engine.join.where_types import Kind, class_of

_SIGNS = {
    ("=", "<"): "<=", ("=", ">"): ">=", ("=>",): ">=", ("=", "!"): "<>", ("!", "="): "<>",
    (">", "<"): "<>", ("!", "<"): ">=", ("!", ">"): "<=", ("&&",): "AND",
    ("||",): "OR, if that is meant; texts are not joined",
    ("≤",): "<=", ("≥",): ">=", ("≠",): "<>",
}  # fmt: skip
"""Signs that SQL does not know, and what is meant."""
_ARGUMENTS = {"abs": 1, "lower": 1, "upper": 1, "length": 1, "trim": 1, "coalesce": None}
"""How many each function takes; None for one or more."""
_QUOTED = re.compile(
    r"""'(?:[^']|'')*(?:'|$)|`[^`]*(?:`|$)|(?P<mark>["“”‘’])(?P<inner>.*?)(?:["“”]|(?<!")’(?!\w)|$)""",
    re.DOTALL,
)
_ORDERS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_SUMS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_LOGIC: dict[type[exp.Expr], str] = {exp.And: "AND", exp.Or: "OR", exp.Not: "NOT"}
_OF_TEXT = (exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Like)
_NUMBERS = ("whole", "float", "decimal")
_TIMES = {"timestamp": "TIMESTAMP '2024-01-31T12:00:00'", "date": "DATE '2024-01-31'"}


def wrong_quotes(text: str) -> str:
    """Which quotes of a text are not those of SQL's texts, and the cure; empty if all are."""
    for found in _QUOTED.finditer(text):
        if found["mark"]:
            inner = found["inner"]
            as_text = inner.replace("'", "''")
            return (
                f"{found['mark']} does not quote texts. Write '{as_text}' if it is a text, and `{inner}`"
                " if it is a name"
            )
    return ""


def wrong_signs(tokens: Sequence[Token]) -> str:
    """Which signs SQL does not know, and the cure; empty if it knows all."""
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    texts = ["" if each.token_type in quoted else each.text for each in tokens]
    for one, other in pairwise([*texts, ""]):
        for signs in ((one, other), (one,)):
            if meant := _SIGNS.get(signs):
                return f"{''.join(signs)!r} is not a sign of SQL. Write {meant}"
    return ""


def wrong_calls(tokens: Sequence[Token], prefix: str) -> str:
    """Which call has too few or too many arguments, and the cure; empty if none has."""
    # `prefix`: how the name of a column may begin.
    for i, (one, other) in enumerate(pairwise(tokens)):
        name = one.text.lower()
        if other.token_type == TokenType.L_PAREN and name in _ARGUMENTS:
            found, takes = _arguments(tokens[i + 2 :]), _ARGUMENTS[name]
            if found == 0 or (found is not None and takes not in (None, found)):
                more = "" if takes else " or more"
                return f"{name} takes 1 argument{more} (found {found}). Write {name}({prefix}_...)"
    return ""


def _arguments(tokens: Sequence[Token]) -> int | None:
    """How many arguments a call has whose parenthesis is open; None if it does not end."""
    depth, commas = 0, 0
    for i, each in enumerate(tokens):
        if each.token_type == TokenType.R_PAREN:
            if depth == 0:
                return commas + 1 if i else 0
            depth -= 1
        depth += each.token_type == TokenType.L_PAREN
        commas += each.token_type == TokenType.COMMA and depth == 0
    return None


@dataclass(frozen=True)
class Misfit:
    """A part of a condition that has no value, for the types of what is in it."""

    part: exp.Expr
    kind_of: Callable[[exp.Expr], Kind]
    printed: Callable[[exp.Expr], str]

    def words(self) -> str:
        """What is wrong, and what to write."""
        part = self.part
        if word := _LOGIC.get(type(part)):
            return self._of_logic(word)
        if isinstance(part, _OF_TEXT):
            name = "LIKE" if isinstance(part, exp.Like) else part.sql_name().lower()
            can = ("whole", "decimal", "boolean", "date")
            return self._of_one(name, "a text", "STRING", can)
        if isinstance(part, (exp.Abs, exp.Neg)):
            return self._of_one(
                "abs" if isinstance(part, exp.Abs) else "-", "a number", "DOUBLE", ("text",)
            )
        if isinstance(part, exp.Cast):
            is_literal = isinstance(part.this, exp.Literal)
            cure = "Correct the text" if is_literal else "Compare it as it is, without CAST"
            return f"{self._told(part.this)}. {cure}"
        first, *others = self._operands()
        for other in others:
            if _are_unlike(self.kind_of(first), self.kind_of(other)):
                return f"{self._told(first, other)}. {self._cure(first, other)}"
        sign = _SUMS.get(type(part))
        cure = f"Use numbers with {sign}" if sign else "Compare texts, numbers or times"
        if sign == "+" and self._class(first) in _TIMES:
            cure = (
                "Add a duration, such as INTERVAL '5' SECOND, or subtract one time from the other"
            )
        return f"{self._told(first, *others)}. {cure}"

    def _of_logic(self, word: str) -> str:
        part = self.part
        operands = part.flatten() if isinstance(part, exp.Connector) else [part.this]
        wrong = next(each for each in operands if self._class(each) != "boolean")
        than = {"text": "'a'"}.get(str(self._class(wrong))) or self._time_like(wrong) or "1"
        return (
            f"{word} takes what is true or false (found {self._typed(wrong)}). Compare it with"
            f" something, such as {self.printed(wrong)} = {than}"
        )

    def _of_one(self, name: str, what: str, cast: str, can: Sequence[str]) -> str:
        given = self.part.this
        is_cast = self._class(given) in can
        cure = f"Write CAST({self.printed(given)} AS {cast})" if is_cast else f"Use it for {what}"
        return f"{name} takes {what} (found {self._typed(given)}). {cure}"

    def _cure(self, one: exp.Expr, other: exp.Expr) -> str:
        """What to write where two values of unlike types meet."""
        part, printed = self.part, self.printed
        sign = _ORDERS.get(type(part))
        if sign and type(one) in _ORDERS:
            return f"Write {printed(one)} AND {printed(one.expression)} {sign} {printed(other)}"
        found = {self._class(each): each for each in (one, other)}
        if len(found) == 1:
            return "Give both an offset, as in TIMESTAMP '2024-01-31T12:00:00Z', or none"
        if "text" in found:
            text = found.pop("text")
            ((own, value),) = found.items()
            return self._cure_of_text(text, str(own), value)
        time = next((each for each in _TIMES if each in found), None)
        if time and isinstance(part, (exp.Add, exp.Sub)):
            return "Add or subtract a duration, such as INTERVAL '5' SECOND"
        if type(part) in _SUMS:
            return f"Use numbers with {_SUMS[type(part)]}"
        if time:
            return f"Compare it with a time, such as {self._time_like(found[time])}"
        if "boolean" in found:
            return self._alone(found["boolean"])
        return "Compare values of one type"

    def _cure_of_text(self, text: exp.Expr, own: str, value: exp.Expr) -> str:
        """What to write where a text meets a value of another class."""
        printed = self.printed
        if own == "boolean":
            return self._alone(value)
        if own == "duration":
            return "Write INTERVAL '5' SECOND"
        if own in _TIMES:
            return self._as_time(text, own, self.kind_of(value))
        if own in _NUMBERS and not isinstance(text, exp.Literal):
            can_be_text = isinstance(value, exp.Literal) and type(self.part) not in _SUMS
            quoted = f"'{value.name}', or " if can_be_text else ""
            return f"Write {quoted}CAST({printed(text)} AS DOUBLE)"
        if own in _NUMBERS:
            cast = f", or CAST({printed(value)} AS STRING)" if own != "float" else ""
            return f"Write a number, without quotes{cast}"
        return "Compare values of one type"

    def _as_time(self, text: exp.Expr, own: str, kind: Kind) -> str:
        word, has_zone = own.upper(), _has_zone(kind)
        if isinstance(text, exp.Literal):
            time = written_time(text.name)
            if time is not None and (own == "date" or (time.type.tz is not None) == has_zone):
                return f"Write {word} '{text.name}'"
        elif own == "date":
            return f"Write CAST({self.printed(text)} AS DATE)"
        return f"Compare it with a time, such as {_example(own, kind)}"

    def _time_like(self, node: exp.Expr) -> str | None:
        """A time of the type of a node, as one writes it; None if it is no time."""
        return _example(str(self._class(node)), self.kind_of(node))

    def _alone(self, value: exp.Expr) -> str:
        return f"Write {self.printed(value)} alone, or NOT {self.printed(value)}"

    def _operands(self) -> list[exp.Expr]:
        names = ("this", "expression", "low", "high")
        values = [self.part.args.get(name) for name in names]
        more = self.part.args.get("expressions") or ()
        return [each for each in (*values, *more) if isinstance(each, exp.Expr)]

    def _class(self, node: exp.Expr) -> str | None:
        kind = self.kind_of(node)
        return None if kind is None else class_of(kind)

    def _told(self, *nodes: exp.Expr) -> str:
        return f"{self.printed(self.part)} has no value (found {self._typed(*nodes)})"

    def _typed(self, *nodes: exp.Expr) -> str:
        return ", ".join(f"{self.printed(node)}: {_name(self.kind_of(node))}" for node in nodes)


def _name(kind: Kind) -> str:
    if kind is not None and pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return str(kind)


def _has_zone(kind: Kind) -> bool:
    return isinstance(kind, pa.TimestampType) and kind.tz is not None


def _example(own: str, kind: Kind) -> str | None:
    """A time of a class, as one writes it; None of no time."""
    example = _TIMES.get(own)
    return f"{example[:-1]}Z'" if example and _has_zone(kind) else example


def _are_unlike(one: Kind, other: Kind) -> bool:
    if one is None or other is None:
        return False
    own, others = class_of(one), class_of(other)
    if own in _TIMES and others in _TIMES:
        return _has_zone(one) != _has_zone(other)
    return own != others and not (own in _NUMBERS and others in _NUMBERS)
