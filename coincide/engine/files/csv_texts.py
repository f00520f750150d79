"""Times and numbers in CSV: decimals, texts of a format, wall-clock times of a known zone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import with_types
from coincide.engine.events.ticks import not_finite_decimal
from coincide.model.decimal_ticks import MOST_PLACES
from coincide.model.errors import ConditionError, DataError
from coincide.model.units import NANOSECONDS_PER_UNIT

_EXACT_DIGITS = 15
"""Floats tell decimals of this many digits apart."""
_MOST_PLACES = 18
_WIDE = 38
_NOT_FINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_OUT_OF_RANGE = "1e19"
"""Stands for what is larger, and may be larger than any decimal."""
_NEAR_ZERO = 1e-19
"""What is less is no tick, and may have more places than a decimal."""
_TOO_MANY_PLACES = (r"(\.\d{18})\d*([eE])", r"(\.\d{37})\d+$")
"""The digits that no decimal holds, in numbers with an exponent and without one."""


def with_times(table: pa.Table, names: Collection[str], decimal: str = ".") -> pa.Table:
    """All rows of an input, with numbers for the texts of these columns: floats if these tell all apart."""
    # Else decimals: `pyarrow.ArrowInvalid` where a text is no number.
    for name in names:
        texts = _plain(table.column(name), decimal)
        numbers = texts.cast(pa.float64())
        if not _floats_tell(texts, numbers):
            kind = pa.decimal128(_WIDE, min(max(1, _places(texts)), _MOST_PLACES))
            numbers = _as_decimals(texts, kind)
        table = table.set_column(table.schema.get_field_index(name), name, numbers)
    return table


def _floats_tell(texts: Texts, numbers: Texts) -> bool:
    """Whether floats tell the numbers of texts apart, as decimals do."""
    is_long = pc.fill_null(pc.greater(pc.utf8_length(texts), _EXACT_DIGITS), False)
    if not pc.any(is_long, min_count=0).as_py():
        return True
    long, numbers = texts.filter(is_long), numbers.filter(is_long)
    bare = pc.replace_substring_regex(long, r"(\.\d*?)0*$", r"\1")
    digits = pc.replace_substring_regex(bare, r"^[-+]?0*\.?0*|[eE].*$|\.", "")
    is_exact = pc.and_(
        pc.less_equal(pc.utf8_length(digits), _EXACT_DIGITS),
        pc.less_equal(_places_of(bare), MOST_PLACES),
    )
    return bool(pc.all(pc.or_(is_exact, pc.equal(numbers.cast(pa.string()), bare))).as_py())


def _as_decimals(texts: Texts, kind: pa.Decimal128Type) -> Texts:
    texts = _held_by_decimals(texts, str(not_finite_decimal(kind.scale)))
    if _places(texts) <= kind.scale:
        return texts.cast(kind)
    wide = texts.cast(pa.decimal256(2 * _WIDE, _WIDE))
    return pc.round(wide, kind.scale).cast(kind)


def _held_by_decimals(texts: Texts, none: str) -> Texts:
    """Texts of numbers, without what is too large, too near to zero or too long for a decimal."""
    sizes, is_none = pc.abs(texts.cast(pa.float64())), pc.match_substring_regex(texts, _NOT_FINITE)
    texts = pc.if_else(pc.greater_equal(sizes, float(_OUT_OF_RANGE)), _OUT_OF_RANGE, texts)
    texts = pc.if_else(pc.less(sizes, _NEAR_ZERO), "0", texts)
    texts = pc.if_else(is_none, none, texts)
    with_exponent, without = _TOO_MANY_PLACES
    texts = pc.replace_substring_regex(texts, with_exponent, r"\1\2")
    return pc.replace_substring_regex(texts, without, r"\1")


def read_as_texts(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema to read by: text for the columns of these that are floats."""
    return with_types(schema, dict.fromkeys(floats_of(schema, names), pa.string()))


def floats_of(schema: pa.Schema, names: Collection[str]) -> list[str]:
    """The columns of these that are floats."""
    return [field.name for field in schema if field.name in names and field.type == pa.float64()]


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


