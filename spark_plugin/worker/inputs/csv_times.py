"""Times in CSV that are decimals: floats where these hold them all, else decimals."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from coincide.decimal_ticks import MOST_PLACES
from spark_plugin.worker.arrow.schemas import with_types
from spark_plugin.worker.inputs.csv_numbers import BLANKS, Texts

_SHORT = 16
"""A text so long has 15 digits at most, beside a point or a sign."""
_EXACT_DIGITS = 15
"""Decimals of so many digits are told apart by floats."""
_MOST_PLACES = 18
_WIDE = 38
_NOT_FINITE = r"(?i)^[-+]?(nan|inf|infinity)$"
_OUT_OF_RANGE = "1e19"
"""Stands for what is not finite, or larger, as decimals have none such."""
_NEAR_ZERO = 1e-19
"""What is less is no tick, and may have more places than a decimal."""
_TOO_MANY_PLACES = (r"(\.\d{18})\d*([eE])", r"(\.\d{37})\d+$")
"""Of numbers with an exponent and without one: digits that no decimal holds."""


class WrittenTimes:
    """Of which type the decimals of a column are, seen part by part."""

    def __init__(self, decimal: str = ".") -> None:
        self._decimal = decimal
        self._places, self._needs_decimals = 1, False

    @property
    def kind(self) -> pa.DataType:
        """Of all texts that were seen."""
        return (
            pa.decimal128(_WIDE, min(self._places, _MOST_PLACES))
            if self._needs_decimals
            else pa.float64()
        )

    def look_at(self, texts: Texts) -> None:
        """See the next texts.

        Raises
        ------
        pa.ArrowInvalid
            If one is no number.
        """
        texts = _plain(texts, self._decimal)
        numbers = texts.cast(pa.float64())
        self._places = max(self._places, _places(texts))
        if self._needs_decimals:
            return
        is_long = pc.fill_null(pc.greater(pc.utf8_length(texts), _SHORT), False)
        if not pc.any(is_long, min_count=0).as_py():
            return
        long, numbers = texts.filter(is_long), numbers.filter(is_long)
        bare = pc.replace_substring_regex(long, r"(\.\d*?)0*$", r"\1")
        digits = pc.replace_substring_regex(bare, r"^[-+]?0*\.?0*|[eE].*$|\.", "")
        is_exact = pc.and_(
            pc.less_equal(pc.utf8_length(digits), _EXACT_DIGITS),
            pc.less_equal(_places_of(bare), MOST_PLACES),
        )
        prints_back = pc.equal(numbers.cast(pa.string()), bare)
        self._needs_decimals = not pc.all(pc.or_(is_exact, prints_back)).as_py()


def as_numbers(texts: Texts, kind: pa.DataType, decimal: str = ".") -> Texts:
    """Texts as floats or decimals.

    Raises
    ------
    pa.ArrowInvalid
        If one is no number.
    """
    texts = _plain(texts, decimal)
    if not pa.types.is_decimal(kind):
        return texts.cast(kind)
    texts = _held_by_decimals(texts)
    if _places(texts) <= kind.scale:
        return texts.cast(kind)
    wide = texts.cast(pa.decimal256(2 * _WIDE, _WIDE))
    return pc.round(wide, kind.scale).cast(kind)


def _held_by_decimals(texts: Texts) -> Texts:
    """Texts of numbers, without what is too large, too near to zero or too long for a decimal."""
    sizes = pc.abs(pc.replace_substring_regex(texts, _NOT_FINITE, _OUT_OF_RANGE).cast(pa.float64()))
    texts = pc.if_else(pc.greater_equal(sizes, float(_OUT_OF_RANGE)), _OUT_OF_RANGE, texts)
    texts = pc.if_else(pc.less(sizes, _NEAR_ZERO), "0", texts)
    with_exponent, without = _TOO_MANY_PLACES
    texts = pc.replace_substring_regex(texts, with_exponent, r"\1\2")
    return pc.replace_substring_regex(texts, without, r"\1")


def read_as_texts(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema to read by: text for the columns of these that are floats."""
    return with_types(schema, dict.fromkeys(floats_of(schema, names), pa.string()))


def floats_of(schema: pa.Schema, names: Collection[str]) -> list[str]:
    """The columns of these that are floats."""
    return [field.name for field in schema if field.name in names and field.type == pa.float64()]


def with_times(table: pa.Table, names: Collection[str], decimal: str = ".") -> pa.Table:
    """All rows of an input, with numbers for the texts of these columns.

    Raises
    ------
    pa.ArrowInvalid
        If a text is no number.
    """
    for name in names:
        texts, written = table.column(name), WrittenTimes(decimal)
        written.look_at(texts)
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, as_numbers(texts, written.kind, decimal))
    return table


def _plain(texts: Texts, decimal: str) -> Texts:
    if decimal != ".":
        texts = pc.replace_substring(texts, decimal, ".")
    return pc.utf8_trim(texts, characters=BLANKS)


def _places(texts: Texts) -> int:
    """The most places of some texts; of those with exponents at least 18."""
    most = pc.max(_places_of(texts)).as_py() or 0
    has_exponents = pc.any(pc.match_substring_regex(texts, r"\d[eE]")).as_py()
    return max(most, _MOST_PLACES) if has_exponents else most


def _places_of(texts: Texts) -> Texts:
    """Characters after the point."""
    at = pc.find_substring(texts, ".")
    return pc.if_else(pc.less(at, 0), 0, pc.subtract(pc.subtract(pc.utf8_length(texts), at), 1))
