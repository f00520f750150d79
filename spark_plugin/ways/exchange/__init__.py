"""The way of any DataFrames: one exchange brings the events of a slice together."""
