"""A condition on the columns of pairs, or of more events, as workers test it: run by run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.float_decimals import TIME_DECIMALS, as_decimals
from coincide.engine.events.sides import PairTest, Side
from coincide.engine.join.pair_columns import SIDES_ALONE, PairColumns
from coincide.engine.join.where_types import evaluated
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, first_line

GivenWhere: TypeAlias = "str | pc.Expression | None"
"""What users may say: SQL text, or an Arrow expression, over ``left_...`` and ``right_...`` columns."""
Measure: TypeAlias = Callable[[Sequence[str], np.ndarray, np.ndarray], dict[str, np.ndarray]]
"""From names, left and right rows of pairs to those of their own columns, by name."""

_NO_KERNEL = re.compile(
    r"Function '(\w+?)(?:_checked|_kleene)?' has no kernel matching input types \((.*)\)"
)
_NO_CAST = re.compile(r"Failed to parse string: ('.*') as a scalar of type (.*)", re.DOTALL)


def _cause(error: pa.ArrowException) -> str:
    """Why a condition has no value, in Arrow's words but for a text that a cast cannot read."""
    cause = first_line(error)
    text = _NO_CAST.fullmatch(cause)
    return cause if text is None else f"found {text[1]}, which does not read as {text[2]}"


@dataclass(frozen=True, eq=False)
class Where:
    """A condition on pairs, or on more events at once, and the columns that it needs of each side."""

    expression: pc.Expression
    sides: tuple[tuple[str, ...], ...]
    pair: PairColumns = SIDES_ALONE
    measures: tuple[str, ...] = ()
    times: frozenset[str] = (
        frozenset()
    )  # names of a pair's columns, decimals which are stored as floats
    sql: str = ""  # what it was translated from, for columns of these types
    fields: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def left(self) -> tuple[str, ...]:
        """The columns that it needs of the left side."""
        return self.sides[0]

    @property
    def right(self) -> tuple[str, ...]:
        """The columns that it needs of the right side."""
        return self.sides[1]

    @property
    def of_either_order(self) -> Where:
        """The same of one stream, whose events have on both sides what is needed of either."""
        both = tuple(dict.fromkeys([*self.left, *self.right]))
        columns = [(prefix, name) for prefix in self.pair.prefixes for name in both]
        own = {name for prefix, name in columns if f"{prefix}_{name}" in self.times}
        times = frozenset(f"{prefix}_{name}" for prefix, name in columns if name in own)
        return replace(self, sides=(both, both), times=times)

    @property
    def names(self) -> list[str]:
        """The names of the columns of a pair, left ones first; of more events, side by side."""
        sides = zip(self.pair.prefixes, self.sides, strict=True)
        return [*(f"{prefix}_{name}" for prefix, own in sides for name in own), *self.measures]

    def fitted(self, kinds: Mapping[str, pa.DataType]) -> Where:
        """The same for columns of these types, which may be others than the first rows told."""
        if not self.sql or all(self.fields[name] == kinds[name] for name in self.fields):
            return self
        expression, _ = _of_sql(self.sql, self.pair, kinds, self.times)
        return replace(self, expression=expression, fields=kinds)

    def mirrored(self) -> Where:
        """The same of a join whose sides are swapped."""
        pair = replace(self.pair, prefixes=self.pair.prefixes[::-1])
        return replace(self, sides=self.sides[::-1], pair=pair)


