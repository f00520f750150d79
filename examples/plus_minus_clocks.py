"""Two CSV logs whose clocks are ±: which answer belongs to which request."""

import io

import pyarrow.csv as csv

from coincide import TimingCondition, around, correlate_tables, resolution, within

REQUESTS = """id,server,seen_at
r1,a,2026-03-02T09:00:00.000Z
r2,a,2026-03-02T09:00:01.000Z
r3,b,2026-03-02T09:00:01.200Z
"""
ANSWERS = """id,server,seen_at
a1,a,2026-03-02T09:00:00.150Z
a2,b,2026-03-02T09:00:01.290Z
a3,a,2026-03-02T09:00:01.499Z
"""

requests, answers = (csv.read_csv(io.BytesIO(text.encode())) for text in (REQUESTS, ANSWERS))
pairs = correlate_tables(
    requests,
    answers,
    TimingCondition(within("0s", "500ms"), confidence=0.1),
    left_time=around("seen_at", "10ms"),  # the clock is off by at most so much
    right_time=resolution("seen_at", "20ms"),  # stamps are cut to it
    by="server",
    probability=True,
)
for row in pairs.to_pylist():
    print(row["left_id"], row["right_id"], f"{row['probability']:.2f}")
