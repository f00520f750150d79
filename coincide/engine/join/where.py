"""A strict subset of SQL as Arrow expressions: what means the same on Spark and in a worker."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import TokenType, exp, parse_one, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from coincide.engine.events.ticks import written_time
from coincide.engine.join.delta import DELTA_NAMES
from coincide.engine.join.pair_columns import SIDES_ALONE, PairColumns
from coincide.engine.join.where_slips import Misfit, wrong_calls, wrong_quotes, wrong_signs
from coincide.engine.join.where_types import (
    UNITS,
    Fields,
    Kind,
    alike,
    cast,
    decimal,
    interval,
    kind_of,
    product,
    quotient,
    unlike,
)
from coincide.model.errors import ConditionError, argument

_UNDERSTOOD = (
    "Use comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, + - * /, abs, lower, upper,"
    " length, trim, coalesce, CAST, and TIMESTAMP, DATE and INTERVAL literals. In Python an Arrow"
    " expression can say more."
)
_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], pc.Expression]] = {
    exp.EQ: operator.eq, exp.NEQ: operator.ne, exp.LT: operator.lt, exp.LTE: operator.le,
    exp.GT: operator.gt, exp.GTE: operator.ge, exp.Add: operator.add, exp.Sub: operator.sub,
}  # fmt: skip
_FUNCTIONS_OF_TEXT: dict[type[exp.Expr], Callable[[Any], pc.Expression]] = {
    exp.Lower: pc.utf8_lower, exp.Upper: pc.utf8_upper, exp.Length: pc.utf8_length,
    exp.Trim: lambda text: pc.utf8_trim(text, characters=" "),
}  # fmt: skip


class _Conditions(Dialect):
    """Names in backticks, texts in single quotes, and a quote in a text twice."""

    class Tokenizer(tokens.Tokenizer):
        """Without quotes that are a name here and a text there."""

        QUOTES: ClassVar = ["'"]
        STRING_ESCAPES: ClassVar = ["'"]
        IDENTIFIERS: ClassVar = ["`"]


def expression_of(
    text: str,
    pair: PairColumns = SIDES_ALONE,
    fields: Fields | None = None,
    times: Container[str] = (),
) -> tuple[pc.Expression, list[str]]:
    """What a condition in SQL is in Arrow, and the names that it uses; times may be decimals."""
    # Nulls count as they do in SQL: a comparison with one is neither true nor false.
    tree, translation = _translation(text, pair, fields, times)
    try:
        found = translation.of(tree)
    except RecursionError:
        raise _too_deep(text) from None
    return found, list(dict.fromkeys(translation.columns))


def misfit(text: str, *known: Any) -> str:
    """Which part of a condition Arrow cannot compute, and what to write; empty if it can compute all."""
    tree, translation = _translation(text, *known)
    return translation.misfit(tree)


def _translation(
    text: str,
    pair: PairColumns,
    fields: Fields | None,
    times: Container[str],
) -> tuple[exp.Expr, _Translation]:
    try:
        tree = _parsed(text, pair)
        columns = [node.name for node in tree.find_all(exp.Column, bfs=False)]
        casts = any(node.to.is_type("decimal") for node in tree.find_all(exp.Cast))
    except RecursionError:
        raise _too_deep(text) from None
    return tree, _Translation(text, pair, fields or {}, times, columns, casts)


def _too_deep(text: str) -> ConditionError:
    return ConditionError(
        f"{argument('where', text)} has too many nested parentheses. Use an Arrow expression."
    )


def _parsed(text: str, pair: PairColumns) -> exp.Expr:
    if slip := wrong_quotes(text):
        raise _error(text, slip, "")
    try:
        tokens = _Conditions().tokenize(text)
        if slip := wrong_signs(tokens) or wrong_calls(tokens, pair.prefixes[0]):
            raise _error(text, slip, "")
        tree = parse_one(text, into=exp.Condition, dialect=_Conditions)
    except SqlglotError as error:
        raise _error(text, _why(error)) from None
    kinds = [token.token_type for token in tokens]
    # The parser lets a function end without its parenthesis.
    if kinds.count(TokenType.L_PAREN) > kinds.count(TokenType.R_PAREN):
        raise _error(text, ") is missing")
    if any(node.comments for node in tree.walk()):
        raise _error(text, "it has a comment, which -- or /* begins. Remove it", "")
    return tree


def _why(error: SqlglotError) -> str:
    """Where a text cannot be read."""
    known = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if not known:
        return "it is empty, or a quote is missing"
    place, what = known["highlight"], known["description"]
    if what.startswith("Expecting"):
        return f"{what.removeprefix('Expecting ')} is missing after {place!r}"
    if what.startswith("Required") and not known["end_context"].strip():
        return f"it ends too early, after {place!r}"
    return f"{place!r} is not expected there"


def _error(text: str, what: str, understood: str = f" {_UNDERSTOOD}") -> ConditionError:
    return ConditionError(f"{argument('where', text)}: {what}.{understood}")


@dataclass(frozen=True)
class _Translation:
    """A condition that is turned into Arrow, over columns of known types, or of types yet unknown."""

    text: str
    pair: PairColumns
    fields: Fields
    times: Container[str]
    columns: list[str]
    casts: bool  # to decimals

    def of(self, node: exp.Expr) -> pc.Expression:
        """What a node of the tree is."""
        kind = type(node)
        method = _METHODS.get(kind)
        if method is None:
            raise self._error(f"{_words(node)} is unknown")
        takes = {"this", "negate", *_MORE.get(kind, ())}
        # What says how to print or to fail is no part of the condition.
        more = [name for name, value in node.args.items() if value and name not in takes]
        if more:
            raise self._error(f"{_words(node)} is not taken in that form")
        found = method(self, node)
        return ~found if node.args.get("negate") else found

    def misfit(self, node: exp.Expr) -> str:
        """What is wrong with the smallest part that has no value for its types."""
        for part in _inner_first(node):
            if type(part) in _METHODS and self._kind(part) is None:
                return Misfit(part, self._kind, _printed).words()
        return ""

    def _kind(self, node: exp.Expr) -> Kind:
        return kind_of(self.of(node), self._used)

    def _booleans(self, node: exp.Connector) -> list[pc.Expression]:
        return [self._typed(self.of(each), pa.bool_()) for each in node.flatten()]

    def _compared(self, node: exp.Expr) -> pc.Expression:
        return _COMPARISONS[type(node)](*self._alike(node.this, node.expression))

    def _is(self, node: exp.Is) -> pc.Expression:
        if not isinstance(node.expression, exp.Null):
            raise self._error(f"IS takes NULL or NOT NULL (found {node.expression.sql()})")
        return self.of(node.this).is_null()

    def _between(self, node: exp.Between) -> pc.Expression:
        least, low = self._alike(node.this, node.args["low"])
        most, high = self._alike(node.this, node.args["high"])
        return (least >= low) & (most <= high)

    def _in(self, node: exp.In) -> pc.Expression:
        """As comparisons, so that nulls count as in SQL."""
        if not node.expressions:
            raise self._error("IN takes values in parentheses, like IN (1, 2)")
        pairs = (self._alike(node.this, each) for each in node.expressions)
        return reduce(operator.or_, (own == other for own, other in pairs))

    def _like(self, node: exp.Like) -> pc.Expression:
        if not _is_text(node.expression):
            raise self._error("LIKE takes a text in single quotes, like LIKE 'a%'")
        return pc.match_like(self._typed(self.of(node.this), pa.string()), node.expression.name)

    def _factors(self, node: exp.Binary) -> tuple[pc.Expression, pc.Expression, tuple[Kind, Kind]]:
        one, other = self.of(node.this), self.of(node.expression)
        own, others = self._kinds(one, other)
        return one, other, (own, others)

    def _of_text(self, node: exp.Expr) -> pc.Expression:
        return _FUNCTIONS_OF_TEXT[type(node)](self._typed(self.of(node.this), pa.string()))

    def _literal(self, node: exp.Literal) -> pc.Expression:
        return pc.scalar(node.name) if node.is_string else self._number(node.name)

    def _neg(self, node: exp.Neg) -> pc.Expression:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._number(f"-{node.this.name}")
        return pc.negate_checked(self.of(node.this))

    def _alike(self, *nodes: exp.Expr) -> list[pc.Expression]:
        """Expressions as they go with each other, if they do."""
        given = [self.of(node) for node in nodes]
        kinds = self._kinds(*given)
        if why := unlike(kinds):
            raise _error(self.text, f"{why}. {self._cure_of_duration(nodes, kinds)}", "")
        return alike(given, kinds, pa.int64())

    def _cure_of_duration(self, nodes: Sequence[exp.Expr], kinds: list[Kind]) -> str:
        """What to write for a number that meets a duration."""
        durations = [pa.types.is_duration(kind) for kind in kinds]
        has_column = [node.find(exp.Column) is not None for node in nodes]
        if not any(given for given, is_one in zip(has_column, durations, strict=True) if is_one):
            number = nodes[durations.index(False)]
            return f"Write the duration as a number in the unit of {_printed(number)}"
        return (
            "Write the number as INTERVAL '5' SECOND, or divide the duration by INTERVAL '1' SECOND"
        )

    def _typed(self, given: pc.Expression, kind: pa.DataType) -> pc.Expression:
        """An expression as it is, but nulls of no type in one."""
        if not any(map(pa.types.is_null, self._used.values())):
            return given
        return alike([given], self._kinds(given), kind)[0]

    def _kinds(self, *given: pc.Expression) -> list[Kind]:
        return [kind_of(each, self._used) if self.fields else None for each in given]

    @property
    def _used(self) -> Fields:
        return {name: self.fields[name] for name in self.columns if name in self.fields}

    def _number(self, word: str) -> pc.Expression:
        has_point = re.search(r"[.eE]", word) is not None
        is_large = not (has_point or _is_in_64_bits(int(word)))
        # A large number goes with decimals alone; as long as no types are known, it may.
        has_decimals = self.casts or any(map(pa.types.is_decimal, self._used.values()))
        is_exact = has_decimals or (is_large and not self.fields)
        exact = decimal(word) if is_exact and (has_point or is_large) else None
        if exact is not None:
            return exact
        if is_large:
            raise self._error(f"{word} is beyond whole numbers of 64 bits")
        return pc.scalar(float(word) if has_point else int(word))

    def _interval(self, node: exp.Interval) -> pc.Expression:
        """One number and unit, or several, as in INTERVAL '1' HOUR 30 MINUTES; or all in quotes."""
        said = f"{node.this.name if _is_text(node.this) else '?'} {node.text('unit')}"
        words = said.split()
        sizes = [interval(*each) for each in zip(words[::2], words[1::2], strict=False)]
        if len(words) % 2 or None in sizes or not sizes:
            raise self._error(
                f"INTERVAL takes a number and one of {UNITS}, like INTERVAL '5' SECOND (found"
                f" {said.strip()})"
            )
        return reduce(operator.add, map(pc.scalar, sizes))

    def _cast(self, node: exp.Cast) -> pc.Expression:
        word = str(node.to.sql(dialect="spark")).upper()
        if _is_text(node.this) and word in ("DATE", "TIMESTAMP"):
            return self._time(node.this.name, word)
        given = self.of(node.this)
        kind = self._kinds(given)[0]
        of_times = any(each.name in self.times for each in node.find_all(exp.Column))
        if of_times and word == "STRING" and kind is not None and pa.types.is_decimal(kind):
            # Whatever of a time is a decimal was a float, and is printed in as many ways.
            kind = pa.float64()
        found, why = cast(given, word, kind)
        if found is None:
            raise self._error(why)
        return found

    def _time(self, text: str, word: str) -> pc.Expression:
        found = written_time(text)
        if found is None:
            raise self._error(
                f"{text!r} is not a {word.lower()}. Write it like 2024-01-31T12:00:00Z"
            )
        if word == "DATE":  # that of the place where it was written
            found = pa.scalar(text[:10]).cast(pa.date32())
        return pc.scalar(found)

    def _column(self, node: exp.Column) -> pc.Expression:
        name = node.name
        # Other letters than those of the data are refused where its columns are known.
        if len(node.parts) > 1 or not self.pair.knows(name):
            known = [f"{prefix}_{name}" for prefix in self.pair.prefixes]
            known += self.pair.words_of_measures
            deltas = [measure for measure, _ in self.pair.measures if measure in DELTA_NAMES]
            if name in DELTA_NAMES and deltas:
                raise self._error(f"{name!r} is called {deltas[0]} there, by what times count")
            found = ".".join(part.name for part in node.parts)
            raise self._error(
                f"{found!r} is not a column of a {self.pair.called}. Write {' or '.join(known)}, and"
                " quote texts like 'a'"
            )
        kind = self.fields.get(name)
        if kind is not None and pa.types.is_decimal(kind):
            return pc.field(name).cast(pa.decimal256(kind.precision, kind.scale))
        return pc.field(name)

    def _error(self, what: str) -> ConditionError:
        return _error(self.text, what)


_METHODS: dict[type[exp.Expr], Callable[[_Translation, Any], pc.Expression]] = {
    exp.And: lambda self, node: reduce(operator.and_, self._booleans(node)),
    exp.Or: lambda self, node: reduce(operator.or_, self._booleans(node)),
    exp.Not: lambda self, node: ~self._typed(self.of(node.this), pa.bool_()),
    exp.Paren: lambda self, node: self.of(node.this),
    exp.Mul: lambda self, node: product(*self._factors(node)),
    exp.Div: lambda self, node: quotient(*self._factors(node)),
    exp.Boolean: lambda self, node: pc.scalar(bool(node.this)),
    exp.Null: lambda self, node: pc.scalar(None),
    exp.Abs: lambda self, node: pc.abs_checked(self.of(node.this)),
    exp.Coalesce: lambda self, node: pc.coalesce(*self._alike(node.this, *node.expressions)),
    exp.Is: _Translation._is, exp.Between: _Translation._between, exp.In: _Translation._in,
    exp.Like: _Translation._like, exp.Neg: _Translation._neg, exp.Literal: _Translation._literal,
    exp.Cast: _Translation._cast, exp.Column: _Translation._column,
    exp.Interval: _Translation._interval,
    **dict.fromkeys(_COMPARISONS, _Translation._compared),
    **dict.fromkeys(_FUNCTIONS_OF_TEXT, _Translation._of_text),
}  # fmt: skip
_MORE: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys(
        (*_COMPARISONS, exp.And, exp.Or, exp.Mul, exp.Is, exp.Like), ("expression",)
    ),
    exp.In: ("expressions",), exp.Coalesce: ("expressions",),
    exp.Between: ("low", "high"), exp.Cast: ("to",), exp.Interval: ("unit", "fraction_in_string"),
    exp.Literal: ("is_string",), exp.Div: ("expression", "typed", "safe"),
    exp.Column: ("table", "db", "catalog"),
}  # fmt: skip
"""Arguments of nodes, next to their operands."""


def _inner_first(node: exp.Expr) -> Iterator[exp.Expr]:
    for inner in node.iter_expressions():
        yield from _inner_first(inner)
    yield node


def _words(node: exp.Expr) -> str:
    """What a node that is not taken is called."""
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return f"the function {node.name if isinstance(node, exp.Anonymous) else node.sql_name().lower()}"
    return repr(_printed(node))


def _printed(node: exp.Expr) -> str:
    text = str(node.sql(dialect=_Conditions)).replace(" AS TEXT)", " AS STRING)")
    return re.sub(r"CAST\(('(?:[^']|'')*') AS (DATE|TIMESTAMP)\)", r"\2 \1", text)


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _is_in_64_bits(value: int) -> bool:
    return -(2**63) <= value < 2**63
