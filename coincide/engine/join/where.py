"""A strict subset of SQL as Arrow expressions: what means the same on Spark and in a worker."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import is_string
from coincide.engine.events.schemas import plain_type
from coincide.engine.events.ticks import written_time
from coincide.engine.join.delta import DELTA, DELTA_NAMES
from coincide.model.errors import ConditionError, argument
from coincide.model.sides import SIDES

Fields: TypeAlias = "Mapping[str, pa.DataType]"
Kind: TypeAlias = "pa.DataType | None"
_NANOSECONDS = {
    "NANOSECOND": 1, "MICROSECOND": 10**3, "MILLISECOND": 10**6, "SECOND": 10**9,
    "MINUTE": 60 * 10**9, "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9, "WEEK": 7 * 86400 * 10**9,
}  # fmt: skip
UNITS = "NANOSECOND, MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY or WEEK"
_CASTS = {
    **dict.fromkeys(("BIGINT", "LONG"), pa.int64()),
    **dict.fromkeys(("INT", "INTEGER"), pa.int32()),
    "SMALLINT": pa.int16(), "TINYINT": pa.int8(), "DOUBLE": pa.float64(),
    **dict.fromkeys(("FLOAT", "REAL"), pa.float32()),
    **dict.fromkeys(("STRING", "VARCHAR", "TEXT"), pa.string()),
    "BOOLEAN": pa.bool_(), "DATE": pa.date32(),
}  # fmt: skip
TARGETS = ", ".join(_CASTS)
_TESTS: dict[str, Callable[[pa.DataType], bool]] = {
    "whole": pa.types.is_integer, "float": pa.types.is_floating, "decimal": pa.types.is_decimal,
    "boolean": pa.types.is_boolean, "date": pa.types.is_date, "timestamp": pa.types.is_timestamp,
    "duration": pa.types.is_duration, "nothing": pa.types.is_null,
    "text": is_string,
}  # fmt: skip
_TAKES = {
    "whole": ("whole", "float", "decimal", "boolean", "text"),
    "float": ("whole", "float", "decimal", "text"),
    "text": ("whole", "decimal", "boolean", "date", "text"),
    "boolean": ("boolean", "whole", "text"),
    "date": ("date", "timestamp", "text"),
}
"""From what a cast means the same in every SQL: floats and times are printed in many ways."""
_NUMBERS = ("whole", "float", "decimal")
_MOST_DIGITS = 76
_WHOLES = pa.decimal256(20, 0)
"""All whole numbers of 64 bits, with and without a sign."""


def kind_of(expression: pc.Expression, fields: Fields) -> Kind:
    """The type of an expression over columns of these types; None if it has none."""
    table = pa.table({name: pa.array([], kind) for name, kind in fields.items()} or {"": []})
    try:
        return evaluated(expression, table).type
    except pa.ArrowException:
        return None


def evaluated(expression: pc.Expression, table: pa.Table) -> pa.ChunkedArray:
    """The value of an expression in each row of a table, by one thread."""
    from pyarrow import (
        acero,  # loads pandas where it is installed: only joins with a condition wait
    )

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    options = acero.ProjectNodeOptions([expression], ["it"])
    plan = acero.Declaration("project", options, inputs=[source])
    return plan.to_table(use_threads=False)["it"]


def interval(number: str, unit: str) -> pa.Scalar | None:
    """A duration of a number of units, such as ``2.5`` and ``SECONDS``; None if there is no such one."""
    size = _NANOSECONDS.get(unit.upper()) or _NANOSECONDS.get(unit.upper().removesuffix("S"))
    found = re.fullmatch(r"\s*([+-]?)(\d+)(?:\.(\d*))?\s*", number)
    if size is None or found is None:
        return None
    sign, wholes, decimals = found[1], found[2], found[3] or ""
    ticks, rest = divmod(int(wholes + decimals) * size, 10 ** len(decimals))
    if rest:
        return None
    ticks = -ticks if sign == "-" else ticks
    is_fine = ticks % 1000 != 0
    try:
        return pa.scalar(
            ticks if is_fine else ticks // 1000, pa.duration("ns" if is_fine else "us")
        )
    except (pa.ArrowInvalid, OverflowError):
        return None


def cast(given: pc.Expression, word: str, kind: Kind) -> tuple[pc.Expression | None, str]:
    """An expression as another type; None, and what is wrong, where that has no one meaning."""
    target = _CASTS.get(word.upper())
    if target is None:
        return None, f"CAST takes {TARGETS} (found {word})"
    own = None if kind is None else _class_of(kind)
    if own is None or own == "nothing":
        return given.cast(target), ""
    wanted = _class_of(target)
    if own not in _TAKES[str(wanted)]:
        cure = "Compare times with TIMESTAMP '...'"
        if own == "duration":
            cure = "Divide it by INTERVAL '1' SECOND"
        elif own == "float":
            cure = "Compare numbers"
        return None, f"a CAST of {kind} AS {word.upper()} is ambiguous. {cure}"
    if wanted == "whole" and own in ("float", "decimal"):
        given = pc.trunc(given)
    if wanted == "float" and own == "decimal":
        given = _number(given, kind)
    if own == "text" and wanted != "text":
        given = pc.utf8_trim_whitespace(given)
    return given.cast(target), ""


def product(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """Of numbers, or of a duration and a number: to the nearest step of the duration."""
    classes = _classes(kinds)
    if classes[1] == "duration" and classes[0] in ("float", "decimal"):
        one, other, kinds, classes = other, one, kinds[::-1], classes[::-1]
    if classes[0] == "duration" and classes[1] in ("float", "decimal"):
        return _steps(_as_float(one) * _number(other, kinds[1]), kinds[0])
    if classes == ["decimal", "decimal"] and _digits(kinds) >= _MOST_DIGITS:
        return _number(one, kinds[0]) * _number(other, kinds[1])
    one, other = alike([one, other], kinds, pa.int64())
    return one * other


def quotient(one: pc.Expression, other: pc.Expression, kinds: tuple[Kind, Kind]) -> pc.Expression:
    """As in SQL: of whole numbers it is none, and by zero it is null; of durations it is a number."""
    classes = _classes(kinds)
    if classes == ["duration", "duration"]:
        unit = max(
            (kind.unit for kind in kinds if kind is not None), key=["s", "ms", "us", "ns"].index
        )
        fine = pa.duration(unit)
        return quotient(_as_float(one.cast(fine)), _as_float(other.cast(fine)), (None, None))
    if classes[0] == "duration" and classes[1] in _NUMBERS:
        return _steps(quotient(_as_float(one), other, (None, kinds[1])), kinds[0])
    divisor = _number(other, kinds[1])
    nothing = pc.scalar(pa.scalar(None, pa.float64()))
    return pc.divide(_number(one, kinds[0]), pc.if_else(divisor == 0.0, nothing, divisor))


def alike(
    given: Sequence[pc.Expression], kinds: Sequence[Kind], untyped: pa.DataType
) -> list[pc.Expression]:
    """Expressions that Arrow compares and adds exactly; what has no type has that of another, or this."""
    # Arrow has decimals of whole numbers too narrow, and nothing but nulls compares with no nulls.
    classes = _classes(kinds)
    typed = (kind for kind in kinds if not (kind is None or pa.types.is_null(kind)))
    kind_of_nulls = next(typed, untyped)
    found = []
    for each, kind, own in zip(given, kinds, classes, strict=True):
        if own == "nothing":
            each = each.cast(kind_of_nulls)
        elif own == "decimal" and "float" in classes:
            each = _number(each, kind)
        elif own == "whole" and "decimal" in classes and "float" not in classes:
            each = each.cast(_WHOLES)
        found.append(each)
    return found


def _number(given: pc.Expression, kind: Kind) -> pc.Expression:
    """As the nearest float: Arrow may take another one for a long decimal, but reads texts rightly."""
    if kind is not None and pa.types.is_decimal(kind):
        given = given.cast("string")
    return given.cast("float64")


def _digits(kinds: Sequence[Kind]) -> int:
    """Of decimals, together."""
    return sum(kind.precision for kind in kinds if kind is not None)


def _decimal(word: str) -> pc.Expression | None:
    """A decimal as it is written; None if it has too many digits."""
    value = Decimal(word)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > _MOST_DIGITS:
        return None
    return pc.scalar(pa.scalar(value, pa.decimal256(precision, scale)))


def unlike(kinds: Sequence[Kind]) -> str:
    """What is wrong with comparing or adding a duration and a number; empty if they are none."""
    classes = _classes(kinds)
    if "duration" in classes and any(each in _NUMBERS for each in classes):
        return (
            f"{' and '.join(map(str, kinds))} are not two durations. Write the number as INTERVAL '5'"
            " SECOND, or divide the duration by INTERVAL '1' SECOND"
        )
    return ""


def _classes(kinds: Sequence[Kind]) -> list[str | None]:
    return [None if kind is None else _class_of(kind) for kind in kinds]


def _class_of(kind: pa.DataType) -> str | None:
    return next((name for name, test in _TESTS.items() if test(kind)), None)


def _as_float(duration: pc.Expression) -> pc.Expression:
    return duration.cast("int64").cast("float64")


def _steps(number: pc.Expression, kind: Kind) -> pc.Expression:
    """Halves away from zero, as Spark has it."""
    return pc.round(number, round_mode="half_towards_infinity").cast("int64").cast(kind)


@dataclass(frozen=True)
class PairColumns:
    """The names of a pair's columns."""

    prefixes: tuple[str, str] = SIDES
    measures: tuple[tuple[str, pa.DataType], ...] = ()

    @property
    def words(self) -> str:
        """What there is, in words."""
        return ", ".join([*(f"{p}_..." for p in self.prefixes), *self.words_of_measures])

    @property
    def words_of_measures(self) -> list[str]:
        """The names of their own columns; as long as delta may have any unit, that without one."""
        names = [name for name, _ in self.measures]
        is_open = DELTA in names and len(names) > 1
        return [name for name in names if not (is_open and name in DELTA_NAMES[1:])]

    def knows(self, name: str) -> bool:
        """Whether a name can be that of such a column."""
        return name.startswith(tuple(f"{prefix}_" for prefix in self.prefixes)) or any(
            name == measure for measure, _ in self.measures
        )

    def fields(self, left: pa.Schema, right: pa.Schema) -> dict[str, pa.DataType]:
        """All columns of pairs of two sides, left ones first, without encodings."""
        sides = zip(self.prefixes, (left, right), strict=True)
        own = {
            f"{prefix}_{field.name}": plain_type(field.type)
            for prefix, schema in sides
            for field in schema
        }
        return {**own, **dict(self.measures)}


