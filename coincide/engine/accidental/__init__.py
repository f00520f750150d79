"""Pairs and sequences that chance alone would make, counted with times moved."""
