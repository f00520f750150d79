"""Aggregates of columns: what is added up and compared for them, and what they are in the output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import row_bytes
from coincide.engine.events.schemas import stored
from coincide.engine.join.aggregate_types import GREATEST, extreme_of, readable_type, type_of_sum
from coincide.engine.join.delta import DELTA
from coincide.engine.join.spec import NO_NUMBER, InTime, Pairing
from coincide.model.aggregates import Aggregate, Function
from coincide.model.errors import DataError
from coincide.model.range_sums import Found
from coincide.model.remembered import remembered
from coincide.model.sides import RIGHT
from coincide.model.threads import run_tasks
from cpu_fallback.aggregates import digits

_MOST_DIGITS = 18
"""Most digits of a decimal whose digits are an int64."""
_NOT_NEGATIVE = np.int64(np.iinfo(np.int64).max)
_SIGN = np.uint64(1 << 63)


# Values


class Values:
    """A column of right events, or of pairs, as it is aggregated: shape (n,)."""

    def __init__(self, column: pa.Array) -> None:
        kind = readable_type(column.type)
        if column.type != kind:
            column = column.cast(kind)
        self.column, self.kind = stored(column), kind
        self._digits: dict[bool, digits.Digits] = {}
        self._codes: dict[str, np.ndarray] = {}

    def as_digits(self, terms: int, *, has_squares: bool) -> digits.Digits:
        """How what adds them up is written, this many at a time; made once, with squares and without."""
        if has_squares not in self._digits:
            bounds = digits.bits_of_floats(self.floats) if self.is_float else (0, self._bits)
            is_decimal = pa.types.is_decimal(self.column.type)
            self._digits[has_squares] = digits.digits_for(
                *bounds, terms, has_squares=has_squares, is_decimal=is_decimal
            )
        return self._digits[has_squares]

    @property
    def is_float(self) -> bool:
        """Whether these are floats."""
        return bool(pa.types.is_floating(self.column.type))

    @property
    def is_signed(self) -> bool:
        """Whether some may be below 0."""
        return not pa.types.is_unsigned_integer(self.column.type)

    @property
    def _bits(self) -> int:
        """Bits of the greatest amount."""
        if self.words.shape[1] > 1:
            return 64 * self.words.shape[1]
        if not self.words.size:
            return 1
        values = self.words[:, 0].view(np.int64) if self.is_signed else self.words[:, 0]
        return max(int(values.max()).bit_length(), int(values.min()).bit_length(), 1)

    def codes(self, word: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Numbers whose least is sought, the greatest of all for missing values; made once a word."""
        if word not in self._codes:
            codes, nulls = make(), self.nulls
            self._codes[word] = codes if nulls is None else np.where(nulls, _NOT_NEGATIVE, codes)
        return self._codes[word]

    @remembered
    def nulls(self) -> np.ndarray | None:
        """Which are missing: bool array; None if there are all."""
        if not self.column.null_count:
            return None
        return self.column.is_null().to_numpy(zero_copy_only=False)

    @remembered
    def sizes(self) -> np.ndarray | None:
        """Bytes of each value: int64 array; None where all are small and alike."""
        return row_bytes(self.column)

    @remembered
    def floats(self) -> np.ndarray:
        """Numbers as floats, 0 for what is missing: float64 array."""
        column = self.column
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        # From 16 bits NumPy widens, which Arrow does not.
        filled = column.to_numpy(zero_copy_only=False).astype(np.float64)
        return filled if self.nulls is None else np.where(self.nulls, 0.0, filled)

    @remembered
    def specials(self) -> np.ndarray | None:
        """Which are NaN, infinite, and infinite below 0: bool array, shape (n, 3); None if no one is."""
        if np.isfinite(self.floats).all():
            return None
        values = self.floats
        return np.stack([np.isnan(values), values == np.inf, values == -np.inf], axis=1)

    @remembered
    def words(self) -> np.ndarray:
        """Whole numbers, 0 for what is missing: uint64 array, shape (n, words), the lowest first."""
        if pa.types.is_decimal(self.column.type):
            found = words_of_decimals(self.column)
        else:
            found = _whole(self.column).view(np.uint64)[:, np.newaxis]
        return found if self.nulls is None else np.where(self.nulls[:, np.newaxis], 0, found)

    @remembered
    def order(self) -> Order:
        """Numbers in the order of the values."""
        kind, types = self.column.type, pa.types
        if types.is_floating(kind):
            return _of_floats(self.floats, kind)
        if types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
            return Order(self.words[:, 0].view(np.int64).copy(), partial(_decimals, kind=kind))
        if types.is_uint64(kind):
            codes = (self.words[:, 0] ^ _SIGN).view(np.int64)
            return Order(codes, lambda found: pa.array(found.view(np.uint64) ^ _SIGN))
        if types.is_integer(kind) or types.is_boolean(kind) or types.is_temporal(kind):
            return Order(self.words[:, 0].view(np.int64), partial(_as_stored, kind=kind))
        return _of_places(self.column)