@dataclass(frozen=True, eq=False)
class PairFilter:
    """A condition on pairs, or on more events, whose columns have types, for workers."""

    where: Where
    kinds: tuple[list[pa.DataType], ...]

    def __post_init__(self) -> None:
        fields = dict(zip(self.where.names, self._all_kinds, strict=True))
        object.__setattr__(self, "where", self.where.fitted(fields))
        nothing = [pa.nulls(1, kind) for kind in self._all_kinds]
        try:
            found = self._evaluated(nothing, 1).type
        except pa.ArrowException as error:
            raise self._misfit(fields, error) from error
        if not pa.types.is_boolean(found):
            raise ConditionError(
                f"{argument('where')} must be true or false for a {self._called} (found {found}). Compare"
                " it with something."
            )

    @property
    def _called(self) -> str:
        return self.where.pair.called

    def _misfit(self, fields: dict[str, pa.DataType], error: pa.ArrowException) -> SchemaError:
        where = self.where
        if where.sql:
            from coincide.engine.join.where import misfit  # as for `_of_sql`

            if words := misfit(where.sql, where.pair, fields, where.times):
                return SchemaError(f"{argument('where')} does not fit these columns: {words}.")
        columns = ", ".join(f"{name} is {kind}" for name, kind in fields.items())
        return SchemaError(
            f"{argument('where')} does not fit these columns, {columns} ({_plain(error)}). Cast one,"
            " or compare it with something of its type."
        )

    @property
    def _all_kinds(self) -> list[pa.DataType]:
        measures = dict(self.where.pair.measures)
        kinds = *chain(*self.kinds), *(measures[name] for name in self.where.measures)
        return [
            TIME_DECIMALS if name in self.where.times else kind
            for name, kind in zip(self.where.names, kinds, strict=True)
        ]

    @property
    def kinds_as_read(self) -> list[list[pa.DataType]]:
        """The types of the columns of each side, as `read` gives these."""
        kinds = iter(self._all_kinds)
        return [list(islice(kinds, len(own))) for own in self.where.sides]

    def between(self, left: Side, right: Side, measure: Measure) -> PairTest:
        """The test of pairs of two sides. Null counts as no."""
        sides = self.read([left, right])

        def test(left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
            indices = pa.array(left_rows), pa.array(right_rows)
            columns = [
                column.take(index)
                for side, index in zip(sides, indices, strict=True)
                for column in side
            ]
            if self.where.measures:
                found = measure(self.where.measures, left_rows, right_rows)
                columns += [pa.array(found[name]) for name in self.where.measures]
            return self.met(columns, left_rows.size)

        return test

    def read(self, sides: Sequence[Side]) -> list[list[pa.Array]]:
        """The columns that the condition needs of each side, in their types."""
        names = iter(self.where.names)
        return [
            # A column by which matches are preferred may come after those of the condition.
            [self._read(next(names), *each) for each in zip(side.tested, kinds, strict=False)]
            for side, kinds in zip(sides, self.kinds, strict=True)
        ]

    def met(self, columns: list[pa.Array], size: int) -> np.ndarray:
        """Which pairs, or tuples, with these columns count; null counts as no: bool array."""
        try:
            met = self._evaluated(columns, size)
        except pa.ArrowException as error:
            raise DataError(
                f"{argument('where')} cannot be computed for some {self._called}s"
                f" ({_cause(error)}). Remove such rows from the sides, compute a column"
                " before the join, or cast the columns to a wider type."
            ) from error
        passing: np.ndarray = met.to_numpy(zero_copy_only=False)
        return passing

    def _read(self, name: str, column: pa.Array, kind: pa.DataType) -> pa.Array:
        column = in_kind(column, kind)
        return as_decimals(column) if name in self.where.times else column

    def _evaluated(self, columns: list[pa.Array], size: int = 0) -> pa.Array:
        # A condition of constants alone has rows, too.
        table = pa.table([*columns, pa.nulls(size)], names=[*self.where.names, ""])
        found = evaluated(self.where.expression, table)
        if pa.types.is_boolean(found.type):
            found = pc.fill_null(found, False)
        return found.combine_chunks()


def _plain(error: pa.ArrowException) -> str:
    """What Arrow says, in words that name no kernel."""
    said = first_line(error)
    found = _NO_KERNEL.fullmatch(said)
    return f"{found[1]} takes no {found[2]}" if found else said


def in_kind(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in its own type, as which it may have been coded in int64."""
    if column.type == kind:
        return column
    if pa.types.is_int64(column.type):
        if pa.types.is_timestamp(kind):
            return column.view(kind)
        if pa.types.is_date32(kind):
            return column.cast(pa.int32()).view(kind)
    return column.cast(kind)


def where_of(
    given: GivenWhere,
    schemas: Sequence[pa.Schema],
    pair: PairColumns,
    clocks: Sequence[Iterable[str]],
) -> Where | None:
    """The meaning for pairs of two sides of these columns, or for more, some of which are times."""
    if given is None:
        return None
    check_where(given, pair)
    known, times = pair.fields(*schemas), frozenset[str]()
    if isinstance(given, str):
        # Floats are the decimals that they read as, as for the window. Arrow's expressions name types.
        named = {
            f"{p}_{name}" for p, own in zip(pair.prefixes, clocks, strict=True) for name in own
        }
        times = frozenset(n for n in named & known.keys() if pa.types.is_floating(known[n]))
        known |= dict.fromkeys(times, TIME_DECIMALS)
        expression, used = _of_sql(given, pair, known, times)
        for name in used:
            if name not in known:
                raise _no_column(name, known, pair.called)
    else:
        expression, used = given, _used(given, known, pair)
    for name, prefixes in pair.doubled(*schemas).items():
        if name in used:
            raise SchemaError(
                f"{argument('where')}: {name!r} is a column of several (found {' and '.join(prefixes)})."
                " Rename one of them."
            )
    names = tuple(
        tuple(name for name in dict.fromkeys(schema.names) if f"{prefix}_{name}" in used)
        for prefix, schema in zip(pair.prefixes, schemas, strict=True)
    )
    measures = tuple(name for name, _ in pair.measures if name in used)
    sql = given if isinstance(given, str) else ""
    fields = {name: known[name] for name in used}
    return Where(expression, names, pair, measures, times, sql, fields)


def _no_column(name: str, known: Iterable[str], called: str) -> SchemaError:
    alike = [each for each in known if each.lower() == name.lower()]
    has = ", ".join(map(repr, alike or known))
    cure = f"Write {alike[0]}: upper and lower case differ" if alike else "Use one of these"
    return SchemaError(
        f"{argument('where')}: a {called} has no column {name!r} (found {has}). {cure}."
    )


def check_where(given: object, pair: PairColumns = SIDES_ALONE) -> None:
    """Refuse what is no condition on pairs; None asks for no condition."""
    if given is not None and not isinstance(given, (str, pc.Expression, Where)):
        own, other, *_ = pair.prefixes
        raise ConditionError(
            f"{argument('where')} must be SQL text, such as '{own}_amount = {other}_amount', or"
            f" an expression of pyarrow.compute (found {given!r})."
        )
    if isinstance(given, str):
        _of_sql(given, pair)


def _of_sql(text: str, *known: Any) -> tuple[pc.Expression, list[str]]:
    from coincide.engine.join.where import (
        expression_of,  # loads sqlglot: only joins with a condition in SQL wait
    )

    return expression_of(text, *known)


def _used(given: pc.Expression, fields: dict[str, pa.DataType], pair: PairColumns) -> list[str]:
    """The columns of a pair without which an expression has no meaning; Arrow does not name them."""

    def fails(names: list[str]) -> str:
        try:
            table = pa.table({name: pa.array([], fields[name]) for name in names})
            evaluated(given, table)
        except pa.ArrowException as error:
            return _plain(error)
        return ""

    words = str(given)
    # Only what its words hold can be meant: most columns are sorted out unseen.
    likely = [name for name in fields if name in words]
    if why := fails(likely):
        raise SchemaError(
            f"{argument('where')} does not fit the columns of a {pair.called}, {pair.words} ({why}). Cast"
            " a column, or correct the expression."
        )
    return [name for name in likely if fails([other for other in likely if other != name])]
