"""Causes and effects: predicates on the time and distance between two events, the decision on a pair."""