@dataclass(frozen=True, eq=False)
class Order:
    """Numbers in the order of values, and the values that numbers stand for."""

    codes: np.ndarray
    values: Callable[[np.ndarray], pa.Array]
    sizes: np.ndarray | None = None  # bytes of what a number stands for, where these differ


def _whole(column: pa.Array) -> np.ndarray:
    """Whole numbers, times and truth values: int64 array; of 64 bits without a sign their bits."""
    kind, types = column.type, pa.types
    if types.is_uint64(kind):
        return column.fill_null(0).to_numpy().view(np.int64)
    if types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _as_stored(found: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Whole numbers in a type of theirs."""
    if not pa.types.is_temporal(kind):
        return pa.array(found).cast(kind)
    narrow = pa.array(found).cast(pa.int32()) if kind.bit_width == 32 else pa.array(found)
    return narrow.view(kind)


def words_of_decimals(column: pa.Array) -> np.ndarray:
    """Decimals as whole numbers: uint64 array, shape (n, 2) or (n, 4), the lowest word first."""
    size = column.type.bit_width // 64
    words = np.frombuffer(column.buffers()[1] or b"", np.uint64)
    return words[column.offset * size : (column.offset + len(column)) * size].reshape(-1, size)


def decimals_of_words(words: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Decimals of such words; raises ArrowInvalid where one has too many digits."""
    data = pa.py_buffer(np.ascontiguousarray(words))
    found = pa.Array.from_buffers(kind, len(words), [None, data])
    found.validate(full=True)
    return found


def _decimals(found: np.ndarray, kind: pa.DataType) -> pa.Array:
    words = np.repeat((found >> 63)[:, np.newaxis], kind.bit_width // 64, axis=1)
    words[:, 0] = found
    return decimals_of_words(words.view(np.uint64), kind)


def _of_floats(values: np.ndarray, kind: pa.DataType) -> Order:
    bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
    codes = np.where(bits < 0, bits ^ _NOT_NEGATIVE, bits)

    def back(found: np.ndarray) -> pa.Array:
        floats = np.where(found < 0, found ^ _NOT_NEGATIVE, found).view(np.float64)
        # NumPy narrows to 16 bits, which Arrow does not.
        return pa.array(floats.astype(kind.to_pandas_dtype()))

    return Order(codes, back)


def _of_places(column: pa.Array) -> Order:
    """By the place of each value among those that there are."""
    encoded = pc.dictionary_encode(column)
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    rows = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    sorted_values = encoded.dictionary.take(pa.array(order))
    codes = places[rows] if order.size else np.zeros(len(column), np.int64)
    sizes = row_bytes(sorted_values)
    return Order(codes, lambda found: sorted_values.take(pa.array(found)), sizes)


# What is added up and compared


class Summand(ABC):
    """What is added up for aggregates of a column, in some lanes of `Found.sums`."""

    lanes: int

    @abstractmethod
    def fill(self, order: np.ndarray, before: np.ndarray, at: int) -> None:
        """Sums before each place of an order, in the lanes from `at` on."""


class Truths(Summand):
    """Truth values, shape (n, lanes): how many are true."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self.lanes = values, values.shape[1]

    def fill(self, order: np.ndarray, before: np.ndarray, at: int) -> None:
        """As `Summand`."""
        before[0, at : at + self.lanes] = 0
        for lane in range(self.lanes):
            np.cumsum(self._values[order, lane], out=before[1:, at + lane])


class Numbers(Summand):
    """Numbers as digits, with the digits of their squares if they are asked for."""

    # Values hold no numbers, which hold them: what holds itself waits for the collector of garbage,
    # and so would the values of each batch of pairs.
    def __init__(self, values: Values, how: digits.Digits) -> None:
        self._values, kind = values, values.column.type
        self.digits, self.lanes = how, how.lanes
        self.scale = kind.scale if pa.types.is_decimal(kind) else 0

    def fill(self, order: np.ndarray, before: np.ndarray, at: int) -> None:
        """As `Summand`."""
        how = self.digits
        if self._values.is_float:
            bits = self._values.floats.view(np.int64)
            digits.sums_of_floats(bits, order, *how, before, at)
        else:
            given = self._values.words, self._values.is_signed, order, how.width
            digits.sums_of_words(*given, how.places, how.has_squares, before, at)

    def quotients(self, sums: np.ndarray, divisors: np.ndarray | None) -> np.ndarray:
        """Sums of the digits, or these divided by whole numbers: float64 array."""
        how, out = self.digits, np.empty(len(sums))
        sums = np.ascontiguousarray(sums[:, : how.places])
        by = np.empty(0, np.int64) if divisors is None else divisors
        digits.quotients(sums, how.width, how.first, by, digits.tens_of(self.scale), out)
        return out

    def deviations(self, sums: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Sample standard deviations: float64 array."""
        how, out = self.digits, np.empty(len(sums))
        tens = digits.tens_of(2 * self.scale)
        sums = np.ascontiguousarray(sums)
        digits.deviations(sums, how.width, how.first, numbers, tens, out)
        return out

    def whole(self, sums: np.ndarray, words: int) -> tuple[np.ndarray, bool]:
        """Sums as whole numbers, uint64, shape (n, words), and whether one has no room."""
        out = np.empty((len(sums), words), np.uint64)
        sums = np.ascontiguousarray(sums[:, : self.digits.places])
        return out, bool(digits.whole_sums(sums, self.digits.width, self._values.is_signed, out))


class Weighed(NamedTuple):
    """Probabilities of pairs whose right event has a value in a column; or these times the value."""

    column: str | None
    is_value: bool = False

    def of(self, probabilities: np.ndarray, column: Values | None, rows: np.ndarray) -> Values:
        """These of pairs, whose values are at some rows of the column, if there is one."""
        if column is None:
            return Values(pa.array(probabilities))
        mask = None if column.nulls is None else column.nulls[rows]
        numbers = probabilities * column.floats[rows] if self.is_value else probabilities
        return Values(pa.array(numbers, mask=mask))


Key = str | Weighed
"""A column of right events or of pairs, or what is made of one."""


class Work:
    """What is added up and compared for some aggregates of the same events or pairs."""

    def __init__(
        self, events: Mapping[Key, Values], terms: int, pairs: Mapping[Key, Values] | None = None
    ) -> None:
        # At most `terms` numbers are added up.
        self._pairs, self._terms = pairs or {}, terms
        self.columns = {**events, **self._pairs}
        self._summands: dict[tuple[Key, str], tuple[Summand, int]] = {}
        self._codes: dict[tuple[Key, str], tuple[np.ndarray, int]] = {}
        self.lanes = 0

    @property
    def compared(self) -> int:
        """How many numbers are compared for each match."""
        return len(self._codes)

    def valid(self, column: Key) -> Callable[[Found], np.ndarray]:
        """How many values of a column are there: int64 array."""
        nulls = self.columns[column].nulls
        if nulls is None:
            return lambda found: found.counts
        _, at = self._summand(column, "there", lambda: Truths(~nulls[:, np.newaxis]))
        return lambda found: np.ascontiguousarray(found.sums[:, at])

    def numbers(self, column: Key, *, has_squares: bool) -> tuple[Numbers, slice]:
        """What adds up the numbers of a column, and their lanes."""
        values = self.columns[column]
        numbers = Numbers(values, values.as_digits(self._terms, has_squares=has_squares))
        word = "squares" if has_squares else "numbers"
        _, at = self._summand(column, word, lambda: numbers)
        return numbers, slice(at, at + numbers.lanes)

    def specials(self, column: Key) -> slice | None:
        """Lanes of how many are NaN, and infinite either way."""
        found = self.columns[column].specials
        if found is None:
            return None
        _, at = self._summand(column, "specials", lambda: Truths(found))
        return slice(at, at + 3)

    def compared_values(self, column: Key, word: str) -> Values:
        """The values among which the least or greatest, as a word says, is sought."""
        return self.columns[column]

    def least(self, column: Key, word: str, codes: np.ndarray) -> Callable[[Found], np.ndarray]:
        """The least code of each event: int64 array."""
        _, at = self._codes.setdefault((column, word), (codes, len(self._codes)))
        return lambda found: found.least[:, at]

    @property
    def cost(self) -> int:
        """Numbers that are held of each event or pair."""
        return self.lanes + 2 * self.compared

    def _summand(self, column: Key, word: str, make: Callable[[], Summand]) -> tuple[Summand, int]:
        if (column, word) not in self._summands:
            made = make()
            self._summands[column, word] = made, self.lanes
            self.lanes += made.lanes
        return self._summands[column, word]

    def before(
        self, order: np.ndarray, of_pairs: np.ndarray | None = None, threads: int = 1
    ) -> np.ndarray:
        """Sums before each place of an order of right events, and of one of pairs: (n + 1, lanes)."""
        out = np.empty((order.size + 1, self.lanes), np.int64)
        tasks = [
            partial(each.fill, self._order(column, order, of_pairs), out, at)
            for (column, _), (each, at) in self._summands.items()
        ]
        run_tasks(tasks, threads)
        return out

    def codes(self, order: np.ndarray, of_pairs: np.ndarray | None = None) -> np.ndarray:
        """Codes in such orders: int64 array, shape (compared, n)."""
        out = np.empty((self.compared, order.size), np.int64)
        for (column, _), (codes, at) in self._codes.items():
            np.take(codes, self._order(column, order, of_pairs), out=out[at])
        return out

    def _order(self, column: Key, order: np.ndarray, of_pairs: np.ndarray | None) -> np.ndarray:
        return order if of_pairs is None or column not in self._pairs else of_pairs


# Functions


class Answer(ABC):
    """An aggregate of runs of left events."""

    name: str
    """The column of the output."""
    kind: np.dtype
    """What numbers are kept for each event."""
    words: int
    """How many of them there are."""
    is_count = False
    """Whether it is 0, and not null, of an event without a match."""
    sizes: np.ndarray | None = None
    """Bytes of what each number stands for; None where all are small and alike."""

    @abstractmethod
    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | bool]:
        """Numbers, shape (n,) or (n, words), of these left events, all with matches; which have none."""

    @abstractmethod
    def column(self, numbers: np.ndarray) -> pa.Array:
        """Numbers as a column of the output."""


class Counted(Answer):
    """How many matches, or values, there are."""

    kind, words, is_count = np.dtype(np.int64), 1, True

    def __init__(self, aggregate: Aggregate, valid: Callable[[Found], np.ndarray]) -> None:
        self.name, self._valid = aggregate.name, valid

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, bool]:
        """As in `Answer`."""
        return self._valid(found), False

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        return pa.array(numbers)


