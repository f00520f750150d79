"""Coincide on Spark: planning, the Arrow worker and the command line. `coincide` has the public names."""
