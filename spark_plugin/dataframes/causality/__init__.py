"""Causality joins of DataFrames: where events are, in SQL."""
