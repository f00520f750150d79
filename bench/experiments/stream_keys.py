"""Streams by keys: one `stream_tables` against a `stream_correlator` for each key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.experiment import Bench, Experiment
from bench.papers.streams import stream_correlator
from coincide.engine.streams.stream_tables import stream_tables
from coincide.model.condition import TimingCondition, mutual_deadline
from coincide.model.options import CorrelateOptions

DEADLINE_US, CONFIDENCE, DELAY_US, LONGEST_US = 500_000, 0.8, 50_000, 200_000
KEYS = {1: 200, 100: 10_000, 5_000: 10_000}
"""Numbers of keys, and events of a side per second over all of them."""
BLOCKS = (100, 1_000, 10_000)
AT_ONCE = 100
"""With more keys correlators at once are left out: they take minutes."""
_CONDITION = TimingCondition(mutual_deadline(DEADLINE_US), CONFIDENCE)


class Side(NamedTuple):
    """Events of a side in order of arrival: a table, and the same as arrays, keys as numbers."""

    table: pa.Table
    low: np.ndarray
    high: np.ndarray
    keys: np.ndarray


@dataclass(frozen=True)
class KeyedStreams:
    """Two streams, pushed in blocks of one side and the other."""

    left: Side
    right: Side
    block: int

    def tables(self) -> int:
        """Pairs that one `stream_tables` finds."""
        stream = stream_tables(
            _CONDITION, by="key", left_delay=DELAY_US, right_delay=DELAY_US, backend="cpu",
            options=CorrelateOptions(left_longest=LONGEST_US, right_longest=LONGEST_US),
        )  # fmt: skip
        pairs = 0
        for start in range(0, self.left.table.num_rows, self.block):
            pairs += stream.push("left", self.left.table.slice(start, self.block)).num_rows
            pairs += stream.push("right", self.right.table.slice(start, self.block)).num_rows
        return pairs + stream.flush().num_rows

    def correlators(self, wait: int) -> int:
        """Pairs that a correlator for each key finds, which lets this many events wait."""
        made: dict[int, object] = {}
        pairs = 0
        for start in range(0, self.left.keys.size, self.block):
            for name, side in (("left", self.left), ("right", self.right)):
                pairs += self._pushed(made, name, side, slice(start, start + self.block), wait)
        return pairs + sum(each.flush().count for each in made.values())  # type: ignore[attr-defined]

    def _pushed(
        self, made: dict[int, object], name: str, side: Side, rows: slice, wait: int
    ) -> int:
        order = np.argsort(side.keys[rows], kind="stable")
        keys, low, high = (each[rows][order] for each in (side.keys, side.low, side.high))
        ends = [*(np.flatnonzero(np.diff(keys)) + 1).tolist(), keys.size]
        pairs = start = 0
        for end in ends:
            correlator = made.get(key := int(keys[start])) or _correlator(wait)
            made[key] = correlator
            pairs += correlator.push(name, (low[start:end], high[start:end])).count  # type: ignore[attr-defined]
            start = end
        return pairs


def run(bench: Bench) -> None:
    """Time both at all numbers of keys and sizes of a push."""
    events = bench.pick(15_000, 1_000)
    bench.note(events=events, keys=KEYS, blocks=BLOCKS, d_us=DEADLINE_US, ct=CONFIDENCE)
    for keys, rate in KEYS.items():
        left, right = (_side(keys, rate, events, seed) for seed in (1, 2))
        for block in bench.pick(BLOCKS, BLOCKS[:1]):
            work = KeyedStreams(left, right, block)
            label = f"{keys:,} keys, pushes of {block:,}"
            contestants = {
                "stream_tables": work.tables,
                "a correlator a key, blocks of 1,000": partial(work.correlators, 1000),
            }
            if keys <= AT_ONCE:
                contestants["a correlator a key, at once"] = partial(work.correlators, 1)
            timings = bench.compared(label, contestants, rounds=3)
            ours = timings["stream_tables"]
            bench.rate(f"{label}: stream_tables", 2 * events, ours, "events/s")
            for name in list(contestants)[1:]:
                bench.ratio(f"{label}: {name} / stream_tables", timings[name], ours)
        bench.keep()


def _side(keys: int, rate: int, events: int, seed: int) -> Side:
    random = np.random.default_rng(seed)
    high = LONGEST_US + np.sort(random.integers(0, int(events / rate * 1e6), events))
    low = high - random.integers(LONGEST_US // 10, LONGEST_US, events)
    order = np.argsort(high + random.integers(0, DELAY_US, events), kind="stable")
    numbers = random.integers(0, keys, events)
    names = pa.array([f"device-{number:05d}" for number in range(keys)])
    low, high = low[order], high[order]
    table = pa.table({
        "id": np.arange(events), "min_time": low, "max_time": high,
        "key": names.take(pa.array(numbers)),
    })  # fmt: skip
    return Side(table, low, high, numbers)


def _correlator(wait: int) -> object:
    return stream_correlator(
        "classes", _CONDITION, left_delay=DELAY_US, right_delay=DELAY_US,
        left_longest=LONGEST_US, right_longest=LONGEST_US, block=wait,
    )  # fmt: skip


ABOUT = """\
Two streams of events by keys, d = 500 ms, ct 0.8, lengths of 20 to 200 ms, up to 50 ms late. One key has
200 events a second and side; several keys share 10,000. Each push holds events of one side. A dict with a
correlator for each key finds pairs of numbers; the tables return keys and ids. Where keys are
many, correlators at once are left out.
"""

EXPERIMENT = Experiment(
    summary="streams by keys: one join of tables against a correlator for each key",
    run=run,
    title="Streams by keys",
    about=ABOUT,
)