_FIELDS = {
    "Y": r"\d{4}", "y": r"\d{2}", "m": r"\d{1,2}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]{3,9}",
    "d": r"\d{1,2}", "H": r"\d{1,2}", "I": r"\d{1,2}", "p": "[AaPp][Mm]", "M": r"\d{1,2}",
    "S": r"\d{1,2}", "f": r"\d{1,9}", "z": r"Z|[+-]\d{2}:?\d{2}",
}  # fmt: skip
"""What a format may hold after a ``%``, as Python's strptime has it, and what such a part looks like."""
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december",
]  # fmt: skip
_ISO = r"^\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d{1,9})?)?)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def check_format(option: str, text: str) -> str:
    """A format of times, if it names a day."""
    parts = re.findall("%(.)", text.replace("%%", ""))
    unknown = [part for part in parts if part not in _FIELDS]
    if unknown or len(set(parts)) < len(parts) or text.replace("%%", "").endswith("%"):
        known = ", ".join(f"%{part}" for part in _FIELDS)
        raise ConditionError(
            f"{option} takes the parts of a time, each once, such as '%d/%m/%Y %H:%M:%S' (found"
            f" {text!r}). Use {known}."
        )
    if not ({"Y", "y"} & {*parts} and {"m", "b", "B"} & {*parts} and "d" in parts):
        raise ConditionError(
            f"{option} needs year, month and day (found {text!r}). Write %Y, %m and %d."
        )
    if ("I" in parts) != ("p" in parts):
        raise ConditionError(
            f"{option} needs %p with %I, the hour of 12, and %I with %p (found {text!r})."
        )
    return text


_WITH_LETTER = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d(:\d\d)?(\.\d+)?Z")


def form_with_letter(text: str) -> str:
    """The format of a time of ISO 8601 whose Z is a letter that means nothing; empty for other texts."""
    found = _WITH_LETTER.fullmatch(text.strip())
    if found is None:
        return ""
    return f"%Y-%m-%d{found[1]}%H:%M{':%S' if found[2] else ''}{'.%f' if found[3] else ''}Z"


def has_offset(text: str) -> bool:
    """Whether times of a format are instants."""
    return "%z" in text.replace("%%", "")


