"""Joins of events in arrays: row numbers, counts and probabilities come back in the same memory."""
