"""The open watches with the ids of their regions and streams: events in, rows out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide.errors import DataError
from coincide.region_transitions.kinds import STAYS, TRANSITIONS
from coincide.region_transitions.ordering import behind_their_group, stable_order
from coincide.region_transitions.watches import (
    Crossings,
    Found,
    decided_by_the_clock,
    decided_by_the_next,
    first_of_each,
    last_of_each,
    repeats,
)
from spark_plugin.worker.arrow.ids import Ids
from spark_plugin.worker.arrow.schemas import as_times
from spark_plugin.worker.transitions.arguments import SIDE
from spark_plugin.worker.transitions.columns import EventColumns
from spark_plugin.worker.transitions.ids import PairIds
from spark_plugin.worker.transitions.reading import (
    HINT,
    Batch,
    described,
    rows_in_words,
    words_of_repeated,
)
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
        self._ids = PairIds(*(Ids.none(kind) for kind in columns.id_kinds))
        none = np.zeros(0, np.int64)
        self._keys = none  # ascending, and the events in their order
        self._events = Crossings.of(none.astype(np.int8), none, none)
        self.behind = (
            0  # of the last batch that had late events: by how many ticks the latest was late
        )

    def __len__(self) -> int:
        return self._keys.size

    @property
    def undecided(self) -> int:
        """Watches whose stay was not given out."""
        return int((~self._events.told).sum())

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
        ids, keys = self._ids.keyed(batch.ids)
        order = stable_order(ids.compact(keys))
        keys, events = keys[order], batch.crossings.rows(order)
        starts = first_of_each(keys)
        places = np.searchsorted(self._keys, keys[starts])
        is_open = np.zeros(starts.size, bool)
        inside = places < len(self)
        is_open[inside] = self._keys[places[inside]] == keys[starts[inside]]
        if is_open.any():  # each goes before the new ones of its key; no row of the batch is its
            before = starts[is_open]
            events = events.with_inserted(before, self._events.rows(places[is_open]))
            keys, order = np.insert(keys, before, keys[before]), np.insert(order, before, -1)

        behind = behind_their_group(keys, events.latest)
        is_late = behind > 0
        late = int(is_late.sum())
        if late:
            self._refuse_late(batch, order, is_late)
            keys, events, order = keys[~is_late], events.rows(~is_late), order[~is_late]
            self.behind = int(behind.max()) // 2

        again = repeats(keys, events.kind)
        repeated = int(again.sum())
        latest = events.latest[last_of_each(keys)]
        if repeated:
            self._refuse_repeated(batch, order, again)
            if self._columns.arguments.repeated == "first":
                keys, events = keys[~again], events.rows(~again)

        found = decided_by_the_next(keys, events, self._columns.rule)
        last = last_of_each(keys)
        self._ids = ids
        rows = self._rows(keys, events, found)
        self._keep(keys[last], events.rows(last)._replace(latest=latest), places, is_open)
        return rows, _counted(found, repeated, {"late": late} if late else {})

    def _keep(
        self, keys: np.ndarray, events: Crossings, places: np.ndarray, is_open: np.ndarray
    ) -> None:
        """Put events of ascending keys in their places, or before what is there."""
        for column, values in zip(self._events, events, strict=True):
            column[places[is_open]] = values[is_open]
        if not is_open.all():
            new, before = ~is_open, places[~is_open]
            self._keys = np.insert(self._keys, before, keys[new])
            self._events = self._events.with_inserted(before, events.rows(new))

    def pass_time(self, until: int) -> tuple[pa.Table, TransitionCounts]:
        """The stays that a time decides, before which no event is to come: ticks."""
        found = decided_by_the_clock(self._events, until, self._columns.rule)
        rows = self._rows(self._keys, self._events, found)
        self._events.told[found.row] = True
        return rows, _counted(found)

    def _rows(self, keys: np.ndarray, events: Crossings, found: Found) -> pa.Table:
        """The rows of the result, found among events of these keys."""
        schema, tick = self._columns.schema, self._columns.times.scales[0].tick
        own_times = schema.types[-4:]
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
                        *self._ids.of(keys[row])[: schema.names.index("transition")],
                        kinds.dictionary_decode(),
                        *(as_times(pa.array(t), f, tick) for t, f in zip(times, own_times, strict=True)),
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
            f"{SIDE}: {rows_in_words(int(behind.sum()))} with events that come after a later one of their"
            f" query and stream, for example {example}. Push events in order of their times, all at once"
            f" by transition_tables, or {HINT}"
        )

    def _refuse_repeated(self, batch: Batch, order: np.ndarray, again: np.ndarray) -> None:
        if self._columns.arguments.repeated == "raise":
            example = described(batch, int(order[np.argmax(again)]), self._columns)
            raise DataError(words_of_repeated(int(again.sum()), example))


def _counted(
    found: Found, repeated: int = 0, dropped: dict[str, int] | None = None
) -> TransitionCounts:
    kinds = np.bincount(found.transition, minlength=2 * STAYS)
    by_word = {word: int(n) for word, n in zip(TRANSITIONS, kinds, strict=True)}
    return TransitionCounts(0, dropped or {}, repeated, by_word, found.neither, found.both)
