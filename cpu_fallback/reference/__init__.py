"""The oracles: one slow and obvious answer for each operator, in exact arithmetic."""
