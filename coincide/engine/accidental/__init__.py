"""Pairs that chance alone would make, counted with right times moved."""