def times_of(texts: pa.ChunkedArray, kind: pa.DataType, form: str) -> pa.ChunkedArray:
    """Texts as timestamps; null where one is no time."""
    if not form:
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            texts = pc.utf8_trim_whitespace(texts)
            texts = pc.if_else(pc.match_substring_regex(texts, _ISO), texts, None)
    chunks = [_cast(_iso(chunk, form) if form else chunk, kind) for chunk in texts.chunks]
    return pa.chunked_array(chunks, kind)


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The times of texts, found by halves where some are no times, as the 31st of February."""
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:
        half = len(texts) // 2
        if not half:
            return pa.nulls(1, kind)
        return pa.concat_arrays([_cast(texts[:half], kind), _cast(texts[half:], kind)])


def _iso(texts: pa.Array, form: str) -> pa.Array:
    """Texts of a format as those of ISO 8601; null where one is not of it."""
    found = pc.extract_regex(pc.utf8_trim_whitespace(texts), _pattern(form))
    names = [field.name for field in found.type]
    parts = dict(zip(names, found.flatten(), strict=True))

    def two(name: str) -> pa.Array:
        return pc.utf8_lpad(parts[name], 2, "0") if name in parts else "00"

    year = parts.get("Y")
    if year is None:  # as POSIX has it: 69 is 1969, and 68 is 2068
        century = pc.if_else(pc.greater_equal(parts["y"], "69"), "19", "20")
        year = pc.binary_join_element_wise(century, parts["y"], "")
    offset = (
        pc.replace_substring_regex(parts["z"], r"^([+-]\d\d)(\d\d)$", r"\1:\2")
        if "z" in parts
        else ""
    )
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise(year, _month(parts, two), two("d"), "-"), "T",
        pc.binary_join_element_wise(_hour(parts, two), two("M"), two("S"), ":"),
        pc.binary_join_element_wise(".", parts["f"], "") if "f" in parts else "", offset, "",
    )  # fmt: skip


def _month(parts: dict[str, pa.Array], two: Callable[[str], pa.Array]) -> pa.Array:
    if "m" in parts:
        return two("m")
    names = pc.utf8_lower(parts["b" if "b" in parts else "B"])
    known = _MONTHS if "B" in parts else [month[:3] for month in _MONTHS]
    number = pc.add(pc.index_in(names, pa.array(known)), 1).cast(pa.string())
    return pc.utf8_lpad(number, 2, "0")


def _hour(parts: dict[str, pa.Array], two: Callable[[str], pa.Array]) -> pa.Array:
    if "I" not in parts:
        return two("H")
    hours = pa.array([f"{hour:02}" for hour in range(1, 13)])
    hour = pc.index_in(two("I"), hours)  # 12 is the first
    own = pc.if_else(pc.equal(hour, 11), 0, pc.add(hour, 1))
    later = pc.if_else(pc.equal(pc.utf8_lower(parts["p"]), "pm"), 12, 0)
    return pc.utf8_lpad(pc.add(own, later).cast(pa.string()), 2, "0")


@lru_cache
def _pattern(form: str) -> str:
    parts = re.split("(%.)", form)
    looks = (
        re.escape(part) if not part.startswith("%") or len(part) < 2
        else "%" if part == "%%" else f"(?P<{part[1]}>{_FIELDS[part[1]]})"
        for part in parts
    )  # fmt: skip
    return f"^{''.join(looks)}$"


def numbers_among(
    texts: pa.ChunkedArray, decimal: str, *, may_be_infinite: bool
) -> pa.ChunkedArray:
    """Texts of numbers; null for other texts."""
    plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), decimal, ".")
    pattern = f"{_NUMBER}|{_NOT_FINITE}" if may_be_infinite else _NUMBER
    return pc.if_else(pc.match_substring_regex(plain, pattern), texts, pa.scalar(None, texts.type))


def first_that_tells(texts: pa.Array) -> int:
    """The row of the first text that is a time; else that is not infinite; -1 for no such row."""
    plain = pc.utf8_trim_whitespace(texts)
    tells = pc.match_substring_regex(plain, _NUMBER)
    for kind in (pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")):
        times = times_of(pa.chunked_array([plain]), kind, "").combine_chunks()
        tells = pc.or_(tells, pc.is_valid(times))
    row: int = pc.index(tells, True).as_py()
    return (
        row if row >= 0 else pc.index(pc.match_substring_regex(plain, _NOT_FINITE), False).as_py()
    )


_UTC = "UTC"


def clock_type(option: str, zone: str) -> pa.DataType:
    """The type of a column of wall-clock times of a zone: that of the instants which they are."""
    kind = pa.timestamp("us", zone)
    try:
        pc.assume_timezone(pa.array([0], pa.timestamp("us")), zone)
    except pa.ArrowInvalid:
        raise ConditionError(
            f"{option}: there is no time zone {zone!r}. Name one, for example"
            " timestamp@Europe/Rome."
        ) from None
    # UTC by its own name is that of times with offsets.
    return pa.timestamp("us", "Etc/UTC") if zone == _UTC else kind


def as_shown(schema: pa.Schema) -> pa.Schema:
    """A schema to read by: wall-clock times where clocks of a zone are."""
    return pa.schema(
        [
            field.with_type(pa.timestamp(field.type.unit)) if is_of_zone(field.type) else field
            for field in schema
        ]
    )


REPEATED_HOURS = ("first", "second", "order")
"""Which instant a clock shows that shows an hour twice: the order of lines tells it, too."""


def as_instants(
    table: pa.Table, schema: pa.Schema, place: Callable[[int], str], repeated: str = ""
) -> pa.Table:
    """What was read by `as_shown`, as instants; `repeated` is one of `REPEATED_HOURS`, or none."""
    for i, field in enumerate(schema):
        if is_of_zone(field.type):
            shown = table.column(i)
            try:
                found = pc.assume_timezone(shown, field.type.tz)
            except pa.ArrowInvalid:
                found = _unclear_instants(shown, field, place, repeated)
            table = table.set_column(i, field, found)
    return table


def _unclear_instants(
    shown: Texts, field: pa.Field, place: Callable[[int], str], repeated: str
) -> pa.ChunkedArray:
    """Instants of clocks of a zone that showed some times twice, or none of the clock."""
    first, second = (
        pc.assume_timezone(shown, field.type.tz, ambiguous=way, nonexistent=way)
        for way in ("earliest", "latest")
    )

    def blamed(row: int, what: str) -> DataError:
        clocks = f"{place(row)}, column {field.name!r}: clocks of {field.type.tz}"
        return DataError(f"{clocks} {what.format(shown[row].as_py())}.")

    never = pc.not_equal(pc.local_timestamp(first), shown)
    if (row := pc.index(never, True).as_py()) >= 0:
        raise blamed(row, "never showed {}, as they were set forward. Correct it")
    twice = pc.not_equal(first, second)
    if not repeated:
        raise blamed(
            pc.index(twice, True).as_py(),
            "showed {} twice. Say which one with --repeated-hour first or second, or order, or write"
            " zone offsets",
        )
    if repeated != "order":
        return pc.if_else(twice, second if repeated == "second" else first, first)
    is_second, disorder = _later_ones(shown, twice)
    if disorder >= 0:
        raise blamed(
            disorder,
            "showed {} twice, and the lines are not in order. Order them by time, or use --repeated-hour"
            " first or second",
        )
    return pc.if_else(pa.array(is_second), second, first)


def _later_ones(shown: Texts, twice: Texts) -> tuple[np.ndarray, int]:
    """Which times are the second ones, and the first row that is neither; -1 for no such row."""
    # In a run of lines of one such hour, those after the one step back. Lines without a time do not count.
    known = np.flatnonzero(pc.is_valid(shown).to_numpy(zero_copy_only=False))
    ticks = shown.cast(pa.int64()).drop_null().to_numpy()
    doubtful = pc.fill_null(twice, False).to_numpy(zero_copy_only=False)[known]
    moved = np.diff(ticks, prepend=ticks[:1])
    goes_on = doubtful & np.roll(doubtful, 1) & (np.abs(moved) < _ticks_of_a_day(shown.type))
    goes_on[:1] = False
    steps = np.cumsum(goes_on & (moved < 0))
    begins = np.flatnonzero(~goes_on)
    taken = steps - np.repeat(steps[begins], np.diff(begins, append=known.size))
    wrong = np.flatnonzero(taken > 1)
    found = np.zeros(len(shown), bool)
    found[known] = taken > 0
    return found, int(known[wrong[0]]) if wrong.size else -1


def _ticks_of_a_day(kind: pa.TimestampType) -> int:
    return 86_400_000_000_000 // NANOSECONDS_PER_UNIT[kind.unit]


def is_of_zone(kind: pa.DataType) -> bool:
    """Whether a type holds instants that clocks of a zone show."""
    return pa.types.is_timestamp(kind) and kind.tz not in (None, _UTC)


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
    """All rows of an input as numbers again, in columns where each number prints as it was written."""
    # Others stay text: ``007``, ``+7`` and ``1e3`` may be names, and as numbers would be those of
    # others.
    for i, field in enumerate(schema):
        if field.type != table.schema.field(i).type:
            numbers = _plain_numbers(table.column(i), field.type, decimal)
            if numbers is not None:
                table = table.set_column(i, field, numbers)
    return table


def _plain_numbers(texts: Texts, kind: pa.DataType, decimal: str) -> Texts | None:
    """The numbers of texts; None where one is no number, or is other than it prints."""
    texts = _plain(texts, decimal if pa.types.is_floating(kind) else ".")
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    if pa.types.is_integer(kind):
        return numbers if _equal(numbers.cast(pa.string()), texts) else None
    digits = pc.fill_null(pc.invert(pc.is_nan(numbers)), False)
    return numbers if _are_plain(numbers.filter(digits), texts.filter(digits)) else None


def _are_plain(numbers: Texts, texts: Texts) -> bool:
    """Whether all texts are plain decimals, with zeros at their ends by one habit."""
    # No zeros at the ends; or only those of ``1.0``; or always as many places. Not 1.1 next to 1.10.
    bare = pc.replace_substring_regex(texts, r"^(-?\d+)\.0+$", r"\1")
    bare = pc.replace_substring_regex(bare, r"(\.\d*[1-9])0+$", r"\1")
    if not _equal(numbers.cast(pa.string()), bare):
        return False
    if not len(texts) or not _any(texts, r"\.\d*0$"):
        return True
    places = pc.utf8_length(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""))
    fewest, most = pc.min_max(places).as_py().values()
    return bool(fewest == most or (fewest > 0 and not _any(texts, r"\.\d+0$")))


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
