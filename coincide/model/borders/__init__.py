"""Border queries: readings, ranges, and the crossings between."""
