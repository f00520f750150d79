"""Cars on a street with two garages: who came and went within ten minutes, and who stayed."""

import datetime as dt

import pyarrow as pa

from coincide import border_crossing_tables, transition_tables

MINUTES = [0, 5, 10, 15, 20, 25, 30]
WHERE = {"red": [0.5, 2.2, 2.4, 2.5, 2.4, 2.3, 4.0], "blue": [9.0, 8.1, 7.0, 6.0, 4.0, 3.0, 0.5]}
readings = pa.table(
    {
        "car": [car for car in WHERE for _ in MINUTES],
        "time": [dt.datetime(2026, 5, 1, 8, m, tzinfo=dt.UTC) for _ in WHERE for m in MINUTES],
        "km": [km for place in WHERE.values() for km in place],
    }
)
garages = pa.table({"garage": ["north", "south"], "lower": [2.0, 8.0], "upper": [2.6, 8.2]})
crossings = border_crossing_tables(
    readings, garages, stream="car", query="garage", time="time", values="km"
)
found = transition_tables(crossings, within="10min", confidence=0.5, stream="car", query="garage")
for row in found.to_pylist():
    print(row["garage"], row["car"], row["transition"], f"{row['max_time']:%H:%M}")
