"""Events in the columns of the wire: by query, stream and midpoint; invalid ones told by their kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.region_transitions.watches import Crossings
from spark_plugin.worker.arrow.tables import example_text
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.reading import Batch, words_of_invalid

QUERY, STREAM, LOW, HIGH, KIND = "query", "stream", "low", "high", "kind"
ROUNDED, EXAMPLE = "rounded", "example"
"""Names of columns: ids, the ends of the timestamp in ticks, `OUT` or `IN` or what is wrong with the event,
the change of its times by rounding them if they were floats, and where an invalid event is refused, what it
was in words."""

FAULTS = ("event", "not_finite", "range", "order")
FIRST_FAULT, FIRST_NULL = 2, 64
"""In place of the kind of an invalid event stands what is wrong with it: from the first number on, one of
`FAULTS`; from the second one on the needed columns that are null, as bits."""


@dataclass(frozen=True, eq=False)
class WireEvents(Batch):
    """Events in the order of the wire."""

    @classmethod
    def joined(cls, parts: list[WireEvents]) -> WireEvents:
        """Some after the other."""
        if len(parts) == 1:
            return parts[0]
        query, stream = (one_array(of_one_type([part.ids[i] for part in parts])) for i in (0, 1))
        columns = zip(*(part.crossings for part in parts), strict=True)
        return cls((query, stream), Crossings(*map(np.concatenate, columns)))

    def slice(self, start: int, stop: int) -> WireEvents:
        """A run of them."""
        query, stream = (column.slice(start, stop - start) for column in self.ids)
        return WireEvents((query, stream), Crossings(*(c[start:stop] for c in self.crossings)))


class WireReader:
    """Reads the chunks of one partition, and refuses invalid events or counts them.

    All that are to be refused come first, and in one partition.

    Parameters
    ----------
    columns : EventColumns
    """

    def __init__(self, columns: EventColumns) -> None:
        self._columns = columns
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}
        self._null = 0
        self.rows, self.rounded = 0, 0.0

    @property
    def dropped(self) -> dict[str, int]:
        """Events left out so far, by reason."""
        return {reason: self._counts.get(reason, 0) for reason in ("null", *FAULTS)}

    def read(self, table: pa.Table) -> WireEvents:
        """The valid events of a chunk.

        Raises
        ------
        DataError
            If events before them are to be refused.
        ConditionError
            If timestamps are intervals and there is no confidence to decide them with.
        """
        self.rows += table.num_rows
        kinds = one_array(table.column(KIND)).to_numpy()
        wrong = kinds >= FIRST_FAULT
        if wrong.any():
            self._count(table, kinds[wrong], np.flatnonzero(wrong))
            table, kinds = table.filter(pa.array(~wrong)), kinds[~wrong]
        if kinds.size:
            self.refuse()
            if ROUNDED in table.column_names:
                change = one_array(table.column(ROUNDED)).to_numpy().max()
                self.rounded = max(self.rounded, float(change))
        query, stream, low, high = (
            one_array(table.column(name)) for name in (QUERY, STREAM, LOW, HIGH)
        )
        crossings = Crossings.of(kinds.astype(np.int8), low.to_numpy(), high.to_numpy())
        return WireEvents((query, stream), crossings)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused: to be called at the end, too.

        Raises
        ------
        DataError
            As `coincide.transition_tables`.
        """
        arguments = self._columns.arguments
        if self._counts and arguments.options.invalid == "raise":
            reasons = [reason for reason in ("null", *FAULTS) if reason in self._counts]
            faults = {reason: (self._counts[reason], self._examples[reason]) for reason in reasons}
            null = [name for k, name in enumerate(arguments.columns) if self._null >> k & 1]
            raise DataError(words_of_invalid(self._columns, faults, null))

    def _count(self, table: pa.Table, codes: np.ndarray, rows: np.ndarray) -> None:
        for code, first, count in zip(
            *np.unique(codes, return_index=True, return_counts=True), strict=True
        ):
            is_null = code >= FIRST_NULL
            self._null |= int(code) - FIRST_NULL if is_null else 0
            reason = "null" if is_null else FAULTS[code - FIRST_FAULT]
            self._counts[reason] = self._counts.get(reason, 0) + int(count)
            if EXAMPLE in table.column_names:
                words = table.column(EXAMPLE)[int(rows[first])].as_py()
                self._examples.setdefault(reason, example_text(words))
