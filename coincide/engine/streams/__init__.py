"""Joins of two streams of tables, push by push."""