class Summed(Answer):
    """The sum of whole numbers, decimals or durations."""

    kind = np.dtype(np.uint64)

    def __init__(self, aggregate: Aggregate, work: Work) -> None:
        column = str(aggregate.column)
        self.name, self._said = aggregate.name, aggregate.said
        self._kind = type_of_sum(work.columns[column].kind)
        self.words = self._kind.bit_width // 64
        self._valid = work.valid(column)
        self._numbers, self._lanes = work.numbers(column, has_squares=False)

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in `Answer`."""
        words, is_over = self._numbers.whole(found.sums[:, self._lanes], self.words)
        if is_over:
            raise self._too_great
        return (words if self.words > 1 else words[:, 0]), self._valid(found) == 0

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        if self.words > 1:
            try:
                return decimals_of_words(numbers, self._kind)
            except pa.ArrowInvalid:
                raise self._too_great from None
        return pa.array(numbers if self._kind == pa.uint64() else numbers.view(np.int64)).cast(
            self._kind
        )

    @property
    def _too_great(self) -> DataError:
        wide = "decimal256(76, 0)" if pa.types.is_decimal(self._kind) else "decimal128(38, 0)"
        cure = f"Cast the column to float64, or to {wide}"
        if pa.types.is_duration(self._kind):
            cure = "Cast the column to int64 and then to float64"
        return DataError(f"a sum is beyond {self._kind} (found in {self._said}). {cure}.")


class Rounded(Answer):
    """The sum of floats, or the mean or the standard deviation of numbers, rounded once."""

    kind, words = np.dtype(np.float64), 1

    def __init__(self, name: str, function: Function, column: Key, work: Work) -> None:
        self.name, self._function = name, function
        self._valid = work.valid(column)
        has_squares = function == "std"
        self._numbers, self._lanes = work.numbers(column, has_squares=has_squares)
        is_float = pa.types.is_floating(work.columns[column].kind)
        self._specials = work.specials(column) if is_float else None

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in `Answer`."""
        sums, there = found.sums[:, self._lanes], self._valid(found)
        if self._function == "std":
            values = self._numbers.deviations(sums, there)
        else:
            values = self._numbers.quotients(sums, there if self._function == "mean" else None)
        if self._specials is not None:
            self._put_specials(values, found.sums[:, self._specials])
        return values, there < (2 if self._function == "std" else 1)

    def _put_specials(self, values: np.ndarray, specials: np.ndarray) -> None:
        missing, above, below = (specials > 0).T
        values[above], values[below] = np.inf, -np.inf
        values[missing | (above & below)] = np.nan
        if self._function == "std":
            values[above | below] = np.nan

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        return pa.array(numbers)


