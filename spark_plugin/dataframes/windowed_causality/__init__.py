"""Causality through a window for each key, on DataFrames."""
