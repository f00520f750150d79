"""In what order an event takes its matches: the preference, then all that `docs/meaning.md` says."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import numbers_in_runs
from coincide.engine.events.schemas import stored
from coincide.engine.events.sides import tie_ranks
from coincide.engine.join.spec import Pairing, Rows
from coincide.model.errors import SchemaError, argument
from coincide.model.match_choice import Preferred
from coincide.model.sides import LEFT, RIGHT
from cpu_fallback.join.filtering import EARLIEST, LATEST, NEAREST, Keys, ordered_delays

_DELAYS = {"nearest": NEAREST, "first": EARLIEST, "last": LATEST}
_SIGN = np.uint64(1 << 63)


class PairOrder:
    """The order of matches, of either side."""

    def __init__(self, pairing: Pairing) -> None:
        self.pairing, matches = pairing, pairing.spec.choice
        self._prefer, self._preferred = matches.prefer, matches.preferred

    def prepared(self, *sides: int) -> PairOrder:
        """Itself, the ties of matches of these sides decided, for threads that share it."""
        for side in sides:
            _ = self.ranks(side)
        return self

    def preferred(self, rows: Rows) -> np.ndarray:
        """By what pairs are ordered first, the least being best: int64 array, shape (pairs,)."""
        # Of either event of a pair: the first match of a left event is its earliest, that of a
        # right event its latest, as both have the least delay.
        if self._preferred is not None:
            return self._of_column[rows[RIGHT]]
        # Floats that are not negative are ordered as their bits are.
        if self._prefer == "probability":
            return -self.pairing.merits(*rows)[0].view(np.int64)
        if self._prefer == "distance":
            return self.pairing.measured(*rows)["distance"].view(np.int64)
        return ordered_delays(*self._midpoints, rows, _DELAYS[self._prefer])

    def leading(self, rows: Rows) -> Keys:
        """By what pairs are ordered first, and what parts most of those that are equal then."""
        if self._prefer == "probability":
            merits, apart = self.pairing.merits(*rows)
            return -merits.view(np.int64), sortable(apart)
        first = self.preferred(rows)
        return first, np.zeros(first.size, np.int64)

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of the window, half ticks: uint64 array, shape (pairs,)."""
        return self.pairing.merits(*rows)[1]

    def best(self, rows: Rows, of: int, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best pairs of each event, whose matches are of side `of`: numbers, and ranks from 1."""
        events = rows[LEFT if of == RIGHT else RIGHT]
        merits, apart = self.pairing.merits(*rows)
        least_first = [-merits, apart, self.ranks(of)[rows[of]]]
        if self._prefer != "probability":
            least_first.insert(0, self.preferred(rows))
        if self.pairing.spec.coordinates:
            least_first.insert(-1, self.pairing.measured(*rows)["distance"])
        order = np.lexsort((*reversed(least_first), events))
        ranks = _places(events[order]) + 1
        kept = ranks <= k
        return order[kept], ranks[kept]

    def ranks(self, side: int) -> np.ndarray:
        """Order of the events of a side among matches equal in all else: int64 array, by row."""
        return self._left_ranks if side == LEFT else self._right_ranks

    @cached_property
    def _left_ranks(self) -> np.ndarray:
        return tie_ranks(self.pairing.left)

    @cached_property
    def _right_ranks(self) -> np.ndarray:
        return tie_ranks(self.pairing.right)

    @cached_property
    def _midpoints(self) -> Rows:
        """Of both sides, doubled: int64 arrays, half ticks."""
        left, right = self.pairing.left, self.pairing.right
        return left.min_time + left.max_time, right.min_time + right.max_time

    @cached_property
    def _of_column(self) -> np.ndarray:
        """Of right rows: the preferred column, which comes after those of a condition on pairs."""
        assert self._preferred is not None
        return preference(self.pairing.right.tested[-1], self._preferred)


def sortable(distances: np.ndarray) -> np.ndarray:
    """Unsigned numbers moved down to signed ones, as Spark has no others, in their order."""
    return (distances ^ _SIGN).view(np.int64)


def _places(events: np.ndarray) -> np.ndarray:
    """The how-many-eth of its event each entry is, from 0, where those of an event are together."""
    begins = np.ones(events.size, bool)
    begins[1:] = events[1:] != events[:-1]
    return numbers_in_runs(begins)


_LAST = np.iinfo(np.int64).max - 1
"""Of null; of NaN one less, and of numbers at most two less."""
_MOST_DIGITS = 18
"""Of a decimal whose digits are an int64."""


def check_preferred(side: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column by which matches cannot be ordered."""
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    is_number |= types.is_decimal(kind) and kind.precision <= _MOST_DIGITS
    if not (is_number or (types.is_temporal(kind) and not types.is_interval(kind))):
        raise SchemaError(
            f"{argument('prefer')} takes a column of numbers or times (found {side}.{name}, which"
            f" is {kind}). Cast it, for example long decimals to float64."
        )


def preference(column: pa.Array, preferred: Preferred) -> np.ndarray:
    """Numbers of which the least is the best: int64 array, shape (n,); nulls are last, before them NaN."""
    # Whole numbers within 3 of the last one of 64 bits count as equal.
    column = stored(column)
    nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_floating(kind):
        # From 16 bits NumPy widens, which Arrow does not.
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        found = _of_floats(-values if preferred.is_descending else values)
    else:
        found = _of_whole(column)
        found = np.minimum(~found if preferred.is_descending else found, _LAST - 2)
    found[nulls] = _LAST
    return found


def _of_floats(values: np.ndarray) -> np.ndarray:
    bits = (values + 0.0).view(np.int64)  # of the two zeros one
    found = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    found[np.isnan(values)] = _LAST - 1
    return found


def _of_whole(column: pa.Array) -> np.ndarray:
    """Whole numbers, and what is stored as such, in their order: int64 array."""
    kind, types = column.type, pa.types
    if types.is_uint64(kind):
        return (column.fill_null(0).to_numpy() ^ np.uint64(1 << 63)).view(np.int64)
    if types.is_decimal(kind):
        wide = column.cast(pa.decimal128(kind.precision, kind.scale)).fill_null(0)
        digits = np.frombuffer(wide.buffers()[1], np.int64)[::2]
        return digits[wide.offset : wide.offset + len(wide)].copy()
    if types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).copy()
