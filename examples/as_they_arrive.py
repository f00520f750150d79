"""Two sensors whose events come in block by block, out of order, some of them too late."""

import numpy as np

from coincide import TimingCondition, mutual_deadline, stream_correlator

rng = np.random.default_rng(1)
correlator = stream_correlator(
    "classes",
    TimingCondition(mutual_deadline(50), confidence=0.8),  # ticks, here milliseconds
    left_delay=200,
    right_delay=200,
    left_longest=20,
    right_longest=20,
    block=100,
)


def in_order_of_arrival(events: int) -> np.ndarray:
    """Ends of events of a minute, each under way for up to 205 ms."""
    ends = rng.integers(0, 60_000, events)
    return ends[np.argsort(ends + rng.integers(0, 205, events))]


pairs = 0
left, right = in_order_of_arrival(3_000), in_order_of_arrival(3_000)
for block in range(0, 3_000, 50):
    for side, ends in (("left", left[block : block + 50]), ("right", right[block : block + 50])):
        found = correlator.push(side, (ends - 20, ends))
        pairs += len(found.left)
pairs += len(correlator.flush().left)
print(pairs, "pairs,", correlator.stats.late, "events were late")
