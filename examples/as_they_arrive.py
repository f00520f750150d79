"""Two sensors whose events come in block by block, out of order, some of them too late."""

import numpy as np
import pyarrow as pa

from coincide import CorrelateOptions, TimingCondition, mutual_deadline, stream_tables

rng = np.random.default_rng(1)
stream = stream_tables(
    TimingCondition(mutual_deadline("50ms"), confidence=0.8),
    left_delay="200ms",
    right_delay="200ms",
    left_columns="max_time",
    right_columns="max_time",
    options=CorrelateOptions(unit="ms"),
)


def in_order_of_arrival(events: int) -> np.ndarray:
    """Ends of events of a minute, each under way for up to 205 ms."""
    ends = rng.integers(0, 60_000, events)
    return ends[np.argsort(ends + rng.integers(0, 205, events))]


pairs = 0
left, right = in_order_of_arrival(3_000), in_order_of_arrival(3_000)
for block in range(0, 3_000, 50):
    for side, ends in (("left", left[block : block + 50]), ("right", right[block : block + 50])):
        found = stream.push(side, pa.table({"min_time": ends - 20, "max_time": ends}))
        pairs += found.num_rows
pairs += stream.flush().num_rows
print(pairs, "pairs,", stream.summary().late, "events were late")
