"""The open watches with the ids of their regions and streams: events in, rows out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError
from coincide.transitions.kinds import STAYS, TRANSITIONS
from coincide.transitions.ordering import behind_their_group, stable_order
from coincide.transitions.watches import (
    Crossings,
    Found,
    decided_by_the_clock,
    decided_by_the_next,
    last_of_each,
    repeats,
)
from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.transitions.arguments import SIDE
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.reading import HINT, Batch, described, rows_in_words
from spark_plugin.worker.transitions.reports import TransitionCounts

_BATCH_ROWS = 1_000_000


class OpenWatches:
    """The last event of each query and stream, on which the next one is decided.

    Parameters
    ----------
    columns : EventColumns
    """

    def __init__(self, columns: EventColumns) -> None:
        self._columns = columns
        none = np.zeros(0, np.int64)
        query, stream = (pa.array([], kind) for kind in columns.id_kinds)
        self._open = Batch((query, stream), Crossings.of(none.astype(np.int8), none, none))

    def __len__(self) -> int:
        return len(self._open)

    @property
    def undecided(self) -> int:
        """Watches whose stay was not given out."""
        return int((~self._open.crossings.told).sum())

    def take(self, batch: Batch) -> tuple[pa.Table, TransitionCounts]:
        """What new events decide. A refused batch leaves everything as it was.

        Parameters
        ----------
        batch : Batch
            Those of one query and stream in order of their midpoints.

        Raises
        ------
        DataError
            If events are late and invalid ones are refused; if they repeat others and these are.
        """
        batch = batch.after(self._open) if len(self._open) else batch
        keys = _pair_codes(batch.ids)
        order = stable_order(keys)
        keys, events = keys[order], batch.crossings.rows(order)

        behind = behind_their_group(keys, events.latest)
        late = int(behind.sum())
        if late:
            self._refuse_late(batch, order, behind)
            keys, events, order = keys[~behind], events.rows(~behind), order[~behind]

        again = repeats(keys, events.kind)
        repeated = int(again.sum())
        latest = events.latest[last_of_each(keys)]
        if repeated:
            self._refuse_repeated(batch, order, again)
            if self._columns.arguments.repeated == "first":
                keys, events, order = keys[~again], events.rows(~again), order[~again]

        found = decided_by_the_next(keys, events, self._columns.rule)
        rows = self._rows(batch, order, events, found)
        last = last_of_each(keys)
        query, stream = (column.take(pa.array(order[last])) for column in batch.ids)
        self._open = Batch((query, stream), events.rows(last)._replace(latest=latest))
        dropped = {"late": late} if late else {}
        return rows, _counted(found, repeated, dropped)

    def pass_time(self, until: int) -> tuple[pa.Table, TransitionCounts]:
        """The stays that a time decides, before which no event is to come: ticks."""
        events = self._open.crossings
        found = decided_by_the_clock(events, until, self._columns.rule)
        rows = self._rows(self._open, np.arange(len(self)), events, found)
        told = events.told.copy()
        told[found.row] = True
        self._open = Batch(self._open.ids, events._replace(told=told))
        return rows, _counted(found)

    def _rows(self, batch: Batch, order: np.ndarray, events: Crossings, found: Found) -> pa.Table:
        """The rows of the result; `events` are those of the batch in an order."""
        schema = self._columns.schema
        gathers = [Gather(*each) for each in zip(batch.ids, self._columns.id_kinds, strict=True)]
        words = pa.array(TRANSITIONS)
        batches = []
        for start in range(0, found.row.size, _BATCH_ROWS):
            taken = slice(start, start + _BATCH_ROWS)
            row = found.row[taken]
            kinds = pa.DictionaryArray.from_arrays(pa.array(found.transition[taken]), words)
            times = (
                *(events.min_time[row], events.max_time[row]),
                *(found.min_time[taken], found.max_time[taken]),
            )
            batches.append(
                pa.record_batch(
                    [
                        *(gather(order[row]) for gather in gathers),
                        kinds.dictionary_decode(),
                        *(pa.array(t).view(f.type) for t, f in zip(times, list(schema)[3:], strict=True)),
                    ],
                    schema=schema,
                )
            )  # fmt: skip
        return pa.Table.from_batches(batches, schema)

    def _refuse_late(self, batch: Batch, order: np.ndarray, behind: np.ndarray) -> None:
        if self._columns.arguments.options.invalid == "drop":
            return
        example = described(batch, int(order[np.argmax(behind)]), self._columns)
        raise DataError(
            f"{SIDE}: {rows_in_words(int(behind.sum()))} come after a later one of their query and"
            f" stream, for example {example}. Push events in order of their times, all at once by"
            f" transition_tables, or {HINT}"
        )

    def _refuse_repeated(self, batch: Batch, order: np.ndarray, again: np.ndarray) -> None:
        if self._columns.arguments.repeated != "raise":
            return
        example = described(batch, int(order[np.argmax(again)]), self._columns)
        raise DataError(
            f"{SIDE}: {rows_in_words(int(again.sum()))} repeat the event before them, I after I or O after"
            f" O, for example {example}. I and O of one query and stream alternate: mend the data, or let"
            " the first or the last of such a run count, with repeated='first' or repeated='last'"
        )


def _pair_codes(ids: tuple[pa.Array, pa.Array]) -> np.ndarray:
    """Equal numbers for equal ids of query and stream: int64 array, shape (n,)."""
    (queries, _), (streams, many) = (_codes(column) for column in ids)
    return queries * many + streams


def _codes(values: pa.Array) -> tuple[np.ndarray, int]:
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    encoded = pc.dictionary_encode(stored)
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _counted(
    found: Found, repeated: int = 0, dropped: dict[str, int] | None = None
) -> TransitionCounts:
    kinds = np.bincount(found.transition, minlength=2 * STAYS)
    by_word = {word: int(n) for word, n in zip(TRANSITIONS, kinds, strict=True)}
    return TransitionCounts(0, dropped or {}, repeated, by_word, found.neither)