SIDES_ALONE = PairColumns()


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
    "Use comparisons, AND, OR, NOT, IS NULL, IN, BETWEEN, LIKE, + - * /, abs, lower, upper,"
    " length, trim, coalesce, CAST, and TIMESTAMP, DATE and INTERVAL literals. An Arrow expression"
    " can say more."
)


def expression_of(
    text: str,
    pair: PairColumns = SIDES_ALONE,
    fields: Fields | None = None,
    times: Container[str] = (),
) -> tuple[pc.Expression, list[str]]:
    """What a condition in SQL is in Arrow, and the names that it uses; times may be decimals."""
    # Nulls count as they do in SQL: a comparison with one is neither true nor false.
    reader = _Reader(text, pair, fields or {}, times)
    try:
        found = reader.disjunction()
    except RecursionError:
        raise ConditionError(
            f"{argument('where', text)} has too many nested parentheses. Use an Arrow expression."
        ) from None
    reader.check_end()
    return found, list(dict.fromkeys(reader.names))


class _Reader:
    """Reads a text from left to right, a method for each level of precedence."""

    def __init__(self, text: str, pair: PairColumns, fields: Fields, times: Container[str]) -> None:
        self._text, self._pair, self._fields, self._times = text, pair, fields, times
        self._tokens = list(_tokens(text, pair))
        self._at = 0
        self.names: list[str] = []
        named = {_name(*token) for token in self._tokens}
        kinds = [kind for name, kind in fields.items() if name in named]
        self._has_decimals = any(map(pa.types.is_decimal, kinds))
        self._has_nothing = any(map(pa.types.is_null, kinds))

    def disjunction(self) -> pc.Expression:
        found = self._conjunction()
        while self._takes("OR"):
            found = self._typed(found, pa.bool_()) | self._typed(self._conjunction(), pa.bool_())
        return found

    def check_end(self) -> None:
        if self._at < len(self._tokens):
            raise self._error(f"{self._tokens[self._at][1]!r} is not expected there")

    def _conjunction(self) -> pc.Expression:
        found = self._negation()
        while self._takes("AND"):
            found = self._typed(found, pa.bool_()) & self._typed(self._negation(), pa.bool_())
        return found

    def _negation(self) -> pc.Expression:
        if self._takes("NOT"):
            return ~self._typed(self._negation(), pa.bool_())
        return self._predicate()

    def _predicate(self) -> pc.Expression:
        own = self._sum()
        kind, sign = self._next
        if kind == "sign" and sign in _COMPARISONS:
            self._at += 1
            return _COMPARISONS[sign](*self._alike(own, self._sum()))
        if self._takes("IS"):
            negated = self._takes("NOT")
            self._expects("NULL")
            return ~own.is_null() if negated else own.is_null()
        negated = self._takes("NOT")
        if self._takes("BETWEEN"):
            least, low = self._alike(own, self._sum())
            self._expects("AND")
            most, high = self._alike(own, self._sum())
            found = (least >= low) & (most <= high)
        elif self._takes("IN"):
            found = self._any_of(own)
        elif self._takes("LIKE"):
            found = pc.match_like(self._typed(own, pa.string()), self._literal_text())
        elif negated:
            raise self._error("NOT needs IN, BETWEEN or LIKE after it there")
        else:
            return own
        return ~found if negated else found

    def _any_of(self, own: pc.Expression) -> pc.Expression:
        """As comparisons, so that nulls count as in SQL."""
        self._expects("(")
        found = self._equal(own, self._sum())
        while self._takes(","):
            found = found | self._equal(own, self._sum())
        self._expects(")")
        return found

    def _equal(self, own: pc.Expression, other: pc.Expression) -> pc.Expression:
        own, other = self._alike(own, other)
        return own == other

    def _sum(self) -> pc.Expression:
        found = self._product()
        while self._next[1] in ("+", "-") and self._next[0] == "sign":
            adds = self._takes("+") or not self._takes("-")
            found, other = self._alike(found, self._product())
            found = found + other if adds else found - other
        return found

    def _alike(self, *given: pc.Expression) -> list[pc.Expression]:
        """Expressions as they go with each other, if they do."""
        kinds = self._kinds(*given)
        if why := unlike(kinds):
            raise self._error(why)
        return alike(given, kinds, pa.int64())

    def _typed(self, given: pc.Expression, kind: pa.DataType) -> pc.Expression:
        """An expression as it is, but nulls of no type in one."""
        if not self._has_nothing:
            return given
        return alike([given], self._kinds(given), kind)[0]

    def _kinds(self, *given: pc.Expression) -> list[Kind]:
        return [kind_of(each, self._used()) if self._fields else None for each in given]

    def _used(self) -> Fields:
        return {name: self._fields[name] for name in self.names if name in self._fields}

    def _product(self) -> pc.Expression:
        found = self._factor()
        while self._next[1] in ("*", "/") and self._next[0] == "sign":
            multiplies = self._takes("*") or not self._takes("/")
            other = self._factor()
            own, others = self._kinds(found, other)
            kinds = own, others
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
            return self._column(_name(kind, word))
        if kind == "word":
            return self._word(word)
        self._at -= 1
        raise self._error(
            "it ends too early" if kind == "end" else f"{word!r} is not expected there"
        )

    def _number(self, word: str) -> pc.Expression:
        has_point = re.search(r"[.eE]", word) is not None
        is_large = not (has_point or _is_in_64_bits(int(word)))
        # A large number goes with decimals alone; as long as no types are known, it may.
        is_exact = self._has_decimals or (is_large and not self._fields)
        exact = _decimal(word) if is_exact and (has_point or is_large) else None
        if exact is not None:
            return exact
        if has_point:
            return pc.scalar(float(word))
        if not _is_in_64_bits(int(word)):
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
            raise self._error(f"the function {word} is unknown")
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
        if name == "coalesce":
            given = self._alike(*given)
        elif name != "abs":
            given = [self._typed(each, pa.string()) for each in given]
        if count and len(given) != count:
            raise self._error(f"{name} takes {count} argument (found {len(given)})")
        return function(*given)

    def _time(self, kind: str) -> pc.Expression:
        text = self._literal_text()
        found = written_time(text)
        if found is None:
            raise self._error(
                f"{text!r} is not a {kind.lower()}. Write it like 2024-01-31T12:00:00Z"
            )
        if kind == "DATE":  # that of the place where it was written
            found = pa.scalar(text[:10]).cast(pa.date32())
        return pc.scalar(found)

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
                    f"INTERVAL takes a number and one of {UNITS}, like INTERVAL '5' SECOND (found"
                    f" {(word + ' ' + unit).rstrip()})"
                )
            found = pc.scalar(size) if found is None else found + pc.scalar(size)
        return found

    def _cast(self) -> pc.Expression:
        self._expects("(")
        first = len(self.names)
        given = self.disjunction()
        self._expects("AS")
        word = self._next[1]
        self._at += 1
        self._expects(")")
        kind = self._kinds(given)[0]
        if any(name in self._times for name in self.names[first:]) and kind is not None:
            # Whatever of a time is a decimal was a float, and is printed in as many ways.
            kind = pa.float64() if pa.types.is_decimal(kind) and _is_text(word) else kind
        found, why = cast(given, word, kind)
        if found is None:
            raise self._error(why)
        return found

    def _column(self, name: str) -> pc.Expression:
        if not self._pair.knows(name):
            known = [f"{prefix}_{name}" for prefix in self._pair.prefixes]
            known += self._pair.words_of_measures
            deltas = [measure for measure, _ in self._pair.measures if measure in DELTA_NAMES]
            if name in DELTA_NAMES and deltas:
                raise self._error(f"{name!r} is called {deltas[0]} there, by what times count")
            raise self._error(
                f"{name!r} is not a column of a pair. Write {' or '.join(known)}, and quote texts"
                " like 'a'"
            )
        self.names.append(name)
        kind = self._fields.get(name)
        if kind is not None and pa.types.is_decimal(kind):
            return pc.field(name).cast(pa.decimal256(kind.precision, kind.scale))
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
        return ConditionError(f"{argument('where', self._text)}: {what}. {_UNDERSTOOD}")


def _name(kind: str, word: str) -> str:
    """The name of a column that a token may be."""
    return word[1:-1].replace("``", "`") if kind == "quoted" else word


def _is_text(word: str) -> bool:
    """Whether a CAST to this gives texts."""
    return _CASTS.get(word.upper()) == pa.string()


def _is_in_64_bits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _tokens(text: str, pair: PairColumns) -> Any:
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConditionError(
                f"{argument('where', text)}: {text[at:].strip()[:1]!r} is not expected there."
                f" Columns of a pair are named {pair.words}. Write other names than of letters,"
                " digits and _ in backticks, and texts in single quotes."
            )
        yield found.lastgroup, found[str(found.lastgroup)]
        at = found.end()


def _unquoted(word: str) -> str:
    return word[1:-1].replace("''", "'")
