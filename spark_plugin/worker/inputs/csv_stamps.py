"""Times of CSV that are read as texts: of a format of their own, or where bad ones are left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import ConditionError

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
_NOT_FINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def check_format(option: str, text: str) -> str:
    """A format of times, if it names a day.

    Raises
    ------
    ConditionError
    """
    parts = re.findall("%(.)", text.replace("%%", ""))
    unknown = [part for part in parts if part not in _FIELDS]
    if unknown or len(set(parts)) < len(parts) or text.replace("%%", "").endswith("%"):
        known = ", ".join(f"%{part}" for part in _FIELDS)
        raise ConditionError(
            f"{option} takes the parts of a time, each once, such as '%d/%m/%Y %H:%M:%S'; it knows {known};"
            f" found {text!r}"
        )
    if not ({"Y", "y"} & {*parts} and {"m", "b", "B"} & {*parts} and "d" in parts):
        raise ConditionError(f"{option} needs year, month and day (%Y, %m, %d); found {text!r}")
    if ("I" in parts) != ("p" in parts):
        raise ConditionError(f"{option}: %I, of 12 hours, and %p go together; found {text!r}")
    return text


def has_offset(text: str) -> bool:
    """Whether times of a format are instants."""
    return "%z" in text.replace("%%", "")


def times_of(texts: pa.ChunkedArray, kind: pa.DataType, form: str) -> pa.ChunkedArray:
    """Texts as timestamps; null where one is no time.

    Parameters
    ----------
    texts : pa.ChunkedArray
    kind : pa.TimestampType
        With the zone UTC: each has an offset. Without a zone: none has.
    form : str
        As `check_format` takes it; empty: ISO 8601.
    """
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
    """Texts of numbers; null where one is of none."""
    plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), decimal, ".")
    pattern = f"{_NUMBER}|{_NOT_FINITE}" if may_be_infinite else _NUMBER
    return pc.if_else(pc.match_substring_regex(plain, pattern), texts, pa.scalar(None, texts.type))


def first_that_tells(texts: pa.Array) -> int:
    """The row of the first text that is a time; else that is not infinite; -1 if there is none."""
    plain = pc.utf8_trim_whitespace(texts)
    tells = pc.match_substring_regex(plain, _NUMBER)
    for kind in (pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")):
        times = times_of(pa.chunked_array([plain]), kind, "").combine_chunks()
        tells = pc.or_(tells, pc.is_valid(times))
    row: int = pc.index(tells, True).as_py()
    return (
        row if row >= 0 else pc.index(pc.match_substring_regex(plain, _NOT_FINITE), False).as_py()
    )
