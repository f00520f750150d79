"""In what order an event takes its partners: the preference, then all that `docs/meaning.md` says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import numbers_in_runs
from coincide.engine.events.schemas import stored
from coincide.engine.events.sides import Side, tie_ranks
from coincide.engine.join.emission import Rows
from coincide.engine.join.partial_results import sortable
from coincide.engine.join.spec import JoinSpec
from coincide.model.errors import SchemaError
from coincide.model.partners import Preferred
from coincide.model.probability import distances_from_middle
from coincide.model.sides import LEFT, RIGHT
from cpu_fallback.join.filtering import EARLIEST, LATEST, NEAREST, Keys, ordered_delays

_MERITS = float(1 << 40)
_DELAYS = {"nearest": NEAREST, "first": EARLIEST, "last": LATEST}


class PairOrder:
    """The order of partners, of either side."""

    def __init__(
        self,
        left: Side,
        right: Side,
        spec: JoinSpec,
        probabilities: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        self._sides, self._spec, self._probabilities = (left, right), spec, probabilities
        self._midpoints = left.min_time + left.max_time, right.min_time + right.max_time

    def prepared(self, *sides: int) -> PairOrder:
        """Itself, the ties of partners of these sides decided, for threads that share it."""
        for side in sides:
            _ = self._left_ranks if side == LEFT else self._right_ranks
        return self

    def preferred(self, rows: Rows) -> np.ndarray:
        """By what pairs are ordered first, the least being best: int64 array, shape (pairs,).

        Of either event of a pair: the first partner of a left event is its earliest, that of a right event
        its latest, as both have the least delay.
        """
        prefer = self._spec.partners.prefer
        if self._spec.partners.preferred is not None:
            return self._of_column[rows[RIGHT]]
        if prefer == "probability":
            # Floats that are not negative are ordered as their bits are.
            return -self._merits(rows).view(np.int64)
        return ordered_delays(*self._midpoints, rows, _DELAYS[prefer])

    def leading(self, rows: Rows) -> Keys:
        """By what pairs are ordered first, and what parts most of those that are equal then."""
        first = self.preferred(rows)
        if self._spec.partners.prefer == "probability":
            return first, sortable(self.from_middle(rows))
        return first, np.zeros(first.size, np.int64)

    def after_preferred(self, rows: Rows) -> list[np.ndarray]:
        """By what pairs are ordered then, before the events themselves decide, the least being best."""
        return [-self._merits(rows), self.from_middle(rows)]

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of the window, half ticks: uint64 array, shape (pairs,)."""
        left, right = (own[each] for own, each in zip(self._midpoints, rows, strict=True))
        window = self._spec.window
        return distances_from_middle(left, right, window.lo, window.hi)

    def best(self, rows: Rows, of: int, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """The k best partners of each event, of one side."""
        events = rows[LEFT if of == RIGHT else RIGHT]
        least_first = [self.preferred(rows), *self.after_preferred(rows), self.ranks(of)[rows[of]]]
        order = np.lexsort((*reversed(least_first), events))
        ranks = _places(events[order]) + 1
        kept = ranks <= k
        return order[kept], ranks[kept]

    def ranks(self, side: int) -> np.ndarray:
        """Order of the events of a side among partners equal in all else: int64 array, by row."""
        return self._left_ranks if side == LEFT else self._right_ranks

    @cached_property
    def _left_ranks(self) -> np.ndarray:
        return tie_ranks(self._sides[LEFT])

    @cached_property
    def _right_ranks(self) -> np.ndarray:
        return tie_ranks(self._sides[RIGHT])

    @cached_property
    def _of_column(self) -> np.ndarray:
        """Of right rows: the preferred column, which comes after those of a condition on pairs."""
        preferred = self._spec.partners.preferred
        assert preferred is not None
        return preference(self._sides[RIGHT].tested[-1], preferred)

    def _merits(self, rows: Rows) -> np.ndarray:
        """As of `coincide.model.timestamps.protocol.Rule`, of pairs that qualify."""
        probabilities = self._probabilities(*rows)
        if not self._spec.has_histograms:
            return probabilities
        return np.floor(probabilities * _MERITS + 0.5) / _MERITS


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
    """Refuse a column by which partners cannot be ordered."""
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    is_number |= types.is_decimal(kind) and kind.precision <= _MOST_DIGITS
    if not (is_number or (types.is_temporal(kind) and not types.is_interval(kind))):
        raise SchemaError(
            f"{side}.{name} is {kind}, and prefer takes a column of numbers or times; cast it, as long"
            " decimals to float64"
        )


def preference(column: pa.Array, preferred: Preferred) -> np.ndarray:
    """Numbers of which the least is the best: int64 array, shape (n,); nulls are last, before them NaN.

    Whole numbers within 3 of the last one of 64 bits count as equal.
    """
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
