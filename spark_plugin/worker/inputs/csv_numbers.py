"""Numbers in CSV that may be names: read as they are written."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

BLANKS = " \t"
"""What the reader allows around numbers."""
_EXACT = 1 << 53
Texts: TypeAlias = "pa.Array | pa.ChunkedArray"


def with_texts(schema: pa.Schema, times: Collection[str]) -> pa.Schema:
    """A schema to read by, so that nothing is lost: text for all that may be numbers, but for times."""
    return pa.schema(
        [
            field.with_type(pa.string())
            if _is_number(field.type) and field.name not in times
            else field
            for field in schema
        ]
    )


def with_numbers(table: pa.Table, schema: pa.Schema, decimal: str = ".") -> pa.Table:
    """All rows of an input as numbers again, in columns where each number prints as it was written.

    Others stay text: ``007``, ``+7`` and ``1e3`` may be names, and as numbers would be those of others.

    Parameters
    ----------
    table : pa.Table
        As read by `with_texts`.
    schema : pa.Schema
        The types that the beginning of the first file suggests.
    decimal : str
        What stands before decimals.
    """
    for i, field in enumerate(schema):
        if field.type != table.schema.field(i).type:
            written = WrittenNumbers(field.type, decimal)
            numbers = written.numbers(table.column(i))
            if numbers is not None and written.are_plain:
                table = table.set_column(i, field, numbers)
    return table


class WrittenNumbers:
    """Whether the texts of a column print as numbers as they were written, seen part by part.

    Parameters
    ----------
    kind : pa.DataType
        Of the numbers.
    decimal : str
        What stands before decimals.

    Attributes
    ----------
    are_whole : bool
        Whether they are so, of floats.
    """

    def __init__(self, kind: pa.DataType, decimal: str = ".") -> None:
        self.kind = kind
        self._decimal = decimal if pa.types.is_floating(kind) else "."
        self._print_back = True
        self._places: list[int] = []
        self._end_in_zeros = self._end_in_more_zeros = False
        self.are_whole = True

    @property
    def are_plain(self) -> bool:
        """Whether all texts are plain decimals, with zeros at their ends by one habit.

        No zeros at the ends; or only those of ``1.0``; or always as many places. Not 1.1 beside 1.10.
        """
        if not self._print_back or not self._places:
            return self._print_back
        fewest, most = self._places
        return (
            fewest == most or not self._end_in_zeros or (fewest > 0 and not self._end_in_more_zeros)
        )

    def numbers(self, texts: Texts) -> Texts | None:
        """The numbers of the next texts; None if these, or some before, are other than they print."""
        if not self._print_back:
            return None
        if self._decimal != ".":
            texts = pc.replace_substring(texts, self._decimal, ".")
        texts = pc.utf8_trim(texts, characters=BLANKS)
        try:
            numbers = texts.cast(self.kind)
        except pa.ArrowInvalid:
            self._print_back = False
            return None
        if pa.types.is_integer(self.kind):
            self._print_back = _equal(numbers.cast(pa.string()), texts)
        else:
            self._look_at_decimals(numbers, texts)
        return numbers if self._print_back else None

    def _look_at_decimals(self, numbers: Texts, texts: Texts) -> None:
        self.are_whole = self.are_whole and holds_whole(numbers)
        digits = pc.fill_null(pc.invert(pc.is_nan(numbers)), False)
        numbers, texts = numbers.filter(digits), texts.filter(digits)
        bare = pc.replace_substring_regex(texts, r"^(-?\d+)\.0+$", r"\1")
        bare = pc.replace_substring_regex(bare, r"(\.\d*[1-9])0+$", r"\1")
        self._print_back = _equal(numbers.cast(pa.string()), bare)
        if not self._print_back or not len(texts):
            return
        places = pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))
        found = [*self._places, *pc.min_max(places).as_py().values()]
        self._places = [min(found), max(found)]
        self._end_in_zeros |= _any(texts, r"\.\d*0$")
        self._end_in_more_zeros |= _any(texts, r"\.\d+0$")


def holds_whole(numbers: Texts) -> bool:
    """Whether all floats of a column are whole, and few enough digits long to be told apart."""
    is_whole = pc.and_(
        pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), float(_EXACT))
    )
    return bool(pc.all(is_whole, min_count=0).as_py())


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _any(texts: Texts, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _equal(printed: Texts, texts: Texts) -> bool:
    return bool(pc.all(pc.equal(printed, texts), min_count=0).as_py())
