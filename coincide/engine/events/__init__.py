"""From columns to the events of a side."""
