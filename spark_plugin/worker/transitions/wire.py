"""Events in the columns of the wire: by query, stream and midpoint; invalid ones told by their kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.region_transitions.watches import Crossings
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.reading import Batch, words_of_invalid
from spark_plugin.worker.wire.faults import FaultyRows

QUERY, STREAM, LOW, HIGH, KIND = "query", "stream", "low", "high", "kind"
"""Names of columns: ids, the ends of the timestamp in ticks, `OUT` or `IN` or what is wrong with the event.
Beside them those of `faults`."""

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


class WireReader(FaultyRows):
    """Reads the chunks of one partition, and refuses invalid events or counts them.

    Parameters
    ----------
    columns : EventColumns
    """

    def __init__(self, columns: EventColumns) -> None:
        super().__init__(KIND, FIRST_FAULT)
        self._columns = columns

    @property
    def dropped(self) -> dict[str, int]:
        """Events left out so far, by reason."""
        found = dict.fromkeys(("null", *FAULTS), 0)
        for code, count in self.counts.items():
            found[_reason(code)] += count
        return found

    def read(self, table: pa.Table) -> WireEvents:
        """The valid events of a chunk.

        Raises
        ------
        DataError
            If events before them are to be refused.
        """
        table, kinds = self.valid(table)
        query, stream, low, high = (
            one_array(table.column(name)) for name in (QUERY, STREAM, LOW, HIGH)
        )
        crossings = Crossings.of(kinds.astype(np.int8), low.to_numpy(), high.to_numpy())
        return WireEvents((query, stream), crossings)

    def refuse(self) -> None:
        """Raise if some that were read are to be refused.

        Raises
        ------
        DataError
            As `coincide.transition_tables`.
        """
        arguments = self._columns.arguments
        if self.counts and arguments.options.invalid == "raise":
            # Of several codes for nulls the first example stays.
            examples = {_reason(code): self.examples[code] for code in reversed(self.examples)}
            faults = {why: (n, examples[why]) for why, n in self.dropped.items() if n}
            bits = np.bitwise_or.reduce([max(code - _NULL, 0) for code in self.counts])
            null = [name for k, name in enumerate(arguments.columns) if bits >> k & 1]
            raise DataError(words_of_invalid(self._columns, faults, null))


_NULL = FIRST_NULL - FIRST_FAULT


def _reason(code: int) -> str:
    return "null" if code >= _NULL else FAULTS[code]
