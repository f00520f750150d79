"""Aggregates of matches: exact sums by digits, least values by tables, without a pair."""
