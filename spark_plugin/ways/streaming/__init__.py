"""The way of two streams: packs by slices of time wait in Spark's state until their slice is closed."""