class Expected(Answer):
    """The count, the sum or the mean where each match counts by its probability."""

    kind, words = np.dtype(np.float64), 1

    def __init__(self, aggregate: Aggregate, work: Work) -> None:
        self.name, self.is_count = aggregate.name, aggregate.function == "count"
        # The quotient of two means is that of their sums, which may be too large for a float.
        function: Function = "mean" if aggregate.function == "mean" else "sum"
        self._parts = [
            Rounded(self.name, function, key, work) for key in weighed_of(aggregate, work.columns)
        ]

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | bool]:
        """As in `Answer`."""
        (values, is_none), *weights = (each.of(found, left_rows) for each in self._parts)
        if weights:
            values /= np.where(is_none, 1.0, weights[0][0])
        return values, False if self.is_count else is_none

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        return pa.array(numbers)


class Extreme(Answer):
    """The least or greatest value; of truth values whether one is true."""

    kind, words = np.dtype(np.int64), 1

    def __init__(self, aggregate: Aggregate, work: Work) -> None:
        column, word = str(aggregate.column), extreme_of(aggregate.function)
        values = work.compared_values(column, word)
        self.name, self._order, self._kind = aggregate.name, values.order, values.kind
        self._is_greatest, self.sizes = word == GREATEST, values.order.sizes
        self._valid = work.valid(column)
        self._least = work.least(column, word, values.codes(word, self._codes))

    def _codes(self) -> np.ndarray:
        return ~self._order.codes if self._is_greatest else self._order.codes

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in `Answer`."""
        least = self._least(found)
        return (~least if self._is_greatest else least), self._valid(found) == 0

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        return _wrapped(self._order.values(numbers), self._kind)


class DeltaEnd(Answer):
    """The least or greatest delta: that of the first or last match."""

    kind, words = np.dtype(np.int64), 1

    def __init__(self, aggregate: Aggregate, work: Work, pairing: Pairing) -> None:
        self.name, self._pairing = aggregate.name, pairing
        # The later the match, the less is a delta that counts towards the left event.
        self._is_greatest = (aggregate.function == "max") != pairing.spec.is_mirrored
        stamps = pairing.stamps[RIGHT]
        codes = ~stamps if self._is_greatest else stamps
        self._least = work.least(DELTA, aggregate.function, codes)

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, bool]:
        """As in `Answer`."""
        least = self._least(found)
        stamps = ~least if self._is_greatest else least
        return self._pairing.deltas_to(left_rows, stamps), False

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        return pa.array(numbers)


class End(Answer):
    """The value of the earliest or latest match that has one."""

    kind, words = np.dtype(np.int64), 1

    def __init__(self, aggregate: Aggregate, work: Work, times: InTime) -> None:
        column, word = str(aggregate.column), aggregate.function
        self._values, self._is_last = work.columns[column], word == "last"
        self.name, self.sizes = aggregate.name, self._values.sizes
        self._valid, self._times = work.valid(column), times
        self._least = work.least(column, word, self._values.codes(word, self._codes))

    def _codes(self) -> np.ndarray:
        ranks = self._times.ranks_in_time
        return ~ranks if self._is_last else ranks

    def of(self, found: Found, left_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in `Answer`."""
        least = self._least(found)
        is_none = self._valid(found) == 0
        places = np.where(is_none, 0, ~least if self._is_last else least)
        rows = self._times.rows_in_time
        return (rows[places] if rows.size else places), is_none

    def column(self, numbers: np.ndarray) -> pa.Array:
        """As in `Answer`."""
        values = self._values
        return _wrapped(values.column.take(pa.array(numbers)), values.kind)


