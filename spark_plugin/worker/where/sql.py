"""A strict subset of SQL as Arrow expressions: what means the same on Spark and in a worker."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from coincide.errors import ConditionError, brief
from spark_plugin.worker.where.kinds import (
    UNITS,
    Fields,
    Kind,
    cast,
    interval,
    kind_of,
    product,
    quotient,
    unlike,
)
from spark_plugin.worker.where.pair_columns import SIDES_ALONE, PairColumns

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<text>'(?:[^']|'')*')|(?P<quoted>`(?:[^`]|``)+`)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>--|<=>|<=|>=|<>|!=|==|[-+*/(),=<>]))"
)
_WORDS = {"AND", "OR", "NOT", "IS", "NULL", "IN", "BETWEEN", "LIKE", "TRUE", "FALSE"}
_COMPARISONS: dict[str, Callable[[Any, Any], pc.Expression]] = {
    "=": lambda a, b: a == b, "==": lambda a, b: a == b, "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_FUNCTIONS: dict[str, tuple[int, Callable[..., pc.Expression]]] = {
    "abs": (1, pc.abs_checked), "lower": (1, pc.utf8_lower), "upper": (1, pc.utf8_upper),
    "length": (1, pc.utf8_length), "trim": (1, lambda text: pc.utf8_trim(text, characters=" ")),
    "coalesce": (0, pc.coalesce),
}  # fmt: skip
_UNDERSTOOD = (
    "Comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, + - * /, abs, lower, upper, length, trim,"
    " coalesce, CAST, and TIMESTAMP, DATE and INTERVAL literals are understood; an Arrow expression can"
    " say more"
)


def expression_of(
    text: str, pair: PairColumns = SIDES_ALONE, fields: Fields | None = None
) -> tuple[pc.Expression, list[str]]:
    """What a condition in SQL is in Arrow, and the names that it uses.

    Nulls count as they do in SQL: a comparison with one is neither true nor false.

    Parameters
    ----------
    text : str
    pair : PairColumns
    fields : mapping of str to pa.DataType or None
        The columns of a pair; None where nobody knows them yet, and text alone is checked.

    Raises
    ------
    ConditionError
        If it is none of the subset.
    """
    reader = _Reader(text, pair, fields or {})
    try:
        found = reader.disjunction()
    except RecursionError:
        raise ConditionError(
            f"where={brief(text)}: too many parentheses within each other; an Arrow expression can say more"
        ) from None
    reader.check_end()
    return found, list(dict.fromkeys(reader.names))


class _Reader:
    """Reads a text from left to right, a method for each level of precedence."""

    def __init__(self, text: str, pair: PairColumns, fields: Fields) -> None:
        self._text, self._pair, self._fields = text, pair, fields
        self._tokens = list(_tokens(text, pair))
        self._at = 0
        self.names: list[str] = []

    def disjunction(self) -> pc.Expression:
        found = self._conjunction()
        while self._takes("OR"):
            found = found | self._conjunction()
        return found

    def check_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error(f"{self._tokens[self._at][1]!r} is not expected there")

    def _conjunction(self) -> pc.Expression:
        found = self._negation()
        while self._takes("AND"):
            found = found & self._negation()
        return found

    def _negation(self) -> pc.Expression:
        return ~self._negation() if self._takes("NOT") else self._predicate()

    def _predicate(self) -> pc.Expression:
        own = self._sum()
        kind, sign = self._next
        if kind == "sign" and sign in _COMPARISONS:
            self._at += 1
            return _COMPARISONS[sign](own, self._like(own, self._sum()))
        if self._takes("IS"):
            negated = self._takes("NOT")
            self._expects("NULL")
            return ~own.is_null() if negated else own.is_null()
        negated = self._takes("NOT")
        if self._takes("BETWEEN"):
            low = self._like(own, self._sum())
            self._expects("AND")
            found = (own >= low) & (own <= self._like(own, self._sum()))
        elif self._takes("IN"):
            found = self._any_of(own)
        elif self._takes("LIKE"):
            found = pc.match_like(own, self._literal_text())
        elif negated:
            raise self._error("NOT is followed by IN, BETWEEN or LIKE there")
        else:
            return own
        return ~found if negated else found

    def _any_of(self, own: pc.Expression) -> pc.Expression:
        """As comparisons, so that nulls count as in SQL."""
        self._expects("(")
        found = own == self._like(own, self._sum())
        while self._takes(","):
            found = found | (own == self._like(own, self._sum()))
        self._expects(")")
        return found

    def _sum(self) -> pc.Expression:
        found = self._product()
        while self._next[1] in ("+", "-") and self._next[0] == "sign":
            adds = self._takes("+") or not self._takes("-")
            other = self._like(found, self._product())
            found = found + other if adds else found - other
        return found

    def _like(self, own: pc.Expression, other: pc.Expression) -> pc.Expression:
        """The second of two expressions, if it can stand beside the first."""
        if why := unlike(self._kinds(own, other)):
            raise self._error(why)
        return other

    def _kinds(self, *given: pc.Expression) -> tuple[Kind, Kind]:
        own, other = (kind_of(each, self._used()) if self._fields else None for each in given)
        return own, other

    def _used(self) -> Fields:
        return {name: self._fields[name] for name in self.names if name in self._fields}

    def _product(self) -> pc.Expression:
        found = self._factor()
        while self._next[1] in ("*", "/") and self._next[0] == "sign":
            multiplies = self._takes("*") or not self._takes("/")
            other = self._factor()
            kinds = self._kinds(found, other)
            found = product(found, other, kinds) if multiplies else quotient(found, other, kinds)
        return found

    def _factor(self) -> pc.Expression:
        if self._takes("-"):
            kind, word = self._next
            if kind == "number":
                self._at += 1
                return self._number("-" + word)
            return pc.negate_checked(self._factor())
        if self._takes("("):
            found = self.disjunction()
            self._expects(")")
            return found
        kind, word = self._next
        self._at += 1
        if kind == "number":
            return self._number(word)
        if kind == "text":
            return pc.scalar(_unquoted(word))
        if kind == "quoted":
            return self._column(word[1:-1].replace("``", "`"))
        if kind == "word":
            return self._word(word)
        self._at -= 1
        raise self._error(
            "it ends too early" if kind == "end" else f"{word!r} is not expected there"
        )

    def _number(self, word: str) -> pc.Expression:
        if re.search(r"[.eE]", word):
            return pc.scalar(float(word))
        if not -(2**63) <= int(word) < 2**63:
            raise self._error(f"{word} is beyond whole numbers of 64 bits")
        return pc.scalar(int(word))

    def _word(self, word: str) -> pc.Expression:
        upper = word.upper()
        if upper in ("TRUE", "FALSE"):
            return pc.scalar(upper == "TRUE")
        if upper == "NULL":
            return pc.scalar(None)
        if upper in ("TIMESTAMP", "DATE") and self._next[0] == "text":
            return self._time(upper)
        if upper == "INTERVAL" and self._next[0] in ("text", "number"):
            return self._interval()
        if upper == "CAST" and self._next[1] == "(":
            return self._cast()
        if self._next[1] == "(" and word.lower() in _FUNCTIONS:
            return self._call(word.lower())
        if self._next[1] == "(" and upper not in _WORDS:
            raise self._error(f"{word} is no function that is known")
        if upper in _WORDS:
            self._at -= 1
            raise self._error(f"{word!r} is not expected there")
        return self._column(word)

    def _call(self, name: str) -> pc.Expression:
        self._expects("(")
        given = [self._sum()]
        while self._takes(","):
            given.append(self._sum())
        self._expects(")")
        count, function = _FUNCTIONS[name]
        if count and len(given) != count:
            raise self._error(f"{name} takes {count} argument; found {len(given)}")
        return function(*given)

    def _time(self, kind: str) -> pc.Expression:
        text = self._literal_text()
        try:
            found = dt.datetime.fromisoformat(text)
        except ValueError:
            raise self._error(
                f"{text!r} is no {kind.lower()}, as 2024-01-31T12:00:00Z is"
            ) from None
        return pc.scalar(found.date() if kind == "DATE" else found)

    def _interval(self) -> pc.Expression:
        """One number and unit, or several, as in INTERVAL '1' HOUR 30 MINUTES; or both in quotes."""
        found: pc.Expression | None = None
        while found is None or self._next[0] in ("text", "number"):
            kind, word = self._next
            self._at += 1
            number, _, unit = (
                _unquoted(word).strip().partition(" ") if kind == "text" else (word, "", "")
            )
            if not unit.strip():
                unit = self._next[1]
                self._at += 1
            size = interval(number, unit.strip())
            if size is None:
                raise self._error(
                    f"INTERVAL takes a number and one of {UNITS}, as INTERVAL '5' SECOND; found"
                    f" {word} {unit}".rstrip()
                )
            found = pc.scalar(size) if found is None else found + pc.scalar(size)
        return found

    def _cast(self) -> pc.Expression:
        self._expects("(")
        given = self.disjunction()
        self._expects("AS")
        word = self._next[1]
        self._at += 1
        self._expects(")")
        found, why = cast(given, word, self._kinds(given, given)[0])
        if found is None:
            raise self._error(why)
        return found

    def _column(self, name: str) -> pc.Expression:
        if not self._pair.knows(name):
            known = [f"{prefix}_{name}" for prefix in self._pair.prefixes]
            known += [measure for measure, _ in self._pair.measures]
            raise self._error(
                f"{name!r} is no column of a pair: say {' or '.join(known)}, and quote texts as 'a'"
            )
        self.names.append(name)
        return pc.field(name)

    def _literal_text(self) -> str:
        kind, word = self._next
        if kind != "text":
            raise self._error(f"a text in single quotes belongs before {word!r}")
        self._at += 1
        return _unquoted(word)

    @property
    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _takes(self, word: str) -> bool:
        kind, found = self._next
        is_it = kind in ("word", "sign") and found.upper() == word
        self._at += is_it
        return is_it

    def _expects(self, word: str) -> None:
        if not self._takes(word):
            found = self._next[1]
            raise self._error(
                f"{word} is missing before {found!r}" if found else f"{word} is missing"
            )

    def _error(self, what: str) -> ConditionError:
        return ConditionError(f"where={brief(self._text)}: {what}. {_UNDERSTOOD}")


def _tokens(text: str, pair: PairColumns) -> Any:
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConditionError(
                f"where={brief(text)}: {text[at:].strip()[:1]!r} is not expected there. Columns of a"
                f" pair are called {pair.words}: names with other characters than letters, digits and _"
                " stand in backticks, texts in single quotes"
            )
        yield found.lastgroup, found[str(found.lastgroup)]
        at = found.end()


def _unquoted(word: str) -> str:
    return word[1:-1].replace("''", "'")
