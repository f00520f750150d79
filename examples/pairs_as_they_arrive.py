"""Calls and answers paired one to one while they come in; the two sides name their keys differently."""

import pyarrow as pa

from coincide import CorrelateOptions, around, stream_tables

pairs = stream_tables(
    within=("0s", "5s"),
    confidence=0.9,
    left_time=around("called", "20ms"),
    right_time=around("heard", "20ms"),
    left_delay="1s",
    right_delay="1s",
    by=[("line", "Line")],
    where="right_volume > 0",
    matching="mutual",
    prefer="nearest",
    options=CorrelateOptions(unit="s", tick="ms"),
)
blocks = [
    ("left", {"id": [1, 2, 3], "line": ["a7", "a7", "b2"], "called": [0.0, 2.5, 3.0]}),
    ("right", {"id": [81, 82], "Line": ["a7", "b2"], "heard": [3.1, 3.4], "volume": [5, 0]}),
    ("left", {"id": [4], "line": ["b2"], "called": [9.0]}),
    ("right", {"id": [83], "Line": ["b2"], "heard": [9.7], "volume": [3]}),
]
for side, rows in blocks:
    found = pairs.push(side, pa.table(rows))
    print(side, found.to_pylist() if found.num_rows else "nothing is final")
print("end", pairs.flush().to_pylist())