def _wrapped(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values that were stored, in the type that they had."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.wrap_array(values.cast(kind.storage_type))
    return values.cast(kind)


def answer_of(aggregate: Aggregate, work: Work, times: InTime) -> Answer:
    """What an aggregate takes of the work."""
    if aggregate.is_weighted:
        return Expected(aggregate, work)
    if aggregate.column is None:
        return Counted(aggregate, lambda found: found.counts)
    values = work.columns[aggregate.column]
    if aggregate.function == "count":
        return Counted(aggregate, work.valid(aggregate.column))
    if aggregate.function in ("first", "last"):
        return End(aggregate, work, times)
    if aggregate.function == "sum" and not pa.types.is_floating(values.kind):
        return Summed(aggregate, work)
    if aggregate.function in ("sum", "mean", "std"):
        return Rounded(aggregate.name, aggregate.function, aggregate.column, work)
    return Extreme(aggregate, work)


def values_of_pairs(values: np.ndarray) -> Values:
    """What pairs have, as a column: null where it has no number."""
    is_null = None if values.dtype == np.float64 else values == NO_NUMBER
    return Values(pa.array(values, mask=is_null))


def weighed_of(aggregate: Aggregate, columns: Mapping[Key, Values]) -> list[Weighed]:
    """What is added up for an expected value: values, then weights, or one of them."""
    column = aggregate.column
    has_nulls = column is not None and columns[column].nulls is not None
    weights, values = Weighed(column if has_nulls else None), Weighed(column, is_value=True)
    return {"count": [weights], "sum": [values]}.get(aggregate.function, [values, weights])
