"""Orders that were not acknowledged in time, by channel, from pandas frames."""

import pandas as pd

from coincide import TimingCondition, around, correlate_tables, within

START = pd.Timestamp("2026-03-02 09:00", tz="UTC")


def events(seconds: list[float], channels: list[str]) -> pd.DataFrame:
    """Events with the numbers of their rows as ids."""
    times = START + pd.to_timedelta(seconds, unit="s")
    return pd.DataFrame({"id": range(len(seconds)), "channel": channels, "t": times})


orders = events([0.0, 10.0, 20.0, 30.0], ["web", "web", "phone", "phone"])
acknowledged = events([1.2, 13.0, 21.9], ["web", "web", "phone"])
missed = correlate_tables(
    orders,
    acknowledged,
    # A fast one may be stamped before its order: the window begins below 0 by the timestamps' lengths.
    TimingCondition(within("-140ms", "2s"), confidence=0.5),
    left_time=around("t", "50ms"),
    right_time=around("t", "20ms"),
    by="channel",
    how="anti",
)
print(missed.to_pandas())
